"""One language server of a session: its life, and the changes that it is shown.

A server starts with the first change of one of its files. Changes wait in a queue; what they have brought is
collected for the next result of a tool. Whatever a server does, nothing else fails: a server that crashes or hangs
is started again, a few times, and its diagnostics are missing until then.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec import Struct, field

from jumpseat.lsp.catalogue import LanguageServer
from jumpseat.lsp.delta import Diagnostic
from jumpseat.lsp.documents import Document, Documents
from jumpseat.lsp.process import RefusedError, ServerFailedError, running
from jumpseat.lsp.related import related_files, words_of
from jumpseat.lsp.text_edits import TextEdit
from jumpseat.sandbox.session import SessionSandbox
from jumpseat.system.regular_files import read_whole

if TYPE_CHECKING:
    from jumpseat.lsp.client import Client, Progress

log = logging.getLogger(__name__)

T = TypeVar("T")

BACKOFF_S: Final = (0.0, 5.0, 30.0)
"""Pauses after failures of a server, which is started again that often."""

LOADING_S: Final = 300.0
"""Time for a server to load a project."""

CHECKS: Final = "flycheck"
"""A part of the tokens of work that repeats with every change, such as a build, and ends whenever it ends."""

MOST_PROGRESS: Final = 100
BEGIN_S: Final = 10.0
"""Time for a server to begin work that it has announced."""

LOOK_S: Final = 1.0

SAYS_SOMETHING_S: Final = 1.0
"""Time after which a server without diagnostics is asked something else, to see whether it is at work."""

SILENCE_S: Final = 5.0
"""Time for diagnostics after that answer, longer if it took long: some servers are silent about clean files."""

QUIET_S: Final = 0.25
"""A server that has been silent for so long, and is not at work, has said what it has to say."""

MOST_PULLS: Final = 3
"""Times that a server is asked for diagnostics that is at work after each answer."""

MOST_OPEN: Final = 40
MOST_RELATED: Final = 15
LARGEST_FILE: Final = 2 * 1024 * 1024
RETRY_S: Final = 0.2


class Change(Struct, frozen=True):
    """A file before and after a change; ``None`` where there is no file. A rename has new names by the old ones."""

    before: str | None
    after: str | None
    names: Mapping[str, str] = field(default_factory=dict[str, str])


class Limits(Struct, frozen=True):
    """The limits of all servers; ``warnings`` are told as well as errors."""

    idle_s: float = 600.0
    memory_bytes: int = 4096 << 20
    warnings: bool = False


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
        if self._paths and (anyio.current_time() > self._since + SAYS_SOMETHING_S or self._have_been(documents)):
            self._are_told[self._kind] = self._have_been(documents)
        self._kind, self._since = frozenset(path.suffix for path in changes), anyio.current_time()
        self._paths = [path for path in documents.open if path not in changes]

    async def wait(self, documents: Documents) -> None:
        """Wait until the server has told something about all of them, unless it has not done so the last time."""
        if self._are_told.get(self._kind, True):
            with anyio.move_on_after(self._since + SAYS_SOMETHING_S - anyio.current_time()):
                while not self._have_been(documents):
                    await documents.heard.wait()

    def _have_been(self, documents: Documents) -> bool:
        return all(documents.file(path).heard_at >= self._since for path in self._paths if path in documents.open)


class Server:
    """A server for the project in ``root``. Runs in ``tasks`` until it is idle, has failed or is closed.

    ``environ`` returns the environment of the process and ``make_sandbox`` what confines it; ``confined`` is
    required unless the root is trusted.
    """

    def __init__(
        self,
        server: LanguageServer,
        root: Path,
        tasks: TaskGroup,
        environ: Callable[[], dict[str, str]],
        sandbox: SessionSandbox | None,
        limits: Limits,
        *,
        needs_sandbox: bool,
    ) -> None:
        self.server = server
        self.root = root
        self.failed = False
        self._tasks = tasks
        self._environ = environ
        self._sandbox = sandbox
        self._limits = limits
        self._needs_sandbox = needs_sandbox
        self._failures = 0
        self._rests_until = 0.0
        self._scope: anyio.CancelScope | None = None
        self._ended = anyio.Event()
        self._queue: dict[Path, Change] = {}
        self._showing: dict[Path, Change] = {}
        self._given = self._done = 0
        self._news = anyio.Event()
        self._progress: dict[int | str, float] = {}
        self._is_checking = False
        self._versioned: bool | None = None
        self._is_ready = True
        self._is_healthy = True
        self._is_first = True
        self._has_built = False
        self._others = _Others()
        self._used = 0
        self._client: Client | None = None
        self._documents = Documents(warnings=limits.warnings)

    # --- from the session ---------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Return whether the server answers requests."""
        return self._client is not None

    @property
    def is_behind(self) -> bool:
        """Return whether an earlier change is still at work."""
        return self._done < self._given and not self._is_checking

    def submit(self, path: Path, change: Change) -> None:
        """Show a change to the server as soon as possible."""
        self.start()
        if self._scope is None:
            return
        earlier = self._queue.pop(path, None)
        self._queue[path] = change if earlier is None else Change(earlier.before, change.after, change.names)
        self._given += 1
        self._wake()

    def start(self) -> None:
        """Start the server, unless it runs or has failed too often."""
        if self._scope is None and not self.failed and anyio.current_time() >= self._rests_until:
            self._scope, self._ended = anyio.CancelScope(), anyio.Event()
            self._tasks.start_soon(self._run, self._scope)

    async def wait(self) -> None:
        """Wait until the changes that were submitted so far have been looked at, or the server has failed."""
        given = self._given
        while self._done < given and not self.failed:
            await self._news.wait()

    async def take(self) -> list[tuple[Path, Diagnostic]]:
        """Return the new diagnostics since the last call."""
        return [] if self.failed else await self._documents.take({*self._queue, *self._showing})

    def text_of(self, path: Path) -> str:
        """Return the text of a file; empty if it is not open."""
        document = self._documents.open.get(path)
        return "" if document is None else document.text

    async def close(self) -> None:
        """End the server."""
        self.failed = True
        if self._scope is not None:
            self._scope.cancel()
            await self._ended.wait()

    async def _ask(self, path: Path, request: Callable[[Client], Awaitable[T]]) -> T:
        """Send a request about a file to the server, which is started if necessary.

        Raises:
            RefusedError, ServerFailedError: the server cannot answer.
            OSError, ValueError: the file cannot be read.
        """
        self._used += 1
        limit_s = self.server.config.timeout_s
        try:
            with anyio.fail_after(limit_s):
                while self._client is None:
                    self.start()
                    if self._scope is None:
                        raise ServerFailedError("it does not run")
                    await self._news.wait()
                client = self._client
                # Changes that it has not been shown come first.
                await self.wait()
                await self._synchronize()
                if path not in self._documents.open:
                    text, stamp = await anyio.to_thread.run_sync(_read, path)
                    self._open(path, text).stamp = stamp
                await self._until_loaded()
            return await client.answer(request(client), limit_s)
        except TimeoutError:
            raise ServerFailedError("it does not answer") from None

    async def places(
        self, operation: Literal["definition", "references"], path: Path, line: int, character: int
    ) -> list[tuple[Path, int]]:
        """Return files and lines where the name at a place is defined or used; lines count from 0.

        Raises:
            RefusedError, ServerFailedError: the server cannot answer.
            OSError, ValueError: the file cannot be read.
        """
        return await self._ask(path, lambda client: client.places(operation, path, line, character))

    async def rename(self, path: Path, line: int, character: int, name: str) -> dict[Path, list[TextEdit]]:
        """Return the edits that rename the symbol at a place, by file; raises what :meth:`places` does."""
        return await self._ask(path, lambda client: client.rename(path, line, character, name))

    async def symbols(self, path: Path) -> list[str]:
        """Return the symbols of a file as lines of text; raises what :meth:`places` does."""
        return await self._ask(path, lambda client: client.symbols(path))

    # --- the life of the server ---------------------------------------------------------------------------------

    async def _run(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                await self._run_once()
        except ServerFailedError as error:
            self._fail(str(error))
        except Exception:
            log.exception("language server %s failed", self.server.name)
            self._fail("an unexpected error")
        finally:
            self._scope = None
            self._ended.set()
            self._wake()
        if self._queue:
            # They came while an idle server ended.
            self.start()

    def _fail(self, reason: str) -> None:
        """Give up the changes in the queue, since one of them may be the reason; the server rests for a while."""
        log.warning("language server %s of %s: %s", self.server.name, self.root, reason)
        self._queue.clear()
        self._done = self._given
        self.failed = self.failed or self._failures == len(BACKOFF_S)
        if not self.failed:
            self._rests_until = anyio.current_time() + BACKOFF_S[self._failures]
            self._failures += 1

    async def _run_once(self) -> None:
        """Run the server until it is idle.

        Raises:
            ServerFailedError: the server cannot be run, or has ended.
        """
        self._documents = Documents(warnings=self._limits.warnings)
        self._progress, self._is_ready, self._versioned, self._showing = {}, True, None, {}
        self._others, self._is_first, self._has_built, self._is_healthy = _Others(), True, False, True
        server = self.server
        if self._needs_sandbox and not await self._is_confined():
            raise ServerFailedError("it runs unconfined in trusted folders only")
        # In a thread: pygls and lsprotocol take half a second to load.
        client, initialize = await anyio.to_thread.run_sync(self._make_client)
        environ = {**self._environ(), **server.env}
        argv = [server.program, *server.config.args]
        memory = self._limits.memory_bytes
        try:
            async with (
                running(client, argv, self.root, environ, self._sandbox, memory_bytes=memory) as read,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(read)
                try:
                    await self._serve(client, initialize)
                finally:
                    self._client = None
                tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            failed, others = group.split(ServerFailedError)
            if failed is None or others is not None:
                raise
            raise _first(failed) from None

    async def _is_confined(self) -> bool:
        if self._sandbox is None or self._sandbox.mode == "off":
            return False
        await self._sandbox.probe()
        return self._sandbox.confines() is True

    def _make_client(self) -> tuple[Client, Any]:
        from jumpseat.lsp.client import Client, initialize_params

        config = self.server.config
        client = Client(self, self.root, config.settings)
        return client, initialize_params(self.root, config.initialization_options)

    async def _serve(self, client: Client, initialize: Any) -> None:
        try:
            await client.begin(initialize, self.server.config.timeout_s)
        except RefusedError as error:
            raise ServerFailedError(f"it refuses to start: {error}") from None
        self._client = client
        self._documents.knows_builds = not client.pulls
        self._wake()
        while True:
            used = self._used
            if not self._queue:
                with anyio.move_on_after(self._limits.idle_s) as idle:
                    await self._news.wait()
                if idle.cancelled_caught and not self._queue and used == self._used:
                    return
                continue
            given, self._used = self._given, self._used + 1
            self._showing, self._queue = self._queue, {}
            await self._show(client, self._showing)
            self._done = given
            self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    # --- changes ------------------------------------------------------------------------------------------------

    async def _show(self, client: Client, changes: dict[Path, Change]) -> None:
        """Show changes to the server: first the texts before, unless it knows them, then those after."""
        documents = self._documents
        if self._has_built:
            documents.knows_builds = True
        await documents.begin()
        await self._synchronize(changes)
        for path, change in changes.items():
            if change.before is not None:
                self._set_text(path, change.before)
        for path, change in changes.items():
            if change.before is not None:
                await self._open_related(path, change)
        self._close_oldest(changes)
        await self._until_loaded()
        if stale := [path for path in documents.open if not documents.file(path).fresh]:
            await self._collect(stale)
        else:
            await self._until_quiet()
        await documents.begin()
        documents.names = {old: new for change in changes.values() for old, new in change.names.items()}
        self._assume_clean()
        for path, change in changes.items():
            self._apply(client, path, change)
        self._showing, self._is_first = {}, False
        self._others.begin(changes, documents)
        await self._collect([path for path in changes if path in documents.open])
        await self._others.wait(documents)
        await self._until_checked()

    async def _synchronize(self, besides: Sequence[Path] | dict[Path, Change] = ()) -> None:
        """Send the texts of open files that something else has changed on the disk."""
        for path, document in list(self._documents.open.items()):
            if path in besides:
                continue
            try:
                if _stamp(path) == document.stamp:
                    continue
                text, stamp = await anyio.to_thread.run_sync(_read, path)
            except (OSError, ValueError):
                self._close(path)
                continue
            document.stamp = stamp
            self._set_text(path, text)

    def _set_text(self, path: Path, text: str) -> None:
        document = self._documents.open.get(path)
        if document is None:
            self._open(path, text)
        elif document.text != text and self._client is not None:
            document.text, document.version = text, document.version + 1
            self._documents.change(path)
            self._client.change(path, document.version, text)

    def _open(self, path: Path, text: str) -> Document:
        self._used += 1
        language = self.server.config.extensions[path.suffix.lower()]
        document = self._documents.open[path] = Document(path, language, text, used=self._used)
        self._documents.change(path)
        if self._client is not None:
            self._client.open(path, language, text)
        return document

    def _close(self, path: Path) -> None:
        if self._documents.open.pop(path, None) is not None and self._client is not None:
            self._client.close(path)

    def _close_oldest(self, besides: dict[Path, Change]) -> None:
        used = sorted(self._documents.open.values(), key=lambda document: document.used)
        for document in used[: max(0, len(used) - MOST_OPEN)]:
            if document.path not in besides:
                self._close(document.path)

    async def _open_related(self, path: Path, change: Change) -> None:
        words = words_of(path, change.before or "", change.after or "")
        extensions = self.server.config.extensions.keys()
        related = await anyio.to_thread.run_sync(
            related_files, self.root, path, extensions, words, MOST_RELATED, abandon_on_cancel=True
        )
        for other in related:
            self._used += 1
            if (document := self._documents.open.get(other)) is not None:
                document.used = self._used
                continue
            try:
                text, stamp = await anyio.to_thread.run_sync(_read, other)
            except (OSError, ValueError):
                continue
            self._open(other, text).stamp = stamp

    def _apply(self, client: Client, path: Path, change: Change) -> None:
        if change.after is None:
            self._close(path)
            self._documents.forget(path)
            client.touch(path, "deleted", None)
            if (other := next(iter(self._documents.open.values()), None)) is not None:
                # Some servers look at other files only when something is saved.
                client.save(other.path, other.text)
            return
        is_new = path not in self._documents.open
        if is_new:
            file = self._documents.file(path)
            file.known, file.known_text = [], ""
        self._set_text(path, change.after)
        self._documents.open[path].stamp = _stamp_of_text(path, change.after)
        client.touch(path, "created" if is_new else "changed", change.after)

    # --- diagnostics --------------------------------------------------------------------------------------------

    async def _until_loaded(self) -> None:
        """Wait until the server has loaded its project, as far as it says so.

        Raises:
            ServerFailedError: it takes too long.
        """
        with anyio.move_on_after(LOADING_S):
            while self._is_busy():
                with anyio.move_on_after(LOOK_S):
                    await self._documents.heard.wait()
            return
        raise ServerFailedError("it does not finish loading the project")

    async def _collect(self, paths: Sequence[Path]) -> None:
        """Wait for diagnostics of the present texts of open files, and until the server is quiet.

        Raises:
            ServerFailedError: the server does not answer.
        """
        if self._client is None or not self._client.pulls:
            await self._until_pushed(paths)
            await self._until_quiet()
            return
        for _ in range(MOST_PULLS):
            async with anyio.create_task_group() as tasks:
                for path in [*self._documents.open]:
                    tasks.start_soon(self._pull, path)
            if not await self._until_quiet():
                return
            # It was at work, perhaps loading the project: its answers may be others now.

    async def _until_quiet(self) -> bool:
        """Wait until the server is quiet and not at work; return whether it was at work."""
        documents, was_busy = self._documents, False
        with anyio.move_on_after(LOADING_S):
            while (left := documents.heard_at + QUIET_S - anyio.current_time()) > 0 or self._is_busy():
                was_busy |= self._is_busy()
                with anyio.move_on_after(left if left > 0 else LOOK_S):
                    await documents.heard.wait()
        return was_busy

    async def _until_checked(self) -> None:
        """Wait until the checks of a change have ended, or there is another change."""
        self._is_checking = True
        try:
            with anyio.move_on_after(LOADING_S):
                while not self._queue and self._is_busy(checks=True):
                    with anyio.move_on_after(LOOK_S):
                        await self._news.wait()
        finally:
            self._is_checking = False

    async def _until_pushed(self, paths: Sequence[Path]) -> None:
        documents = self._documents

        async def said_something() -> None:
            while not all(documents.file(path).fresh for path in paths):
                await documents.heard.wait()

        if self._versioned is not None:
            with anyio.move_on_after(SAYS_SOMETHING_S):
                await said_something()
                return
        began = anyio.current_time()
        client, silent = self._client, [path for path in paths if not documents.file(path).fresh]
        if client is not None and (asked := silent or paths):
            with suppress(RefusedError):
                await client.answer(client.symbols(asked[0]), self.server.config.timeout_s)
        if self._versioned is None:
            # While it loads the project, a server may talk about the texts on the disk.
            for path in paths:
                documents.change(path)
        with anyio.move_on_after(max(SILENCE_S, 5 * (anyio.current_time() - began))):
            await said_something()
        self._versioned = self._versioned or False

    async def _pull(self, path: Path) -> None:
        limit_s = self.server.config.timeout_s
        end = anyio.current_time() + limit_s
        while (client := self._client) is not None and anyio.current_time() < end:
            try:
                diagnostics = await client.answer(client.pull(path), limit_s)
            except RefusedError:
                return
            if diagnostics is not None:
                self._documents.pull(path, self._certain(diagnostics))
                return
            await anyio.sleep(RETRY_S)

    def _assume_clean(self) -> None:
        """Take what a server has said so far about an open file, perhaps nothing, as all that it has to say."""
        if self._client is None or self._client.pulls:
            return
        for path, document in self._documents.open.items():
            file = self._documents.file(path)
            if file.known is None:
                file.known, file.known_text = file.latest, document.text
                file.assumed = self._is_first and not file.fresh

    # --- from the server ----------------------------------------------------------------------------------------

    def published(self, path: Path, version: int | None, diagnostics: Sequence[Any]) -> None:
        """See :class:`jumpseat.lsp.client.Listener`."""
        if path in self._documents.open:
            if version is not None:
                self._versioned = True
            elif self._versioned:
                # It is about the text on the disk.
                return
        self._documents.push(path, version, self._certain(diagnostics))

    def _certain(self, diagnostics: Sequence[Any]) -> Sequence[Any]:
        """Return what can be relied on: of a server without the standard library, what a compiler says."""
        return diagnostics if self._is_healthy else [one for one in diagnostics if one.source != self.server.name]

    def progressed(self, token: int | str, state: Progress) -> None:
        """See :class:`jumpseat.lsp.client.Listener`."""
        if state == "ended":
            self._progress.pop(token, None)
            self._has_built = self._has_built or CHECKS in str(token)
        elif token in self._progress or len(self._progress) < MOST_PROGRESS:
            limit_s = BEGIN_S if state == "created" else LOADING_S
            self._progress[token] = anyio.current_time() + limit_s
        self._documents.hear()
        self._wake()

    def _is_busy(self, *, checks: bool = False) -> bool:
        """Return whether the server says that it is at work; with ``checks``, also if it only checks a change."""
        now = anyio.current_time()
        running = [token for token, end in self._progress.items() if end > now]
        return not self._is_ready or any(checks or CHECKS not in str(token) for token in running)

    def reported(self, *, ready: bool, healthy: bool) -> None:
        """See :class:`jumpseat.lsp.client.Listener`."""
        self._is_ready, self._is_healthy = ready, healthy
        self._documents.hear()


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _read(path: Path) -> tuple[str, tuple[int, int]]:
    """Return the text of a file, and its state.

    Raises:
        OSError, ValueError: the file cannot be read, or is too large.
    """
    stamp = _stamp(path)
    return read_whole(path, LARGEST_FILE).decode("utf-8", "replace"), stamp


def _stamp(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size


def _stamp_of_text(path: Path, text: str) -> tuple[int, int] | None:
    """Return the state of a file if it has this text, as far as its size shows."""
    try:
        stamp = _stamp(path)
    except OSError:
        return None
    return stamp if stamp[1] == len(text.encode("utf-8", "replace")) else None
