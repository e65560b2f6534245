"""Read YAML, and JSON where a file may have either."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any, Final

from jumpseat_protocol.yaml_text import read_yaml as read_yaml
from jumpseat_protocol.yaml_text import safe_loader

LARGEST_FOREIGN: Final = 16 * 1024
"""Limit on the characters of YAML that others have written: parsing it takes long."""
MAX_BRACKETS: Final = 64
"""Limit on its nested brackets, for which the parser takes quadratic time."""


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
