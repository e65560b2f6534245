"""Confine the commands of one session, and examine the session's folders after each command."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.sandbox.session_network import Reach, SessionNetwork
from jumpseat.sandbox.settings import Mode, SandboxSettings
from jumpseat.sandbox.view import Namespace, View, without_replaceable
from jumpseat.system.programs import OwnPrograms, find_program

if TYPE_CHECKING:
    from jumpseat.sandbox.command_times import CommandTimes, Record
    from jumpseat.sandbox.configuration_files import Search, Snapshot
    from jumpseat.sandbox.mechanisms import Mechanism
    from jumpseat.sandbox.proxy import Connect

log = logging.getLogger(__name__)

UNAVAILABLE: Final = (
    "No command can run, because this session requires a sandbox and none works on this system: see docs/sandbox.md"
)

MAX_READY: Final = 16
"""Limit of the sandboxes of all sessions that wait for a command."""

MAX_MESSAGES: Final = 20
"""Limit of the files that the model is told about, of those that were moved away after one command."""

SETTLE_S: Final = 2.0
"""Time limit for examining the session's folders after a command that was stopped."""

REST: Final = 40
"""How many times as long as the last search of the same pace took, none follows: 2.5 % of the time at most."""

Pace: TypeAlias = Literal["answer", "turn"]
"""When installed packages are searched: while the model answers, which causes no delay, or at the end of a turn."""

UNCONFINED: Final = (
    "Commands run with all rights of the user, because no sandbox works on this system. Approvals therefore cover a"
    " command only in exactly the approved form. docs/sandbox.md explains how to get a sandbox."
)

NONE_WORKS: Final = "no sandbox works on it"

PARTIAL: Final = (
    "Commands are confined by {name} only: {lacks}. Approvals therefore cover a command only in exactly the"
    " approved form. `jumpseat check sandbox` says why there is no better sandbox."
)


STILL_CONFINED: Final = (
    "The command was not started: it runs outside of the sandbox, and commands that still run in the sandbox could"
    " change what it runs, such as git hooks. Wait for those or stop them (list_bash, stop_bash), then call again"
)

TOO_LARGE: Final = (
    "This session has more than {} folders, or {} of installed packages, so that settings of other programs which"
    " a command leaves there may remain. Commands therefore do not count as confined: approvals cover a command"
    " only in exactly the approved form."
)


class SandboxUnavailableError(OSError):
    """The session requires a sandbox, and no mechanism works on this system."""

    def __init__(self) -> None:
        super().__init__(UNAVAILABLE)


class StillConfinedError(OSError):
    """A command may not leave the sandbox, because confined ones run that could change what it runs outside."""

    def __init__(self) -> None:
        super().__init__(STILL_CONFINED)


class Confined(Struct):
    """A command line and its environment, confined by ``mechanism``, or unconfined if that is ``None``.

    ``enter`` is the beginning of the command line, without the command itself. The paths in ``view`` are those
    outside of the sandbox. ``roots`` and ``git`` are the folders to examine afterwards, ``before`` is their state
    when the command began, and ``reach`` has the approved hosts. A ``steady`` view has no path that a command which
    runs meanwhile could replace by a link; what it therefore leaves unprotected is compared by its contents. With
    ``of_server``, the command is an MCP server.
    """

    command: list[str]
    environ: dict[str, str]
    cwd: Path
    mechanism: Mechanism | None = None
    enter: list[str] = field(default_factory=list[str])
    view: View = field(default_factory=View)
    roots: tuple[Path, ...] = ()
    git: tuple[Path, ...] = ()
    before: Snapshot | None = None
    reach: Reach = field(default_factory=Reach)
    steady: bool = False
    of_server: bool = False

    @property
    def contents(self) -> bool:
        """Return whether files are compared by their contents, because they were not all made read-only."""
        return self.steady or self.mechanism is None or not self.mechanism.can_protect

    def overlaps(self, roots: Sequence[Path]) -> bool:
        """Return whether the command may change something in ``roots``."""
        return any(a.is_relative_to(b) or b.is_relative_to(a) for a in self.roots for b in roots)

    @property
    def is_timed(self) -> bool:
        """Return whether it is noted when the command runs, because of what it may change."""
        return self.mechanism is not None and not self.of_server

    @property
    def has_processes(self) -> bool:
        """Return whether the processes have their own PID namespace."""
        return self.mechanism is not None and self.mechanism.has_processes


