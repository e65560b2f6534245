"""Describe validation errors in plain words: the file and line, the path of each problem, and the expectation.

Values are never part of a description, because they may be secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jumpseat.errors import ConfigError
from jumpseat_protocol.problems import kind_of as kind_of
from jumpseat_protocol.problems import validation_problems as validation_problems

if TYPE_CHECKING:
    from pydantic import ValidationError

    from jumpseat.parsing.key_positions import KeyLines


def config_error(where: str, error: ValidationError, model: type[Any], *, inside: bool = False) -> ConfigError:
    """Return the error for an invalid declaration or configuration.

    ``where`` names the declaration or, with ``inside``, the place of the invalid table in it.
    """
    problems = validation_problems(error, model, of_file=True)
    if inside:
        # A misspelled name explains why another one is missing.
        return ConfigError(f"{where}.{min(problems, key=lambda problem: ': unknown' not in problem)}")
    return ConfigError(f"{where}: {'; '.join(problems)}")


def in_declaration(where: str, error: ConfigError, file: Path | None = None) -> ConfigError:
    """Return an error about a declaration as ``FILE:LINE: PLACE: problem``, or as ``WHERE: PLACE: problem``.

    Functions that read parts have the form ``WHERE.PLACE``. ``file`` contains the declaration: ``where`` is its
    path, or else the place of the declaration in it. Errors about other declarations are returned unchanged.
    """
    text = str(error)
    if text.startswith(f"{where}."):
        text = f"{where}: {text[len(where) + 1 :]}"
    if not text.startswith(f"{where}: "):
        return error
    if file is None:
        return ConfigError(text)
    problem = text.removeprefix(f"{where}: ")
    place = problem.partition(": ")[0]
    if where == str(file):
        return ConfigError(in_file(file, [problem]))
    line = _key_lines_of(file).find(f"{where}.{place}")
    return ConfigError(f"{_position(file, line)}: {text}")


def in_file(file: Path, problems: Iterable[str]) -> str:
    """Return ``problems`` of the form ``PLACE: problem`` as ``FILE:LINE: PLACE: problem; line LINE: ...``."""
    lines = _key_lines_of(file)
    found = [(lines.find(problem.partition(": ")[0]), problem) for problem in problems]
    if not found:
        return str(file)
    (first_line, first), *others = found
    texts = [first, *(problem if line is None else f"line {line}: {problem}" for line, problem in others)]
    return f"{_position(file, first_line)}: {'; '.join(texts)}"


def _key_lines_of(file: Path) -> KeyLines:
    # Imported here, because few files have errors.
    from jumpseat.parsing.key_positions import key_lines_of

    return key_lines_of(file)


def _position(file: Path, line: int | None) -> str:
    return str(file) if line is None else f"{file}:{line}"


WEB_ADDRESS: Final = re.compile(r"https?://[^\s/?#]\S*\Z", re.IGNORECASE)

_TAKE_HOSTS: Final = frozenset({"ollama"})
"""The types of providers whose base URL may be a host or a port, as in ``OLLAMA_HOST``."""

# Compiled when they are needed: the first session checks its address.
_NO_SCHEME: Final = r"(?P<host>\[[0-9a-f:]+\]|[\w.-]+)(:\d+)?(/[\w./-]*)?"
_LOCAL: Final = r"localhost|\[|127\.|10\.|192\.168\.|0\.0\.0\.0|[^.]+$"


def base_url_problem(url: str | None, kind: str) -> str | None:
    """Return the problem of a base URL that no request can be sent to, or ``None``.

    ``kind`` is the type of the provider. The URL is shown only without a scheme, and if it has no part that may be
    secret.
    """
    if not url or WEB_ADDRESS.match(url) or kind in _TAKE_HOSTS:
        return None
    problem = "expected an address that begins with http:// or https://"
    match = re.fullmatch(_NO_SCHEME, url, re.IGNORECASE)
    if match is None:
        return problem
    scheme = "http" if re.match(_LOCAL, match["host"], re.IGNORECASE) else "https"
    return f"{problem}, did you mean '{scheme}://{url}'?"
