"""The life of the process: it opens the doors, ends on a signal or at the end of its input, and exits.

One root task group owns every task. The process ends at the end of stdin (stdio), on SIGTERM, SIGINT or SIGHUP,
or on ``runtime.shutdown``: sessions are stopped and written, children are killed, and the process exits within half
a second, or within :data:`END_S` if a thread does not return.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import anyio
from anyio.abc import TaskGroup
from pydantic import VERSION

from jumpseat.adapters.providers import environment_providers
from jumpseat.app import App
from jumpseat.config import has_store_section, home_folder, load_config
from jumpseat.errors import ConfigError, JumpseatError, UnknownToolError
from jumpseat.observability.log_setup import log_to_stderr
from jumpseat.options import Options
from jumpseat.rpc.transport import Stdio, Wire, open_stdio, take_stdio
from jumpseat.sessions.idle import IdleSessions
from jumpseat.system.process_memory import use_one_arena
from jumpseat.system.watchdog import end_within, watch_loop
from jumpseat_protocol.lazy_models import IS_TESTED, NEWEST_TESTED

if TYPE_CHECKING:
    from jumpseat.cluster.cluster import Cluster

log = logging.getLogger(__name__)

# Time after which the process ends although something in it does not, such as a read from a disk that hangs.
END_S: Final = 5.0
USAGE_ERROR: Final = 2
_ENDING: Final = {signal.SIGTERM, signal.SIGINT, *((signal.SIGHUP,) if sys.platform != "win32" else ())}


def run(options: Options) -> NoReturn:
    """Serve until the process ends; exit with the exit code."""
    # Before the first thread.
    use_one_arena()
    stdio: Stdio | None = None
    code = 1
    try:
        log_to_stderr(
            options.log_level, options.log_format, Path(options.log_dir).absolute() if options.log_dir else None
        )
        if not IS_TESTED:
            log.warning(
                "pydantic %s is newer than the tested %d.%d: the server starts a third slower, with more memory",
                *(VERSION, *NEWEST_TESTED),
            )
        # Before any output: on stdio, fd 1 belongs to the protocol.
        stdio = take_stdio() if options.on_stdio else None
        anyio.run(_serve_and_exit, options, stdio)
    except* JumpseatError as group:
        for error in group.exceptions:
            print(f"error: {error}", file=sys.stderr)  # noqa: T201 - the SDKs show this to their users
        if group.subgroup(UnknownToolError):
            code = USAGE_ERROR
    _exit(code, stdio)


async def _serve_and_exit(options: Options, stdio: Stdio | None) -> None:
    with watch_loop():
        failure = await _serve(options, stdio)
    if failure is not None:
        raise JumpseatError(failure)
    # The event loop is left open: a second signal that arrives while it closes would end the process with another
    # exit code, or be reported on stderr.
    _exit(0, stdio)


async def _limit_end(app: App, seconds: float, leave: Callable[[], None]) -> None:
    """Limit the time from the beginning of the end, whatever the reason, to the end of the process."""
    try:
        await app.wait_stopped()
    finally:
        end_within(seconds, leave)


def _exit(code: int, stdio: Stdio | None) -> NoReturn:
    """Exit without the interpreter's own clean-up: everything is written and closed."""
    sys.stderr.flush()
    # Linux closes the last file first, and a client that sees the end of the output may still send a request.
    with suppress(OSError):
        if stdio is not None:
            stdio.stdin.close()
        os.close(0)
    os._exit(code)


async def _serve(options: Options, stdio: Stdio | None) -> str | None:
    """Serve until the end; returns the reason if stdin or stdout could not be used any more."""
    wire: Wire | None = None
    async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
        cluster = await _join_cluster(options, tasks, stack)
        app = App(options, tasks, cluster)
        await app.check_tools()
        if cluster is not None:
            cluster.serve(app.doors)

        def leave() -> None:
            failed = not app.stopping or (wire is not None and wire.failure is not None)
            # Closed if it has ended.
            with suppress(OSError, ValueError):
                if stdio is not None:
                    os.close(stdio.stdin.fileno())
            os._exit(int(failed))

        tasks.start_soon(_limit_end, app, END_S if cluster is None else cluster.longest_end_s, leave)
        loop = asyncio.get_running_loop()
        for number in _ENDING:
            if sys.platform == "win32":
                # Event loops of Windows receive no signals: a handler of the process wakes the loop.
                signal.signal(number, lambda _number, _frame: loop.call_soon_threadsafe(app.stop))
            elif number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                # `nohup` makes a process ignore SIGHUP.
                loop.add_signal_handler(number, app.stop)
        await app.observability.serve(tasks, app.state)
        if options.session_idle_s is not None:
            tasks.start_soon(IdleSessions(app.registry, options.session_idle_s).run)
        if stdio is not None:
            wire = app.doors.connect_stdio()
            tasks.start_soon(open_stdio, wire, stdio)
        if options.tcp is None:
            await app.wait_stopped()
        else:
            from jumpseat.network.serving import serve_tcp

            await serve_tcp(options.tcp, app.doors, app.wait_stopped)
        await app.close()
        tasks.cancel_scope.cancel()
    return wire.failure if wire is not None else None


async def _join_cluster(options: Options, tasks: TaskGroup, stack: AsyncExitStack) -> Cluster | None:
    """Join the cluster of the configuration until ``stack`` ends; returns ``None`` if there is none.

    Raises:
        ConfigError: a setting of the cluster is wrong.
        StoreError: the store of the cluster cannot be reached.
    """
    home = home_folder(options.environ)
    if not has_store_section(home):
        return None
    config = load_config(home, environment_providers()).store
    if config.url is None:
        return None
    if options.acp or options.ahp:
        raise ConfigError("store.url is not available with --acp and --ahp: they keep sessions in files")
    try:
        from jumpseat.cluster.cluster import join_cluster
        from jumpseat.cluster.nats.settings import cluster_settings
    except ImportError:
        from jumpseat.system.installation import how_to_add

        raise ConfigError(f"store.url needs the package nats-py: {how_to_add('cluster')}") from None
    settings = cluster_settings(config, options.environ)
    return await stack.enter_async_context(join_cluster(settings, home, tasks))
