"""One language server of a session: its life, and the changes that it is shown.

A server starts with the first change of one of its files. Changes wait in a queue; what they have brought is
collected for the next result of a tool. Whatever a server does, nothing else fails: a server that crashes or hangs
is started again, a few times, and its diagnostics are missing until then.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec import Struct

from jumpseat.lsp.catalogue import LanguageServer
from jumpseat.lsp.delta import Diagnostic
from jumpseat.lsp.open_files import Change
from jumpseat.lsp.process import RefusedError, ServerFailedError, running
from jumpseat.lsp.run import Run
from jumpseat.lsp.text_edits import TextEdit
from jumpseat.sandbox.session import SessionSandbox

if TYPE_CHECKING:
    from jumpseat.lsp.client import Client

log = logging.getLogger(__name__)

T = TypeVar("T")

BACKOFF_S: Final = (0.0, 5.0, 30.0)
"""Pauses after failures of a server, which is started again that often."""


class Limits(Struct, frozen=True):
    """The limits of all servers; ``warnings`` are told as well as errors."""

    idle_s: float = 600.0
    memory_bytes: int = 4096 << 20
    warnings: bool = False


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
        self._given = self._done = 0
        self._news = anyio.Event()
        self._used = 0
        # The last run, and the present one if it answers requests.
        self._last: Run | None = None
        self._run: Run | None = None

    # --- from the session ---------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Return whether the server answers requests."""
        return self._run is not None

    @property
    def is_behind(self) -> bool:
        """Return whether an earlier change is still at work."""
        return self._done < self._given and not (self._last is not None and self._last.is_checking)

    def submit(self, path: Path, change: Change) -> None:
        """Show a change to the server as soon as possible."""
        self.start()
        if self._scope is None:
            return
        earlier = self._queue.pop(path, None)
        self._queue[path] = change if earlier is None else Change(earlier.before, change.after, change.names)
        self._given += 1
        self._wake()
        if self._run is not None:
            self._run.documents.wake()

    def start(self) -> None:
        """Start the server, unless it runs or has failed too often."""
        if self._scope is None and not self.failed and anyio.current_time() >= self._rests_until:
            self._scope, self._ended = anyio.CancelScope(), anyio.Event()
            self._tasks.start_soon(self._live, self._scope)

    async def wait(self) -> None:
        """Wait until the changes that were submitted so far have been looked at, or the server has failed."""
        given = self._given
        while self._done < given and not self.failed:
            await self._news.wait()

    async def take(self) -> list[tuple[Path, Diagnostic]]:
        """Return the new diagnostics since the last call."""
        run = self._last
        return [] if self.failed or run is None else await run.documents.take({*self._queue, *run.showing})

    def text_of(self, path: Path) -> str:
        """Return the text of a file; empty if it is not open."""
        document = None if self._last is None else self._last.documents.open.get(path)
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
                while (run := self._run) is None:
                    self.start()
                    if self._scope is None:
                        raise ServerFailedError("it does not run")
                    await self._news.wait()
                # Changes that it has not been shown come first.
                await self.wait()
                if run is not self._run:
                    raise ServerFailedError("it has ended")
                await run.files.synchronize()
                await run.files.open(path)
                await run.work.until_loaded()
            return await run.client.answer(request(run.client), limit_s)
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

    async def _live(self, scope: anyio.CancelScope) -> None:
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
        server = self.server
        if self._needs_sandbox and not await self._is_confined():
            raise ServerFailedError("it runs unconfined in trusted folders only")
        # In a thread: pygls and lsprotocol take half a second to load.
        run, initialize = await anyio.to_thread.run_sync(self._make_run)
        environ = {**self._environ(), **server.env}
        self._last = run
        argv = [server.program, *server.config.args]
        memory = self._limits.memory_bytes
        try:
            async with (
                running(run.client, argv, self.root, environ, self._sandbox, memory_bytes=memory) as read,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(read)
                try:
                    await self._serve(run, initialize)
                finally:
                    self._run = None
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

    def _make_run(self) -> tuple[Run, Any]:
        from jumpseat.lsp.client import initialize_params

        run = Run(self.server, self.root, warnings=self._limits.warnings)
        return run, initialize_params(self.root, self.server.config.initialization_options)

    async def _serve(self, run: Run, initialize: Any) -> None:
        try:
            await run.begin(initialize)
        except RefusedError as error:
            raise ServerFailedError(f"it refuses to start: {error}") from None
        self._run = run
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
            changes, self._queue = self._queue, {}
            await run.show(changes, lambda: bool(self._queue))
            self._done = given
            self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = anyio.Event()


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
