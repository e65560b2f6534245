"""Changes of ``config.toml`` by the program, which leave everything else in the file as it is, comments too.

Only two changes are made: the default model is set, and a table of an adapter is added, or one that was added here
is given another address. A change is written only if
the new text has exactly the intended meaning; otherwise the user is told which line to write.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from jumpseat.config import LARGEST_BYTES, load_config
from jumpseat.errors import ConfigError, StoreError
from jumpseat.parsing.toml_text import parse_toml
from jumpseat.system.private_files import create_private_folder
from jumpseat.system.regular_files import read_whole

_ADDED: Final = ("type", "base_url", "api_key_env")
"""The keys of a table that is added here. One with other keys was changed by its user."""
_DEFAULT: Final = re.compile(r"[ \t]*default_model[ \t]*=[ \t]*")
_HEADER: Final = re.compile(r"[ \t]*\[")
# A string in one line, and the comment behind it.
_ONE_LINE: Final = re.compile(r"""(?:"[^"\\\n]*"|'[^'\n]*')(?P<rest>[ \t]*+(?:\#[^\n]*)?)\Z""")


def set_default_model(home: Path, model: str) -> None:
    """Write ``default_model`` to the configuration file.

    Raises:
        ConfigError: the file is invalid, or cannot be changed without losing something.
        StoreError: the file cannot be written.
    """
    text = _read(home)
    by_hand = f"default_model = {quoted(model)}"
    _write(home, text, with_default_model(text, model), by_hand, lambda old: {**old, "default_model": model})


def add_adapter(home: Path, name: str, table: Mapping[str, str]) -> None:
    """Add the table of an adapter to the end of the configuration file, or give one that was added another address.

    Raises:
        ConfigError: the file is invalid, or has an adapter of that name with other settings.
        StoreError: the file cannot be written.
    """
    text = _read(home)
    adapters = _parse(home, text).get("adapters", {})
    lines = [f"{key} = {quoted(value)}" for key, value in table.items()]
    added = "\n".join((f"[adapters.{quoted_key(name)}]", *lines))
    if name not in adapters:
        new = f"{text.rstrip()}\n\n{added}\n" if text.strip() else f"{added}\n"
    elif adapters[name] == dict(table):
        return
    elif adapters[name].keys() <= set(_ADDED):
        new = _with_table(text, name, lines)
    else:
        raise ConfigError(f"{home / 'config.toml'} has an adapter {name!r} already: choose another name")
    _write(home, text, new, added, lambda old: {**old, "adapters": {**old.get("adapters", {}), name: dict(table)}})


def _with_table(text: str, name: str, lines: list[str]) -> str:
    """Return the text with other lines of settings below the header of an adapter. Pure."""
    old = text.split("\n")
    header = f"[adapters.{quoted_key(name)}]"
    start = next((at + 1 for at, line in enumerate(old) if line.lstrip(" \t").startswith(header)), len(old))
    end = next((at for at in range(start, len(old)) if _HEADER.match(old[at])), len(old))
    kept = [line for line in old[start:end] if line.partition("=")[0].strip() not in _ADDED]
    return "\n".join([*old[:start], *lines, *kept, *old[end:]])


def with_default_model(text: str, model: str) -> str:
    """Return the text of a configuration with another ``default_model``. Pure."""
    line = f"default_model = {quoted(model)}"
    lines = text.split("\n")
    end = next((at for at, each in enumerate(lines) if _HEADER.match(each)), len(lines))
    for at in range(end):
        if (key := _DEFAULT.match(lines[at])) is not None:
            return_mark = "\r" if lines[at].endswith("\r") else ""
            value = _ONE_LINE.match(lines[at].removesuffix("\r"), key.end())
            lines[at] = f"{line}{value['rest'] if value is not None else ''}{return_mark}"
            return "\n".join(lines)
    # After a comment at the top that is about the file, which an empty line ends.
    top = next((at for at, each in enumerate(lines) if not each.lstrip().startswith("#")), len(lines))
    top = top if lines[top:] == [""] or (lines[top:] and not lines[top].strip()) else 0
    after = lines[top:]
    gap = [""] if after and (_HEADER.match(after[0]) or after[0].startswith("#")) else []
    return "\n".join([*lines[:top], line, *gap, *(after or [""])])


def quoted(text: str) -> str:
    """Return a string of TOML."""
    # Strings of JSON are strings of TOML, but for DEL, which only TOML forbids.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def quoted_key(name: str) -> str:
    """Return a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def _read(home: Path) -> str:
    try:
        return read_whole(home / "config.toml", LARGEST_BYTES).decode()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise ConfigError(f"{home / 'config.toml'}: cannot be read: {error}") from None


def _parse(home: Path, text: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except ValueError as error:
        raise ConfigError(f"{home / 'config.toml'}: {error}") from None


def _write(
    home: Path, old: str, new: str, by_hand: str, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Replace the file after checking that the new text means what the old one meant, with the change."""
    path = home / "config.toml"
    # An invalid file is left unchanged.
    load_config(home)
    if old == new:
        return
    try:
        understood = parse_toml(new) == change(parse_toml(old))
    except ValueError:
        understood = False
    if not understood:
        raise ConfigError(f"{path} cannot be changed without rewriting it: write there by hand: {by_hand}")
    # Users keep the file elsewhere and link to it.
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        create_private_folder(home)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(new.encode())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from None
