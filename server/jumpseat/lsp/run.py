"""One run of a server: from the start of its process to its end, changes are shown to it, and its answers heard."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from jumpseat.lsp.documents import Documents
from jumpseat.lsp.open_files import Change, OpenFiles
from jumpseat.lsp.process import RefusedError
from jumpseat.lsp.work import QUIET_AFTER_ANSWERS_S, QUIET_S, Work

if TYPE_CHECKING:
    from jumpseat.lsp.catalogue import LanguageServer
    from jumpseat.lsp.client import Client, Progress

SAYS_SOMETHING_S: Final = 1.0
"""Time after which a server without diagnostics is asked something else, to see whether it is at work."""

OTHERS_S: Final = 0.7
"""Time for diagnostics of the other files after a change. It leaves some of the second that a result waits."""

SILENCE_S: Final = 5.0
"""Time for diagnostics after that answer, longer if it took long: some servers are silent about clean files."""

MOST_PULLS: Final = 3
"""Times that a server is asked for diagnostics that is at work after each answer."""

RETRY_S: Final = 0.2

BUILD_FILES: Final = (".classpath", "build.gradle", "build.gradle.kts", "pom.xml", "settings.gradle")
GUESSED: Final = frozenset({("Java", "536871240")})
"""Errors that are guesses without a build file, by source and code: jdtls then guesses where packages begin."""


class _Others:
    """The open files besides those that have changed.

    Some servers say something about each of them after a change, if the file is of a kind that others include. Then
    it is worth waiting for.
    """

    def __init__(self) -> None:
        self._are_told: dict[frozenset[str], bool] = {}
        self._kind = frozenset[str]()
        self._paths: list[Path] = []
        self._since = 0.0

    def begin(self, changes: Collection[Path], documents: Documents) -> None:
        """Note a change, and what has happened after the last one."""
        if self._paths and (anyio.current_time() > self._since + OTHERS_S or self._have_been(documents)):
            self._are_told[self._kind] = self._have_been(documents)
        self._kind, self._since = frozenset(path.suffix for path in changes), anyio.current_time()
        self._paths = [path for path in documents.open if path not in changes]

    async def wait(self, documents: Documents) -> None:
        """Wait until the server has told something about all of them, unless it has not done so the last time."""
        if self._are_told.get(self._kind, True):
            with anyio.move_on_after(self._since + OTHERS_S - anyio.current_time()):
                while not self._have_been(documents):
                    await documents.heard.wait()

    def _have_been(self, documents: Documents) -> bool:
        return all(documents.file(path).heard_at >= self._since for path in self._paths if path in documents.open)


class Run:
    """A run of ``server`` for the project in ``root``.

    Hears the notifications of its ``client``. With ``warnings``, those are kept as well as errors. Blocks at first.
    """

    def __init__(self, server: LanguageServer, root: Path, *, warnings: bool) -> None:
        from jumpseat.lsp.client import Client

        self.documents = Documents(warnings=warnings)
        self.work = Work(self.documents)
        self.client: Client = Client(self, root, server.config.settings)
        self.files = OpenFiles(self.client, root, server.config.extensions, self.documents)
        self.is_checking = False
        # The changes whose texts have not been sent yet.
        self.showing: Mapping[Path, Change] = {}
        self._root = root
        self._doubted = GUESSED if not any((root / name).exists() for name in BUILD_FILES) else frozenset[object]()
        self._timeout_s = server.config.timeout_s
        self._name = server.name
        self._versioned: bool | None = None
        self._is_first = True
        # It is silent about files of which it has nothing new to say.
        self._is_terse = False
        self._others = _Others()

    async def begin(self, initialize: Any) -> None:
        """Greet the server.

        Raises:
            RefusedError, ServerFailedError: it does not want to start, or cannot.
        """
        await self.client.begin(initialize, self._timeout_s)
        self.documents.knows_builds = not self.client.pulls
        self.work.tells_builds_apart = self.client.pulls

    async def show(self, changes: Mapping[Path, Change], is_enough: Callable[[], bool]) -> None:
        """Show changes to the server: first the texts before, unless it knows them, then those after.

        Returns when it has said what it has to say, including its checks unless ``is_enough``.

        Raises:
            ServerFailedError: the server does not answer.
        """
        self.showing = changes
        await self._show_before(changes)
        await self._send(changes)
        self.showing = {}
        await self._collect([path for path in changes if path in self.documents.open])
        await self._others.wait(self.documents)
        self.is_checking = True
        try:
            await self.work.until_checked(is_enough)
        finally:
            self.is_checking = False

    async def _show_before(self, changes: Mapping[Path, Change]) -> None:
        documents, files = self.documents, self.files
        if self.work.has_built:
            documents.knows_builds = True
        await documents.begin()
        await files.synchronize(changes)
        for path, change in changes.items():
            if change.before is not None:
                files.set_text(path, change.before)
        for path, change in changes.items():
            if change.before is not None:
                await files.open_related(path, change)
        files.close_oldest(changes)
        await self.work.until_loaded()
        if stale := [path for path in documents.open if not documents.file(path).fresh]:
            await self._collect(stale)
        else:
            await self.work.until_quiet()

    async def _send(self, changes: Mapping[Path, Change]) -> None:
        await self.documents.begin()
        self.documents.names = {old: new for change in changes.values() for old, new in change.names.items()}
        self._assume_clean()
        for path, change in changes.items():
            self.files.apply(path, change)
        self._is_first = False
        self.work.changed()
        self._others.begin(changes, self.documents)

    def _assume_clean(self) -> None:
        """Take what a server has said so far about an open file, perhaps nothing, as all that it has to say."""
        if self.client.pulls:
            return
        for path, document in self.documents.open.items():
            file = self.documents.file(path)
            if file.known is None:
                file.known, file.known_text = file.latest, document.text
                file.assumed = self._is_first and not file.fresh

    # --- diagnostics --------------------------------------------------------------------------------------------

    async def _collect(self, paths: Sequence[Path]) -> None:
        """Wait for diagnostics of the present texts of open files, and until the server is quiet.

        Raises:
            ServerFailedError: the server does not answer.
        """
        if not self.client.pulls:
            await self._until_pushed(paths)
            await self.work.until_quiet()
            return
        for _ in range(MOST_PULLS):
            async with anyio.create_task_group() as tasks:
                for path in [*self.documents.open]:
                    tasks.start_soon(self._pull, path)
            if not await self.work.until_quiet(QUIET_AFTER_ANSWERS_S):
                return
            # It was at work, perhaps loading the project: its answers may be others now.

    async def _until_pushed(self, paths: Sequence[Path]) -> None:
        documents, began = self.documents, anyio.current_time()
        if self._versioned is not None:
            with anyio.move_on_after(SAYS_SOMETHING_S):
                await self._until_fresh(paths, began)
                return
        silent = [path for path in paths if not documents.file(path).fresh]
        if asked := silent or paths:
            with suppress(RefusedError):
                await self.client.answer(self.client.symbols(asked[0]), self._timeout_s)
        if self._versioned is None:
            # While it loads the project, a server may talk about the texts on the disk.
            for path in paths:
                documents.change(path)
        silence_s = QUIET_S if self._is_terse else max(SILENCE_S, 5 * (anyio.current_time() - began))
        with anyio.move_on_after(silence_s) as scope:
            await self._until_fresh(paths, began)
        if scope.cancelled_caught and self._versioned is not None:
            self._is_terse = True
            for path in paths:
                documents.keep(path)
        self._versioned = self._versioned or False

    async def _until_fresh(self, paths: Sequence[Path], began: float) -> None:
        """Wait until the server has said something about each file, or all that it says if it is terse."""
        documents = self.documents
        while not all(documents.file(path).fresh for path in paths):
            has_begun = self._is_terse and documents.heard_at > began
            with anyio.move_on_after(QUIET_S if has_begun else math.inf) as scope:
                await documents.heard.wait()
            if scope.cancelled_caught:
                for path in paths:
                    documents.keep(path)

    async def _pull(self, path: Path) -> None:
        end = anyio.current_time() + self._timeout_s
        while anyio.current_time() < end:
            try:
                diagnostics = await self.client.answer(self.client.pull(path), self._timeout_s)
            except RefusedError:
                return
            if diagnostics is not None:
                self.documents.pull(path, self._certain(diagnostics))
                return
            await anyio.sleep(RETRY_S)

    # --- from the server ----------------------------------------------------------------------------------------

    def published(self, path: Path, version: int | None, diagnostics: Sequence[Any]) -> None:
        """See :class:`jumpseat.lsp.client.Listener`."""
        if path == self._root or not path.is_relative_to(self._root):
            # It is about a folder, or what is generated for the server alone.
            return
        if path in self.documents.open:
            if version is not None:
                self._versioned = True
            elif self._versioned:
                # It is about the text on the disk.
                return
        self.documents.push(path, version, self._certain(diagnostics))

    def progressed(self, token: int | str, state: Progress) -> None:
        """See :class:`jumpseat.lsp.client.Listener`."""
        self.work.progressed(token, state)

    def reported(self, *, ready: bool, healthy: bool) -> None:
        """See :class:`jumpseat.lsp.client.Listener`."""
        self.work.reported(ready=ready, healthy=healthy)

    def _certain(self, diagnostics: Sequence[Any]) -> Sequence[Any]:
        """Return what can be relied on: of a server without the standard library, what a compiler says."""
        return [
            one
            for one in diagnostics
            if (one.source, str(one.code)) not in self._doubted
            and (self.work.is_healthy or one.source != self._name)
        ]
