"""The user's defaults for new sessions.

Clients read and write them; options of a session take precedence. Unknown keys stay.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import orjson

from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.parsing.validation import in_file, kind_of
from jumpseat.store.session.files import read_text, write_text
from jumpseat_protocol.members import misspelt

if TYPE_CHECKING:
    from jumpseat.store.user.documents import Document

log = logging.getLogger(__name__)

T = TypeVar("T")

FILE: Final = "settings.json"

DISABLED_SKILLS: Final = "disabledSkills"


class Known(NamedTuple):
    """A setting: its type, its default, and the session option that it is the default of."""

    type: type[bool] | type[str]
    default: bool | str | None
    option: str


KNOWN: Final[Mapping[str, Known]] = {
    "model": Known(str, None, "model"),
    "reasoningEffort": Known(str, None, "reasoning_effort"),
    "skipCustomInstructions": Known(bool, False, "skip_custom_instructions"),
    "allowAllMcpServerInstructions": Known(bool, False, "allow_all_mcp_server_instructions"),
    "enableHostGitOperations": Known(bool, True, "enable_host_git_operations"),
}


def _problems(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of settings that have no effect; those of other programs are none."""
    for name, value in values.items():
        if name in KNOWN:
            if type(value) is not KNOWN[name].type:
                expected = "a boolean" if KNOWN[name].type is bool else "a string"
                yield f"{name}: expected {expected}, got {kind_of(value)}"
        elif (meant := misspelt(name, KNOWN)) is not None:
            yield f"{name}: unknown, did you mean {meant!r}?"


class SettingsFile:
    """The settings in a file, which people and other programs write, too. Implements :class:`Document`.

    Unlike that of a :class:`~jumpseat.store.user.private_file.PrivateFile`, a broken file is an error.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values: dict[str, Any] | None = None

    def read(self) -> dict[str, Any]:
        """Return the object, as it was at the first use.

        Raises:
            StoreError: the file cannot be read or is not a JSON object.
        """
        if self._values is None:
            self._values = self._load()
        return self._values

    def change(self, change: Callable[[dict[str, Any]], T]) -> T:
        """Change the object in the file; members that ``change`` leaves alone stay.

        Raises:
            StoreError: the file cannot be read or written, or is not a JSON object.
        """
        values = self._load()
        result = change(values)
        write_text(self._path, orjson.dumps(values, option=orjson.OPT_INDENT_2).decode() + "\n")
        self._values = values
        return result

    def reload(self) -> None:
        """Read the file again at the next use."""
        self._values = None

    def _load(self) -> dict[str, Any]:
        text = read_text(self._path)
        if text is None:
            return {}
        try:
            values = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise StoreError(f"{self._path.name} is not JSON: {error}") from None
        if not isinstance(values, dict):
            raise StoreError(f"{self._path.name} is not a JSON object")
        return cast("dict[str, Any]", values)


class UserSettings:
    """The settings in a document. ``file`` is where people look for them."""

    def __init__(self, document: Document, file: Path) -> None:
        self._document = document
        self._file = file

    def get(self) -> dict[str, Any]:
        """Return the settings that are set, known and of the right type.

        Raises:
            StoreError: the settings cannot be read.
        """
        return of_right_type(self._document.read())

    def set(self, changes: Mapping[str, Any]) -> None:
        """Change settings, all or none of them; ``None`` removes a setting. Blocks.

        Raises:
            InvalidRequestError: a setting is unknown or of the wrong type.
            StoreError: the settings cannot be read or stored.
        """
        for name, value in changes.items():
            known = KNOWN.get(name)
            if known is None:
                raise InvalidRequestError(f"unknown setting {name[:100]!r}: expected one of {', '.join(KNOWN)}")
            if value is not None and (type(value) is not known.type or value == ""):
                expected = "a boolean" if known.type is bool else "a non-empty string"
                raise InvalidRequestError(f"the setting {name!r} must be {expected}")

        def change(values: dict[str, Any]) -> None:
            for name, value in changes.items():
                if value is None:
                    values.pop(name, None)
                else:
                    values[name] = value

        self._document.change(change)

    def disabled_skills(self) -> list[str]:
        """Return the names of the skills that are disabled in new sessions; broken settings count as empty."""
        try:
            return _skills(self._document.read())
        except StoreError as error:
            log.warning("%s", error)
            return []

    def disable_skills(self, names: Iterable[str]) -> None:
        """Set the skills that are disabled in new sessions. Blocks.

        Raises:
            StoreError: the settings cannot be read or stored.
        """
        chosen = list(dict.fromkeys(names))
        self._document.change(lambda values: values.update({DISABLED_SKILLS: chosen}))

    def disable_skill(self, name: str, disabled: bool) -> None:
        """Disable or enable one skill in new sessions. Blocks.

        Raises:
            StoreError: the settings cannot be read or stored.
        """

        def change(values: dict[str, Any]) -> None:
            others = [other for other in _skills(values) if other != name]
            values[DISABLED_SKILLS] = [*others, name] if disabled else others

        self._document.change(change)

    def reload(self) -> None:
        """Read the settings again at the next use."""
        self._document.reload()

    def apply(self, settings: SessionSettings) -> None:
        """Apply the settings to those of a new session; broken ones are logged and count as empty."""
        try:
            stored = self._document.read()
        except StoreError as error:
            log.warning("%s", error)
            return
        if problems := list(_problems(stored)):
            log.warning("ignored: %s", in_file(self._file, problems))
        settings.set_options(**{KNOWN[name].option: value for name, value in of_right_type(stored).items()})


def settings_in(home: Path) -> UserSettings:
    """Return the settings in a home folder."""
    return UserSettings(SettingsFile(home / FILE), home / FILE)


def of_right_type(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are known and of the right type."""
    return {
        name: values[name] for name, known in KNOWN.items() if name in values and type(values[name]) is known.type
    }


def without_unknown(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of ours alone, without those of other programs, which may hold secrets."""
    return {**of_right_type(values), **({DISABLED_SKILLS: names} if (names := _skills(values)) else {})}


def _skills(values: Mapping[str, Any]) -> list[str]:
    names: Any = values.get(DISABLED_SKILLS)
    if not isinstance(names, list):
        return []
    return [name for name in cast("list[Any]", names) if isinstance(name, str)]
