"""The user's defaults for new sessions: ``settings.json`` in the home folder.

Clients read and write the file; options of a session take precedence. Unknown keys stay in the file.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import orjson

from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.store.files import read_text, write_text
from jumpseat.validation import in_file, kind_of
from jumpseat_protocol.members import misspelt

log = logging.getLogger(__name__)

FILE: Final = "settings.json"
DISABLED_SKILLS: Final = "disabledSkills"


class Known(NamedTuple):
    """A setting: its type, its default, and the name of the session setting that it sets."""

    type: type[bool] | type[str]
    default: bool | str | None
    attribute: str


KNOWN: Final[Mapping[str, Known]] = {
    "model": Known(str, None, "model"),
    "reasoningEffort": Known(str, None, "reasoning_effort"),
    "skipCustomInstructions": Known(bool, False, "skip_custom_instructions"),
    "allowAllMcpServerInstructions": Known(bool, False, "mcp_instructions"),
    "enableHostGitOperations": Known(bool, True, "host_git"),
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


class UserSettings:
    """The settings, read at first use and after :meth:`reload`: other processes write the file, too."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self._values: dict[str, Any] | None = None

    def get(self) -> dict[str, Any]:
        """Return the settings that are set, known and of the right type.

        Raises:
            StoreError: the file cannot be read or is not a JSON object.
        """
        if self._values is None:
            self._values = self._read()
        values = self._values
        return {
            name: values[name]
            for name, known in KNOWN.items()
            if name in values and type(values[name]) is known.type
        }

    def set(self, changes: Mapping[str, Any]) -> None:
        """Change settings, all or none of them; ``None`` removes a setting.

        Raises:
            InvalidRequestError: a setting is unknown or of the wrong type.
            StoreError: the file cannot be read or written, or is not a JSON object.
        """
        for name, value in changes.items():
            known = KNOWN.get(name)
            if known is None:
                raise InvalidRequestError(f"unknown setting {name[:100]!r}: expected one of {', '.join(KNOWN)}")
            if value is not None and (type(value) is not known.type or value == ""):
                expected = "a boolean" if known.type is bool else "a non-empty string"
                raise InvalidRequestError(f"the setting {name!r} must be {expected}")
        values = {**self._read(), **changes}
        values = {name: value for name, value in values.items() if name not in changes or value is not None}
        write_text(self._path, orjson.dumps(values, option=orjson.OPT_INDENT_2).decode() + "\n")
        self._values = values

    def disabled_skills(self) -> list[str]:
        """Return the names of the skills that are disabled in new sessions; a broken file counts as empty."""
        try:
            names: Any = (self._read() if self._values is None else self._values).get(DISABLED_SKILLS)
        except StoreError as error:
            log.warning("%s", error)
            return []
        if not isinstance(names, list):
            return []
        return [name for name in cast("list[Any]", names) if isinstance(name, str)]

    def disable_skills(self, names: Iterable[str]) -> None:
        """Set the skills that are disabled in new sessions.

        Raises:
            StoreError: the file cannot be read or written.
        """
        values = {**self._read(), DISABLED_SKILLS: list(dict.fromkeys(names))}
        write_text(self._path, orjson.dumps(values, option=orjson.OPT_INDENT_2).decode() + "\n")
        self._values = values

    def reload(self) -> None:
        """Read the file again at the next use."""
        self._values = None

    def apply(self, settings: SessionSettings) -> None:
        """Apply the settings to those of a new session; a broken file is logged and counts as empty."""
        try:
            values = self.get()
        except StoreError as error:
            log.warning("%s", error)
            return
        if problems := list(_problems(self._values or {})):
            log.warning("ignored: %s", in_file(self._path, problems))
        for name, value in values.items():
            setattr(settings, KNOWN[name].attribute, value)

    def _read(self) -> dict[str, Any]:
        text = read_text(self._path)
        if text is None:
            return {}
        try:
            values = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise StoreError(f"{FILE} is not JSON: {error}") from None
        if not isinstance(values, dict):
            raise StoreError(f"{FILE} is not a JSON object")
        return cast("dict[str, Any]", values)
