"""The network of one session's confined commands, and the hosts that they reach.

Commands run in a network namespace of their own (``namespace.py``), and a proxy (``proxy.py``) is the only way out.
The proxy connects to the hosts in the settings and to those that were approved with a running command; a person is
asked about any other host while the connection waits. Without namespaces, a command reaches all hosts or none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

import anyio
import anyio.to_thread
from anyio.abc import ByteStream, SocketListener, TaskGroup
from msgspec import Struct, field

from jumpseat.sandbox.settings import SandboxSettings, any_matches, normalize
from jumpseat.sandbox.view import Namespace

if TYPE_CHECKING:
    from jumpseat.sandbox.mechanisms import Mechanism

    # Imported with the first command: most processes run none.
    from jumpseat.sandbox.namespace import OpenNamespace
    from jumpseat.sandbox.proxy import Connect, Target

CONNECTING: Final = "connecting to "
"""The beginning of a refusal that names a host."""

log = logging.getLogger(__name__)

LOCAL: Final = "localhost,127.0.0.1,::1"
"""The hosts that programs reach without the proxy: loopback in the namespace."""

_PROXY_VARIABLES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


class Reach(Struct, eq=False):
    """The hosts that one command may reach, and the connections that were refused while it ran.

    ``approved`` is false for a command that runs unasked because it is confined. ``hosts`` are those that an
    approved command names, or that its package managers load from. Questions about other hosts show ``command``,
    the text of the command, and belong to ``call_id``, its tool call.
    """

    approved: bool = False
    hosts: tuple[str, ...] = ()
    command: str = ""
    call_id: str | None = None
    refused: list[str] = field(default_factory=list[str])


class HostJudge(Protocol):
    """Judges hosts that neither the settings nor the command name."""

    def forbids(self, url: str) -> bool:
        """Return whether a rule denies the URL."""
        ...

    async def allows(self, url: str, reach: Reach) -> bool:
        """Decide whether the command may connect; may wait for a person."""
        ...


class SessionNetwork:
    """The network of one session. The proxy runs in ``tasks``."""

    def __init__(
        self,
        settings: Callable[[], SandboxSettings],
        tasks: TaskGroup,
        judge: HostJudge,
        connect: Connect,
        environ: Callable[[], Mapping[str, str]],
    ) -> None:
        self._settings = settings
        self._tasks = tasks
        self._judge = judge
        self._connect = connect
        self._environ = environ
        self._open: OpenNamespace | None = None
        self._tried = False
        self._scope = anyio.CancelScope()
        self._running: list[Reach] = []
        self._answers: dict[str, bool] = {}
        self._asking = anyio.Lock()

    async def open(self, mechanism: Mechanism) -> Namespace | None:
        """Return the namespace of the session's commands, opened at the first call; ``None`` without namespaces.

        Raises:
            OSError: the namespace was ended meanwhile.
        """
        if not self._tried:
            from jumpseat.sandbox.namespace import open_namespace

            try:
                self._open = await anyio.to_thread.run_sync(open_namespace, mechanism, self._environ())
            except OSError as error:
                self._tried = True
                log.info("commands reach no approved hosts with %s: %s", mechanism.name, error)
                return None
            self._tried = True
            self._tasks.start_soon(self._serve, self._open, name="sandbox proxy")
        if self._open is None:
            return None
        self._open.check()
        return self._open.namespace

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables to add to ``environ`` so that programs use the proxy; empty without a proxy."""
        if self._open is None:
            return {}
        port = str(self._open.port)
        java = " ".join(
            f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={port}" for scheme in ("http", "https")
        )
        variables = dict.fromkeys(_PROXY_VARIABLES, f"http://127.0.0.1:{port}")
        variables |= {"NO_PROXY": LOCAL, "no_proxy": LOCAL}
        # Gradle and Maven do not read the variables above.
        for name in ("GRADLE_OPTS", "MAVEN_OPTS"):
            variables[name] = " ".join(filter(None, (environ.get(name), java)))
        return variables

    def begin(self, reach: Reach) -> None:
        """Open the hosts of a command that starts, and forget the refusals of earlier commands."""
        if not self._running:
            # Answers for processes that an ended command left behind.
            self._answers.clear()
        self._running.append(reach)
        self._answers = {host: answer for host, answer in self._answers.items() if answer}

    def end(self, reach: Reach) -> None:
        """Revoke the hosts of a command that has ended."""
        self._running = [running for running in self._running if running is not reach]
        if not self._running:
            self._answers.clear()

    def close(self) -> None:
        """End all connections."""
        self._scope.cancel()

    async def _serve(self, opened: OpenNamespace) -> None:
        from jumpseat.sandbox.proxy import HostProxy

        proxy = HostProxy(self.admit, self._reach)
        try:
            with self._scope:
                async with await SocketListener.from_socket(opened.listener) as listener:
                    await listener.serve(proxy.serve)
        finally:
            opened.close()

    async def admit(self, target: Target) -> str | None:
        """Decide about a connection; return the reason for a refusal, ``None`` to connect."""
        if await self._is_admitted(target):
            return None
        self._report(target.host)
        return f"{target.host} is not among the hosts that this session may reach"

    async def _is_admitted(self, target: Target) -> bool:
        settings, host = self._settings(), target.host
        if settings.network == "none" or any_matches(settings.blocked_hosts, host, subdomains=True):
            return False
        if self._judge.forbids(target.url):
            return False
        if settings.network == "all" or any_matches(settings.hosts, host):
            return True
        if not settings.asks:
            return False
        if any(host in reach.hosts for reach in self._running if reach.approved):
            return True
        # Programs open several connections to a host at a time, and a person answers one question at a time.
        async with self._asking:
            if host not in self._answers:
                reach = self._running[-1] if self._running else Reach()
                self._answers[host] = await self._judge.allows(target.url, reach)
            return self._answers[host]

    async def _reach(self, target: Target) -> ByteStream:
        from jumpseat.sandbox.proxy import UnreachableError

        settings = self._settings()
        listed = target.host in map(normalize, settings.hosts)
        try:
            return await self._connect(
                target.host, target.port, private=listed or settings.local_network, proxy=settings.proxy
            )
        except UnreachableError as error:
            self._report(f"{target.host} ({error})")
            raise

    def _report(self, refused: str) -> None:
        """Record a refused connection for each running command: it is unknown which of them connected."""
        for reach in self._running:
            if (text := f"{CONNECTING}{refused}") not in reach.refused:
                reach.refused.append(text)
