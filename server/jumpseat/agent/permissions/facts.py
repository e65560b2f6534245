"""What a call would touch: its request, looked at with the eyes of the rules.

Paths are followed through their links before anything is judged, at the moment of asking; globs are expanded. What
cannot be followed makes the facts loose. Nothing is opened or changed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from jumpseat.agent.permissions.rules import Facts, Place, Rule, host_of
from jumpseat.agent.shell.commands import unclear
from jumpseat.agent.shell.syntax import ShellLine, ShellSegment, parse_shell
from jumpseat_protocol.permissions import (
    CustomToolPermission,
    HookPermission,
    McpPermission,
    MemoryPermission,
    PermissionRequest,
    ReadPermission,
    ShellPermission,
    UrlPermission,
    WritePermission,
)

MOST_PLACES: Final = 256
"""A line that names more files is not looked at file by file."""

HARMLESS: Final = frozenset({"", "-", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero"})

_OPTION_MARKS: Final = ("-", "+", "@")

# Who may write here decides what other calls do.
_PROTECTED: Final = frozenset({".git", ".jumpseat"})


@dataclass(slots=True)
class PathScope:
    """The folders a session may use without being asked about each path.

    ``cwd`` gives the working directory; ``primary`` takes its place for permissions where it is set. ``own`` are
    folders the server itself made for the session. ``guarded`` is what no remembered allowance may change.
    """

    cwd: Callable[[], Path]
    own: tuple[Path, ...] = ()
    guarded: tuple[Path, ...] = ()
    primary: Path | None = None
    added: list[Path] = field(default_factory=list[Path])
    with_temp: bool = False
    unrestricted: bool = False
    any_host: bool = False

    @property
    def main(self) -> Path:
        return self.primary or self.cwd()

    def folders(self) -> list[Path]:
        """All of them, the working directory first."""
        found = [self.main, self.cwd(), *self.added]
        if self.with_temp:
            import tempfile

            found.append(Path(tempfile.gettempdir()))
        return list(dict.fromkeys(found))

    def holds(self, place: Place) -> bool:
        """Whether a place lies in one of them, links followed on both sides."""
        if self.unrestricted:
            return True
        roots = (_resolved(folder) for folder in (*self.folders(), *self.own))
        return any(root is not None and Path(place.real).is_relative_to(root) for root in roots)

    def place(self, path: str, base: Path | None = None) -> Place | None:
        """Where a path leads; ``None`` where that is not certain."""
        try:
            given = (base or self.cwd()) / _home_expanded(path)
            real = given.resolve()
            name = str(real)
            name.encode()
            return Place(posixpath.normpath(str(given)), name, real.is_dir())
        except (OSError, RuntimeError, ValueError):
            return None

    def anchor(self, rule: Rule) -> Sequence[str]:
        """The patterns of a path rule: as written, and with the links of its fixed part followed."""
        written = rule.argument or ""
        base = Path(rule.base) if rule.base else self.cwd()
        if written.startswith("**"):
            written = f"./{written}"
        given = posixpath.normpath(str(base / _home_expanded(written)))
        names = given.split("/")
        fixed = next((n for n, name in enumerate(names) if "*" in name or "?" in name), len(names))
        root = _resolved(Path("/".join(names[:fixed]) or "/"))
        if root is None:
            return (given,)
        rest = "/".join(names[fixed:])
        return (given, posixpath.join(str(root), rest) if rest else str(root))


def facts_of(request: PermissionRequest, tool: str, grounds: PathScope) -> Facts:
    """What ``request`` of a call of ``tool`` comes to."""
    match request:
        case ShellPermission():
            return _shell_facts(request, tool, grounds)
        case ReadPermission():
            return _place_facts("read", tool, request.path, grounds)
        case WritePermission():
            return _place_facts("write", tool, request.file_name, grounds)
        case UrlPermission():
            host = host_of(request.url)
            return Facts("url", tool, hosts=(host,) if host else (), loose=host is None)
        case McpPermission():
            return Facts("mcp", tool, server=request.server_name, name=request.tool_name)
        case MemoryPermission():
            return Facts("memory", tool)
        case CustomToolPermission():
            return Facts("custom-tool", tool, name=request.tool_name)
        case HookPermission():
            return Facts("hook", tool, name=request.tool_name)


def _place_facts(kind: str, tool: str, path: str, grounds: PathScope) -> Facts:
    place = grounds.place(path)
    if place is None:
        return Facts(kind, tool, loose=True)
    writes = kind == "write"
    return Facts(
        kind,
        tool,
        places=(place,),
        outside=() if grounds.holds(place) else (place,),
        writes=writes,
        protected=writes and _is_protected(place, grounds),
    )


def _shell_facts(request: ShellPermission, tool: str, grounds: PathScope) -> Facts:
    line = parse_shell(request.full_command_text)
    segments = line.segments
    if [one.identifier for one in request.commands] != [one.identifier for one in line.commands]:
        # It is not a line for a shell, but input for something that runs; what that makes of it is not known.
        segments = tuple(ShellSegment(one.identifier, unclear(one.identifier)) for one in request.commands)
    places, known = _places_of(line, grounds)
    hosts = [host_of(address) for address in line.addresses]
    only_reads = line.certain and all(one.command.read_only for one in segments)
    return Facts(
        "shell",
        tool,
        segments=segments,
        mentioned=line.mentioned,
        places=places,
        outside=tuple(place for place in places if not grounds.holds(place)),
        hosts=tuple(dict.fromkeys(host for host in hosts if host)),
        any_host=grounds.any_host,
        writes=not only_reads,
        opaque=line.opaque,
        loose=not (known or grounds.unrestricted) or (None in hosts and not grounds.any_host),
        protected=not only_reads and any(_is_protected(place, grounds) for place in places),
    )


def _places_of(line: ShellLine, grounds: PathScope) -> tuple[tuple[Place, ...], bool]:
    """The places that a line may touch, and whether these are all."""
    known = line.all_known
    bases = [grounds.cwd()]
    for folder in line.folders:
        # Whether a `cd` is reached is not known: what comes later may be meant from before it, or from behind it.
        bases += [base / _home_expanded(folder) for base in bases]
        if len(bases) > 16:
            known, bases = False, bases[:1]
            break
    words = [word for word in line.words if word not in HARMLESS]
    if len(words) * len(bases) > MOST_PLACES:
        known, words = False, words[: MOST_PLACES // len(bases)]
    found: dict[Place, None] = {}
    for base in bases:
        expanded = _expanded(line.globs, base)
        # A file that is named like an option becomes one.
        known = known and not any(name.startswith(_OPTION_MARKS) for name in expanded)
        for word in (*words, *expanded):
            place = grounds.place(word, base)
            # What these stand for is another thing in another process.
            if place is None or place.given.startswith(("/proc/", "/dev/fd")):
                known = False
            if place is not None:
                found[place] = None
    if len(found) > MOST_PLACES:
        known = False
    return tuple(found), known


def _expanded(globs: Iterable[str], base: Path) -> list[str]:
    """What globs stand for now; themselves where they match nothing, as in the shell."""
    found: list[str] = []
    for glob in globs:
        root, pattern = (Path("/"), glob.lstrip("/")) if glob.startswith("/") else (base, glob)
        try:
            paths = islice(root.glob(pattern), MOST_PLACES + 1)
            names = [str(path) if glob.startswith(("/", ".")) else str(path.relative_to(base)) for path in paths]
        except (OSError, ValueError, NotImplementedError):
            names = []
        found += names or [glob]
    return found


def _is_protected(place: Place, grounds: PathScope) -> bool:
    for path in (Path(place.given), Path(place.real)):
        if not _PROTECTED.isdisjoint(part.casefold() for part in path.parts):
            return True
        if any(path.is_relative_to(folder) for folder in grounds.guarded):
            return not any(Path(place.real).is_relative_to(folder) for folder in grounds.own)
    return False


def _home_expanded(path: str) -> str:
    if path.startswith("~"):
        try:
            return str(Path(path).expanduser())
        except RuntimeError:
            return path
    return path


def _resolved(folder: Path) -> Path | None:
    try:
        return folder.resolve()
    except (OSError, RuntimeError, ValueError):
        return None