class Sandboxes:
    """The sandboxes of all sessions. ``home`` is the folder of the server, ``user_home`` that of its user.

    Without ``connect``, commands reach all hosts or none. ``running`` are the commands that have not ended.
    ``record_of`` returns the records of :attr:`times`.
    """

    def __init__(
        self,
        defaults: SandboxSettings,
        home: Path,
        environ: Mapping[str, str],
        connect: Connect | None = None,
        record_of: Callable[[str], Record] | None = None,
    ) -> None:
        self.connect = connect
        self._record_of = record_of
        self._times: CommandTimes | None = None
        self.defaults = defaults
        self.home = Path(os.path.realpath(home))
        self.user_home = Path(os.path.realpath(environ.get("HOME") or Path.home()))
        self.environ = environ
        self.mechanism: Mechanism | None = None
        self.probed = False
        self.ready = anyio.CapacityLimiter(MAX_READY)
        self.running: list[Confined] = []
        self._lock = anyio.Lock()

    @cached_property
    def opened(self) -> set[Path]:
        """The folders that commands could write to, those of earlier processes included."""
        # Imported with the first session.
        from jumpseat.sandbox.places import shared_caches

        return {self.home / "caches", *shared_caches(self.user_home)}

    @property
    def times(self) -> CommandTimes:
        """When commands could write to which folder. The first use is on the event loop."""
        if self._times is None:
            # Imported with the first command, or the first edit.
            from jumpseat.sandbox.command_times import CommandTimes

            self._times = CommandTimes(self._record_of)
        return self._times

    async def probe(self) -> Mechanism | None:
        """Return the mechanism that works on this system, which is tried at the first call only."""
        if not self.probed:
            async with self._lock:
                if not self.probed:
                    from jumpseat.sandbox.mechanisms import find_mechanism

                    self.mechanism = await find_mechanism(self.own_environ(), self.defaults.mechanisms)
                    self.probed = True
                    if self.mechanism is None:
                        log.warning("no sandbox works on this system: commands run with all rights of the user")
        return self.mechanism

    async def lacks(self) -> str:
        """Return what the mechanism of this system lacks, so that no command may run unasked in it."""
        mechanism = await self.probe()
        return mechanism.lacks if mechanism is not None else NONE_WORKS

    def own_environ(self) -> dict[str, str]:
        """Return the environment for programs of the server, without folders that commands could write to."""
        return OwnPrograms(lambda: self.opened).environ(self.environ)

    @asynccontextmanager
    async def confine_reading(
        self, command: Sequence[str], cwd: Path
    ) -> AsyncGenerator[tuple[list[str], tuple[int, ...]], None]:
        """Yield the command line that confines ``command`` to reading files, without network, and its descriptors.

        With a mechanism without namespaces, yields ``command`` itself: the sandbox would take longer to start than
        the command takes to run.
        """
        mechanism = await self.probe()
        if mechanism is None or not mechanism.has_processes:
            yield list(command), ()
            return
        from jumpseat.sandbox.bubblewrap import without_shell

        with without_shell(mechanism.command(View(), cwd, command)) as confined:
            yield confined

    async def close_off(self, command: Sequence[str], folders: Sequence[Path]) -> list[str] | None:
        """Return the command line that runs ``command``, a Python program, without files, network and processes.

        ``folders`` are hidden in any case. Returns ``None`` without a mechanism, or with one that lacks something.
        """
        mechanism = await self.probe()
        if mechanism is None or mechanism.lacks:
            return None
        # Imported with the first such program.
        from jumpseat.sandbox.closed import closed_view

        view = await anyio.to_thread.run_sync(closed_view, (*folders, self.home, self.user_home))
        return mechanism.command(view, Path("/"), command)

    @property
    def can_close_off(self) -> bool:
        """Return whether :meth:`close_off` works, after :meth:`probe`."""
        return self.mechanism is not None and not self.mechanism.lacks


