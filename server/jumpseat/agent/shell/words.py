"""The words of a command, as far as they are known before the shell expands them, and variables in front of it."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct


class Word(Struct, frozen=True):
    """A word of a command. ``text`` has its quotes removed; ``fixed`` means that the shell uses the word unchanged.

    A word that is not fixed may be a ``glob``: a file name pattern and nothing else. It is ``wild`` if any part of
    it is such a pattern. It is ``single`` if its expansion is one word.
    """

    text: str
    fixed: bool = True
    glob: bool = False
    wild: bool = False
    single: bool = True


PLAIN_SETTING: Final = re.compile(
    # The names of variables with these ends choose something; some programs load code that a few others name.
    r"(?!BASH_ENV|CONDA_|DOCKER_|DYLD_|ENV=|GIT_|LD_|PIP_|VIRTUAL_ENV)(?:[A-Z][A-Z0-9]*_)*+"
    r"(?:CI|COLOR|COUNT|COVERAGE|DEBUG|DRY_RUN|ENV|HEADLESS|HOST|LEVEL|LIMIT|LOG|LOGLEVEL|MODE|PORT|QUIET|SEED|STRICT"
    r"|TESTS?|THREADS|TIMEOUT|TZ|VERBOSE|VERBOSITY|WORKERS)=[\w.,:+-]*"
    r"|(?:CARGO_INCREMENTAL|CGO_ENABLED|GOARCH|GOGC|GOMAXPROCS|GOOS|GOTRACEBACK|PYTHONHASHSEED|SKIP)=[\w.,:+-]*"
    r"|PYTHONPATH=(?:\.|src|lib|app|tests?)(?::(?:\.|src|lib|app|tests?))*"
    r"|DJANGO_SETTINGS_MODULE=[A-Za-z_]\w*(?:\.\w+)*"
    r"|NODE_OPTIONS=[\"']?--max-old-space-size=\d+[\"']?",
    re.ASCII,
)
"""Variables in front of a command that choose something, and load no code from outside of the project."""
