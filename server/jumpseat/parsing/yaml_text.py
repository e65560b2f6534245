"""Read YAML, and JSON where a file may have either."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import orjson

from jumpseat.parsing.json_text import read_json

if TYPE_CHECKING:
    from yaml import SafeLoader


LARGEST_FOREIGN: Final = 16 * 1024
"""Limit on the characters of YAML that others have written: parsing it takes long."""
MAX_BRACKETS: Final = 64
"""Limit on its nested brackets, for which the parser takes quadratic time."""


def read_yaml(text: str) -> Any:
    """Parse JSON or YAML.

    Raises:
        ValueError: the text is neither; the message is one of YAML.
    """
    text = text.removeprefix("\ufeff")
    if text.lstrip().startswith(("{", "[")):
        # PyYAML refuses tabs and long keys, and reads 1e5 as a string.
        try:
            return read_json(text.encode())
        except orjson.JSONDecodeError:
            pass
    import yaml

    try:
        return yaml.load(text, safe_loader())  # noqa: S506 - a safe loader
    except Exception as error:
        # Not only YAMLError: invalid dates and deep nesting raise errors of other types.
        raise ValueError(" ".join(str(error).split())[:200] or type(error).__name__) from None


def safe_loader() -> type[SafeLoader]:
    """Return YAML's safe loader, with emojis for escaped pairs of surrogates, as in JSON, and U+FFFD for halves."""
    # Imported here, because most processes read no YAML.
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_scalar(self, node: Any) -> str:
            text = super().construct_scalar(node)
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    return Loader


def read_foreign_yaml(text: str, first_line: int = 1) -> Any:
    """Parse YAML that others have written, in bounded time and memory. The text begins in line ``first_line``.

    Raises:
        ValueError: the text is too long, is no YAML or has an alias; the message says so without a subject.
    """
    if len(text) > LARGEST_FOREIGN:
        raise ValueError(f"has more than {LARGEST_FOREIGN} characters")
    if _depth(text) > MAX_BRACKETS:
        raise ValueError("is not YAML: nested too deeply")
    import yaml

    class AliasError(ValueError):
        """An alias, of which a few lines stand for gigabytes."""

    class Loader(safe_loader()):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):  # pyright: ignore[reportUnknownMemberType] - has no types
                raise AliasError("contains an alias, expected the value itself")
            return super().compose_node(parent, index)

    try:
        return yaml.load(text, Loader)  # noqa: S506 - a safe loader
    except AliasError:
        raise
    except Exception as error:
        # Not only YAMLError: invalid dates and deep nesting raise errors of other types.
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"is not YAML{f' (line {mark.line + first_line})' if mark else ''}") from None


def _depth(text: str) -> int:
    """Return the largest number of brackets that are open at one place."""
    depths = accumulate(1 if mark in "[{" else -1 for mark in re.findall(r"[\[\]{}]", text))
    return max(depths, default=0)
