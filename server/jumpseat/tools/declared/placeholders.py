"""Find placeholders in the declaration of a tool that cannot have a value in any call."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

from jumpseat.agent.blocks import JsonObject
from jumpseat.declared.env import read_entry
from jumpseat.declared.names import PLACEHOLDER, meant_placeholder, placeholders_in
from jumpseat.errors import ConfigError
from jumpseat_protocol.members import hint, misspelt

_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_OPEN: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "patternProperties"})
"""Keywords of a schema with parameters that are not in ``properties``."""


class Template(NamedTuple):
    """A string with placeholders, and its place in the declaration."""

    place: str
    text: str
    for_shell: bool = False


def check_placeholders(
    where: str, env: Mapping[str, Any], parameters: JsonObject, templates: Iterable[Template]
) -> None:
    """Check that each placeholder is an entry of ``env`` or a parameter.

    Raises:
        ConfigError: a placeholder is neither; or an entry of ``env`` is the path of an unknown parameter.
    """
    if parameters.get("additionalProperties") or _OPEN & parameters.keys():
        return
    own = cast("Mapping[str, Any]", parameters.get("properties") or {})
    for name, raw in env.items():
        _check_entry(f"{where}.env.{name}", raw, own)
    names = {*env, *own, *(f"args.{name}" for name in own)}
    for place, text, for_shell in templates:
        for name in placeholders_in(text):
            if name not in names and (not for_shell or _is_misspelt_in(text, name, names)):
                meant = meant_placeholder(name, names)
                raise ConfigError(f"{where}.{place}: ${{{name}}} is neither in env nor a parameter{meant}")


def _check_entry(where: str, raw: Any, parameters: Mapping[str, Any]) -> None:
    entry = read_entry(where, raw)
    path = entry.value if isinstance(entry.value, str) and not entry.literal else ""
    first, _, rest = path.partition(".")
    name = rest.partition(".")[0]
    if first == "args" and _IDENTIFIER.fullmatch(name) and name not in parameters:
        raise ConfigError(f"{where}: the tool has no parameter {name!r}, {hint(name, parameters)}")


def _is_misspelt_in(line: str, name: str, names: Collection[str]) -> bool:
    """Return whether ``${name}`` in a line for the shell is a misspelled placeholder, and no variable of the shell.

    Variables in capitals come from the environment, and others are set in the line itself.
    """
    if name.startswith("args."):
        return True
    if not _IDENTIFIER.fullmatch(name) or name.isupper() or misspelt(name, names) is None:
        return False
    return re.search(rf"\b{name}\b", PLACEHOLDER.sub("", line)) is None
