"""The traits that commands share, so that an approval of one in a sandbox covers the other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace


class Likeness(Struct, frozen=True):
    """The likenesses of a command, as texts.

    An approval of a command ``gives`` likenesses, and covers each command that ``needs`` one of them. Those in
    ``bound`` hold in the folder of the command only, the others in all folders of the project. ``moved`` is the
    folder that the line goes to before the command, if it does. A command ``beside`` others does nothing that would
    have to be approved, once these are: it reads files of the project, or ends what the line has started.
    ``scratch`` are files for output that no program obeys. A command is also covered if, of each of its ``places``,
    an approval gives one of the likenesses.
    """

    needs: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    bound: frozenset[str] = frozenset()
    moved: str = ""
    beside: bool = False
    scratch: tuple[str, ...] = ()
    places: tuple[tuple[str, ...], ...] = ()


NOTHING: Final = Likeness()

READS: Final = "(reads)"
CHECKS: Final = "(checks)"
LOOKS: Final = "(looks)"
BUILDS: Final = "(builds and checks)"
CHANGES: Final = "(changes files)"
"""At the end, for a command that changes what it checks."""
FIXES: Final = "(fixes) "
"""In front of a tool, the options that decide what it does, and a file or folder that it checks or changes."""
TRIES: Final = " (tries)"
"""At the end, for a command that only shows what it would do."""
LOCALHOST: Final = "(localhost)"
SHOWS: Final = "(shows) "
"""In front of what is shown by a command that leaves the sandbox, and nothing else does."""

SAME: Final = "= "
"""In front of the identifier of a command that is covered with other arguments in any case."""


def alike(*texts: str, gives: Iterable[str] = (), needs: Iterable[str] = (), bound: bool = False) -> Likeness:
    """Return a likeness that is given and needed, beside others that are only given, or only needed."""
    own = tuple(filter(None, texts))
    return Likeness((*own, *needs), (*own, *gives), frozenset(own) if bound else frozenset())


def joined(found: Iterable[Likeness]) -> Likeness:
    """Return several likenesses of one command as one."""
    all_found = list(found)
    return Likeness(
        tuple(text for one in all_found for text in one.needs),
        tuple(text for one in all_found for text in one.gives),
        frozenset(text for one in all_found for text in one.bound),
        places=next((one.places for one in all_found if one.places), ()),
    )


def prefixed(prefix: str, found: Likeness) -> Likeness:
    """Return a likeness for the same behind a program that runs it."""

    def longer(texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(text if text.startswith("(") else f"{prefix} {text}" for text in texts)

    return replace(
        found, needs=longer(found.needs), gives=longer(found.gives), bound=frozenset(longer(found.bound))
    )


def as_trial(found: Likeness) -> Likeness:
    """Return the likeness of a command that only shows what it would do, which is no approval to do it.

    A check of files with a linter or formatter covers their fix in any case.
    """

    def marked(texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(text if text.startswith(FIXES) else f"{text}{TRIES}" for text in texts)

    return replace(
        found,
        needs=(*found.needs, *marked(found.needs)),
        gives=marked(found.gives),
        bound=found.bound.union(marked(found.bound)),
    )


def descriptions(texts: Iterable[str]) -> list[str]:
    """Return in words which commands likenesses stand for, without those that others include."""
    found = dict.fromkeys(map(_described, texts))
    wide = tuple(
        phrase.removesuffix(_OTHER_ARGUMENTS) + " " for phrase in found if phrase.endswith(_OTHER_ARGUMENTS)
    )
    return [
        phrase
        for phrase in found
        if not {phrase + _ALSO_CHANGES, phrase.replace(_FIXES_TOO, _OTHER_ARGUMENTS + _ALSO_CHANGES)}.intersection(
            found
        )
        - {phrase}
        and not (phrase.endswith((_OTHER_OPTIONS, _MARKED[LOOKS])) and phrase.startswith(wide))
    ]


def _described(text: str) -> str:
    if text.endswith(TRIES):
        return _described(text.removesuffix(TRIES)) + _ONLY_TRIES
    if text.startswith(SHOWS):
        return f"other commands that show {text.removeprefix(SHOWS)}"
    if text in _PHRASES:
        return _PHRASES[text]
    if text.startswith(FIXES):
        return text.removeprefix(FIXES).partition("\n")[0] + _FIXES_TOO
    if "\n" in text:
        return f"{' '.join(text.split())} {_OTHER_OPTIONS}"
    changes = _ALSO_CHANGES if text.endswith(CHANGES) else ""
    command, _, same = text.removesuffix(CHANGES).strip().partition(" *")
    for mark, phrase in _MARKED.items():
        if command.endswith(mark):
            command, what = command.removesuffix(mark).rstrip(), f" {phrase}"
            break
    else:
        what = _OTHER_ARGUMENTS
    return f"{command}{what}{f', but the same {same.strip()}' if same else ''}{changes}"


_OTHER_ARGUMENTS: Final = " with other arguments"
_OTHER_OPTIONS: Final = "with options that change what it shows"
_ALSO_CHANGES: Final = ", also to change files"
_FIXES_TOO: Final = " to fix or format the same files"
_ONLY_TRIES: Final = ", as long as they only show what they would do"
_PHRASES: Final = {
    READS: "commands that only read files of the project",
    CHECKS: "tools that test or check the project",
    LOCALHOST: "requests to localhost",
    "git new branch": "new branches of git",
    "git switch": "other branches of git",
    "git unstash": "git stash pop and apply",
}
_MARKED: Final = {
    BUILDS: "with other tasks that build or check something",
    LOOKS: "with subcommands that only show something",
}

_LOG: Final = re.compile(
    r"/(?:tmp)/\w[\w.-]*(?:/\w[\w.-]*){0,3}"
    r"|(?:\./)?(?:(?:build|coverage|dist|htmlcov|logs?|out|output|reports?|target|temp|test-results|tmp)/)"
    r"(?:\w[\w.-]*/){0,6}\w[\w.-]*\.(?:csv|err|html|json|lcov|log|out|prof|txt|xml)"
    r"|(?:\./)?(?:[\w-]++\.)*[\w-]+\.(?:err|log|out|prof)"
    r"|(?:\./)?(?:coverage|errors?|junit|lint|output|profile|report|results?|test-results|trace)[\w-]*"
    r"\.(?:csv|html|json|lcov|txt|xml)"
)
_BUILT: Final = re.compile(
    r"(?:\./)?(?:build|dist|out|target|tmp)/(?:\w[\w-]*/){0,6}\w[\w-]*(?:\.(?:a|bin|class|exe|jar|o|out|so|wasm))?"
    r"|(?:\./)?(?:build|coverage|dist|htmlcov|logs?|out|output|reports?|target|test-results|tmp)/?"
)


def is_scratch(path: str) -> bool:
    """Return whether a path is that of an output by its name: a log, a report, or a file in ``/tmp``."""
    return _LOG.fullmatch(path) is not None


def is_output(path: str) -> bool:
    """Return whether a path is that of an output, or of a folder or a program of those that were built."""
    return path == "/dev/null" or is_scratch(path) or _BUILT.fullmatch(path) is not None


_FOREIGN: Final = frozenset({
    "bower_components", "external", "node_modules", "site-packages", "third-party", "third_party", "vendor", "venv",
})  # fmt: skip


def is_own_folder(path: str) -> bool:
    """Return whether a relative path is that of a folder of the project whose code comes from nowhere else."""
    parts = path.rstrip("/").split("/")
    return all(_PART.fullmatch(part) and part.lower() not in _FOREIGN for part in parts)


_PART: Final = re.compile(r"\w[\w.+-]*")