class SessionSandbox:
    """The sandbox of one session.

    ``settings`` returns the current settings, ``folders`` the folders that commands may change. The server created
    ``own_folders`` for the session. New files that configure programs are moved to ``quarantine``. ``warn`` shows a
    warning to the user. Without ``network``, commands reach all hosts or none. ``examined`` is whether everything
    that commands leave in the folders is examined. ``of_servers``: it is that of MCP servers.
    """

    def __init__(
        self,
        sandboxes: Sandboxes,
        settings: Callable[[], SandboxSettings],
        folders: Callable[[], Sequence[Path]],
        own_folders: Sequence[Path] = (),
        quarantine: Path | None = None,
        warn: Callable[[str], None] = lambda _text: None,
        network: SessionNetwork | None = None,
        *,
        of_servers: bool = False,
    ) -> None:
        self._sandboxes = sandboxes
        self._settings = settings
        self._folders = folders
        self._network = network
        self._of_servers = of_servers
        self._warn = warn
        self._warned = False
        self.examined = True
        self._looked = False
        self._unsearched: Confined | None = None
        self._rests: dict[Pace, float] = {}
        self._found_late: list[str] = []
        self._timed: set[Path] = set()
        self._quarantine = quarantine or sandboxes.home / "quarantine"
        # Imported with the first command: most processes run none.
        from jumpseat.sandbox.configuration_files import ConfigurationFiles
        from jumpseat.sandbox.git_folders import GitSettings
        from jumpseat.sandbox.surroundings import Surroundings

        self._git = GitSettings(lambda: find_program("git", sandboxes.environ, self.opened))
        self._files = ConfigurationFiles(sandboxes.user_home, sandboxes.home, self._git, searches=not of_servers)
        self._lock = anyio.Lock()
        self._surroundings = Surroundings(
            sandboxes.home, sandboxes.user_home, sandboxes.environ, folders, own_folders, self._git
        )

    @property
    def mode(self) -> Mode:
        return self._settings().mode

    @property
    def opened(self) -> set[Path]:
        """The folders that confined commands could write to, in any session."""
        return {*self._folders(), *self._sandboxes.opened}

    async def probe(self) -> None:
        """Check whether commands can be confined, unless the sandbox is off; warn once if not, or in part only.

        Examines the session's folders at the first call, before any command.
        """
        self._sandboxes.opened.update(self._folders())
        if self.mode == "off":
            return
        mechanism = await self._sandboxes.probe()
        if not self._warned and (mechanism is None or mechanism.lacks):
            self._warned = True
            if mechanism is not None:
                self._warn(PARTIAL.format(name=mechanism.name, lacks=mechanism.lacks))
            else:
                self._warn(UNCONFINED if self.mode == "auto" else UNAVAILABLE)
        if mechanism is not None and not self._looked:
            async with self._lock:
                roots = await anyio.to_thread.run_sync(self._roots, self._settings())
                await anyio.to_thread.run_sync(self._look, roots, not mechanism.can_protect)
            self._tell()

    def confines(self) -> bool | None:
        """Return whether commands are confined, after :meth:`probe`; ``None`` if the sandbox is off."""
        return None if self.mode == "off" else self._sandboxes.mechanism is not None

    @property
    def counts(self) -> bool:
        """Return whether confined commands are asked about as such.

        They are not if the mechanism lacks something, or what they leave in the folders is not examined entirely.
        """
        mechanism = self._sandboxes.mechanism
        return self.examined and not (mechanism is not None and mechanism.lacks)

    @asynccontextmanager
    async def confined(
        self,
        command: Sequence[str],
        cwd: Path,
        environ: Mapping[str, str],
        reach: Reach | None = None,
        temporary: Sequence[Path] | None = None,
        shown: Sequence[Path] = (),
        *,
        vanishing: bool = False,
    ) -> AsyncGenerator[Confined, None]:
        """Confine ``command``, and examine the session's folders after the block.

        With ``temporary``, the command and the caller can name the same temporary files: those, and the files in
        ``TMPDIR`` of the command. It can read the real paths ``shown``, wherever they are.

        Raises:
            OSError: see :meth:`confine`.
        """
        confined = await self.confine(
            command, cwd, environ, reach=reach, temporary=temporary, shown=shown, vanishing=vanishing
        )
        try:
            yield confined
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(SETTLE_S):
                for message in await self.settle(confined):
                    self._warn(message)

    @contextmanager
    def slot(self) -> Generator[bool, None, None]:
        """Count a sandbox that waits for a command; yield whether the limit of all sessions allows it."""
        limiter, borrower = self._sandboxes.ready, object()
        try:
            limiter.acquire_on_behalf_of_nowait(borrower)
        except anyio.WouldBlock:
            yield False
            return
        try:
            yield True
        finally:
            limiter.release_on_behalf_of(borrower)

    async def confine(
        self,
        command: Sequence[str],
        cwd: Path,
        environ: Mapping[str, str],
        *,
        outlives: bool = False,
        reach: Reach | None = None,
        temporary: Sequence[Path] | None = None,
        shown: Sequence[Path] = (),
        vanishing: bool = False,
    ) -> Confined:
        """Return ``command`` as it runs in the sandbox.

        ``outlives`` and ``vanishing`` are explained at :meth:`Mechanism.command`. The command can connect to the
        hosts of ``reach`` until :meth:`settle`.

        Raises:
            SandboxUnavailableError: the session requires a sandbox, and none works on this system.
            OSError: the private folder for temporary files cannot be created.
        """
        settings = self._settings()
        self._sandboxes.opened.update(self._folders())
        mechanism = await self._sandboxes.probe() if settings.mode != "off" else None
        if mechanism is None:
            if settings.mode == "require":
                raise SandboxUnavailableError
            return Confined(list(command), dict(environ), cwd)
        reach = reach or Reach()
        async with self._lock:
            namespace = None
            if self._network is not None and settings.network != "all":
                namespace = await self._network.open(mechanism)
            reaches_all = settings.network == "all" or (
                # The mechanism cannot tell hosts apart.
                namespace is None and settings.mode == "auto" and settings.network == "approved" and reach.approved
            )
            prepare = anyio.to_thread.run_sync
            confined = await prepare(
                self._confine,
                self._sandboxes.times,
                mechanism,
                settings,
                list(command),
                cwd,
                dict(environ),
                outlives,
                namespace,
                reaches_all,
                temporary,
                shown,
                vanishing,
            )
        self._tell()
        self._sandboxes.running.append(confined)
        confined.reach = reach
        if namespace is not None and self._network is not None:
            self._network.begin(reach)
        return confined

    async def settle(self, confined: Confined, *, ended: bool = True) -> list[str]:
        """Examine the session's folders after a command; return messages about files that were moved away.

        A command counts as running until it has ``ended`` with all of its processes.
        """
        self._revoke(confined)
        if confined.mechanism is None:
            return []
        try:
            async with self._lock:
                messages = await anyio.to_thread.run_sync(self._settle, confined, abandon_on_cancel=True)
        finally:
            if ended:
                self.abandon(confined)
        self._tell()
        return messages

    async def finish(self, pace: Pace | None = None) -> None:
        """Search installed packages for the repositories of commands, if that was left out after them.

        Called before a command leaves the sandbox and, with a ``pace``, between commands: not after each of many
        short ones. A search at one pace does not put off one at the other.
        """
        if self._unsearched is None or (pace is not None and time.monotonic() < self._rests.get(pace, 0.0)):
            return
        async with self._lock:
            began = time.monotonic()
            await anyio.to_thread.run_sync(self._search, abandon_on_cancel=True)
        if pace is not None:
            ended = time.monotonic()
            self._rests[pace] = ended + REST * (ended - began)
        self._tell()

    def abandon(self, confined: Confined) -> None:
        """Forget a command that could not be started, or has ended and was settled."""
        self._revoke(confined)
        left = [found for found in self._sandboxes.running if found is not confined]
        if len(left) < len(self._sandboxes.running) and confined.is_timed:
            self._sandboxes.times.end(confined.roots)
        self._sandboxes.running = left

    def _revoke(self, confined: Confined) -> None:
        """Revoke the hosts of a command."""
        if self._network is not None:
            self._network.end(confined.reach)

    @property
    def has_running(self) -> bool:
        """Return whether confined commands in the same folders run or are examined, but for MCP servers."""
        running = [found for found in self._sandboxes.running if not found.of_server]
        if not running:
            return False
        roots = [Path(os.path.realpath(folder)) for folder in self._folders()]
        return any(found.overlaps(roots) for found in running)

    def may_prepare(self, confined: Confined) -> bool:
        """Return whether a sandbox like that of ``confined`` can be started now, for a later command."""
        return confined.steady or not any(running.overlaps(confined.roots) for running in self._sandboxes.running)

    def refusals(self, confined: Confined, output: str) -> list[str]:
        """Return the refusals of the sandbox that are known, or that the ``output`` of a command shows."""
        if confined.mechanism is None:
            return []
        # Its patterns are compiled when it is imported.
        from jumpseat.sandbox.refusals import find_refusals

        return find_refusals(output, confined.view, confined.cwd, confined.reach.refused)

    async def close(self) -> None:
        """End the connections of the session's commands, and delete their temporary files."""
        if self._network is not None:
            self._network.close()
        await self.finish()
        await anyio.to_thread.run_sync(self._surroundings.delete_temp)
        if self._timed:
            await anyio.to_thread.run_sync(self._sandboxes.times.flush, tuple(self._timed))

    def _tell(self) -> None:
        """Warn of what was found after the command that had left it, and once that not everything is examined."""
        while self._found_late:
            self._warn(self._found_late.pop(0))
        if not self.examined and not self._warned:
            from jumpseat.sandbox.configuration_files import MAX_FOLDERS, MAX_INSTALLED

            self._warned = True
            self._warn(TOO_LARGE.format(MAX_FOLDERS, MAX_INSTALLED))

    # --- in a thread --------------------------------------------------------------------------------------------

    def _confine(
        self,
        times: CommandTimes,
        mechanism: Mechanism,
        settings: SandboxSettings,
        command: list[str],
        cwd: Path,
        environ: dict[str, str],
        outlives: bool,
        namespace: Namespace | None,
        reaches_all: bool,
        temporary: Sequence[Path] | None,
        shown: Sequence[Path],
        vanishing: bool,
    ) -> Confined:
        around = self._surroundings
        roots = self._roots(settings)
        beside = [running.view for running in tuple(self._sandboxes.running) if running.overlaps(roots)]
        steady = bool(beside)
        git, before = self._look(roots, steady or not mechanism.can_protect)
        view = around.view(settings, command[0], cwd, environ, roots, git, before, network=reaches_all)
        if steady:
            view = without_replaceable(view, (*roots, *git), beside)
        if mechanism.has_processes:
            view = around.covered(settings, view, (*roots, *git))
        view = replace(view, namespace=namespace, shown=(*view.shown, *shown))
        variables = around.environ(settings, cwd, environ, own_temp=mechanism.has_processes)
        if temporary is not None:
            view = replace(view, writable=(*view.writable, *temporary, around.temp))
            variables["TMPDIR"] = str(around.temp)
        if namespace is not None and self._network is not None and settings.network == "approved":
            variables |= self._network.variables(variables)
        line = mechanism.command(view, cwd, command, outlives=outlives, vanishing=vanishing, variables=variables)
        if not self._of_servers:
            self._timed.update(roots)
            times.begin(roots)
        return Confined(
            line,
            variables,
            cwd,
            mechanism,
            line[: -len(command)],
            view,
            roots,
            git,
            before,
            steady=steady,
            of_server=self._of_servers,
        )

    def _roots(self, settings: SandboxSettings) -> tuple[Path, ...]:
        roots = tuple(self._surroundings.roots(settings))
        self._sandboxes.opened.update(roots)
        return roots

    def _look(self, roots: tuple[Path, ...], contents: bool) -> tuple[tuple[Path, ...], Snapshot]:
        """Return the git folders elsewhere that repositories in ``roots`` use, and the state of all folders."""
        git = tuple(self._surroundings.git_folders(roots))
        first, self._looked = not self._looked, True
        search: Search = "all" if first else "new" if self._unsearched is None else "none"
        found = self._snapshot(roots, git, contents, search)
        if found.has_new and not found.is_searched:
            # What commands have left is told from what others have, such as the user, before both are known.
            self._search()
            found = self._snapshot(roots, git, contents, "new")
        return git, found

    def _snapshot(self, roots: Sequence[Path], git: Sequence[Path], contents: bool, search: Search) -> Snapshot:
        elsewhere = self._surroundings.elsewhere(self._settings())
        found = self._files.snapshot(roots, git, elsewhere, contents=contents, search=search)
        # Not reset: what was left out once may be there when the folders are fewer again.
        self.examined = self.examined and found.complete
        return found

    def _search(self) -> None:
        confined, self._unsearched = self._unsearched, None
        if confined is not None:
            self._found_late += self._settle(confined, "known")

    def _settle(self, confined: Confined, search: Search = "named") -> list[str]:
        from jumpseat.sandbox.configuration_files import new_files

        if confined.before is None:
            return []
        after = self._snapshot(confined.roots, confined.git, confined.contents, search)
        self._unsearched = None if after.is_searched else confined
        before = confined.before
        messages = [
            message
            for path in new_files(before, after, self._git)
            if (message := self._move_away(path, confined, before.contents.get(path))) is not None
        ]
        more = len(messages) - MAX_MESSAGES
        return messages if more <= 0 else [*messages[:MAX_MESSAGES], f"{more} more files were moved there"]

    def _move_away(self, path: str, confined: Confined, former: bytes | None) -> str | None:
        from jumpseat.sandbox.configuration_files import move_away, restore

        moved = move_away(path, [*confined.roots, *confined.git], self._quarantine)
        if moved is None:
            return None
        log.warning(
            "moved %s, which a confined command wrote and which configures other programs, to %s", path, moved
        )
        if former is not None:
            try:
                restore(path, former)
            except OSError as error:
                log.error("cannot restore %s: %s", path, error)
        return f"{path} was moved to {moved}, because it configures programs outside of the sandbox"
