"""Data formats whose errors their own parsers report. They stop at the first error."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeAlias

from jumpseat.parsing.toml_text import TomlError, parse_toml
from jumpseat.tools.syntax.parsing import LONGEST_PARSE_S, SyntaxProblem

MOST_ERRORS: Final = 4
"""Errors that are looked for behind each other; the lines of the errors before are left out."""

_FirstError: TypeAlias = Callable[[bytes], SyntaxProblem | None]
"""Returns the first error of a text; nothing if it is valid, or takes too long."""


def _all_errors(data: bytes, first_error: _FirstError) -> list[SyntaxProblem]:
    """Return the first error of a text, and those that are found without its line."""
    found: list[SyntaxProblem] = []
    lines = data.split(b"\n")
    while len(found) < MOST_ERRORS and (error := first_error(b"\n".join(lines))) is not None:
        if error.row >= len(lines) or (found and error.row <= found[-1].row):
            break
        found.append(error)
        lines[error.row] = b""
    return found


def toml_errors(data: bytes) -> list[SyntaxProblem]:
    return _all_errors(data, _toml_error)


def yaml_errors(data: bytes) -> list[SyntaxProblem]:
    return _all_errors(data, _yaml_error)


def _toml_error(data: bytes) -> SyntaxProblem | None:
    """Return the first error of a TOML document."""
    try:
        parse_toml(data.decode("utf-8-sig"))
    except TomlError as error:
        row = data.rstrip().count(b"\n") if error.line is None else error.line - 1
        return SyntaxProblem(row, max(0, (error.column or 1) - 1), row, error.problem)
    except UnicodeDecodeError:
        return None
    return None


def _yaml_error(data: bytes) -> SyntaxProblem | None:
    """Return the first error of a YAML document."""
    import yaml

    end = time.thread_time() + LONGEST_PARSE_S
    try:
        for number, _event in enumerate(yaml.parse(data, Loader=yaml.CSafeLoader)):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportUnknownVariableType]
            if number % 128 == 0 and time.thread_time() > end:
                return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if mark is None:
            return None
        row = min(mark.line, data.rstrip().count(b"\n"))
        start = error.context_mark
        since = f" (since line {start.line + 1})" if start is not None and start.line < row else ""
        return SyntaxProblem(row, mark.column, row, f"{error.problem or error.context}{since}")
    except (yaml.YAMLError, ValueError):
        # Characters that YAML does not allow.
        return None
    return None
