"""The options of a server process, parsed from its arguments and environment by ``cli/arguments.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from jumpseat_protocol.structs import Discreet

LOG_LEVELS = ("none", "error", "warning", "info", "debug", "all")

LogFormat: TypeAlias = Literal["text", "json"]


class Options(Discreet, Struct, frozen=True):
    """The options of a server process. Without ``tcp``, it serves stdio.

    ``environ`` holds the variables that are not empty, ``empty`` the names of the others: empty variables count as
    unset for the server itself, but as set where a declaration names them. ``metrics_port`` is that of health and
    metrics, on loopback and at ``metrics_host``, where scrapers present ``metrics_token`` if there is one. Sessions
    are closed after ``session_idle_s`` seconds without a client. ``allow_old_clients`` applies unless the
    configuration has the setting. ``keep_model_calls`` keeps the usage of each call with its session. ``tools``
    are the names of tools, or that of a set, for sessions whose clients choose none.
    """

    hidden = ("environ", "auth_token", "metrics_token")
    environ: Mapping[str, str]
    tcp: TcpOptions | None = None
    empty: frozenset[str] = frozenset()
    log_level: str = "warning"
    log_format: LogFormat = "text"
    log_dir: str | None = None
    metrics_port: int | None = None
    metrics_host: str | None = None
    metrics_token: str | None = None
    session_idle_s: int | None = None
    auth_token: str | None = None
    auto_login: bool = True
    allow_unasked: bool = False
    allow_old_clients: Literal[False, "client_tools"] = False
    protocol: int | None = None
    acp: bool = False
    ahp: bool = False
    tools: tuple[str, ...] | None = None
    record: str | None = None
    replay: Replay | None = None
    plugin_dirs: tuple[str, ...] = ()
    keep_model_calls: bool = True

    @property
    def on_stdio(self) -> bool:
        """Return whether a client is served on stdin and stdout."""
        return self.tcp is None or self.acp or self.ahp

    @property
    def whole_environ(self) -> Mapping[str, str]:
        """All variables, empty ones too, for values of declarations."""
        return {**self.environ, **dict.fromkeys(self.empty, "")}


class TcpOptions(Discreet, Struct, frozen=True):
    """The options of a server that listens.

    ``port`` 0 is any free port. ``host`` is the address to listen on, ``None`` loopback over IPv4 and IPv6. Clients
    present ``token`` or, with ``named_tokens``, one of ``jumpseat token``; if there is none, the server makes one.
    With ``same_user``, clients need no token, and only processes of the same user are served. ``tls`` are the
    paths of a certificate and its key.

    ``web_port`` is the port of WebSocket clients and of the page; without ``serves_tcp``, it is the only one.
    ``web_origins`` are further origins of the page. ``page`` is whether its address is printed, or opened too.
    """

    hidden = ("token",)
    port: int = 0
    host: str | None = None
    token: str | None = None
    named_tokens: bool = True
    same_user: bool = False
    tls: tuple[str, str] | None = None
    serves_tcp: bool = True
    web_port: int | None = None
    web_origins: tuple[str, ...] = ()
    page: Literal["print", "open"] | None = None


class Replay(Struct, frozen=True):
    """Replay of model calls from the recordings in ``folder``; see ``adapters/recording/replayer.py``."""

    folder: str
    in_order: bool = False
    delays: bool = False


def options_of_environ(environ: Mapping[str, str]) -> Options:
    """Return the options of a process without arguments."""
    variables, empty = split_environ(environ)
    replay = variables.get("JUMPSEAT_REPLAY")
    return Options(
        environ=variables,
        empty=empty,
        record=variables.get("JUMPSEAT_RECORD"),
        replay=Replay(replay) if replay else None,
    )


def split_environ(environ: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str]]:
    """Return the variables that are not empty, and the names of the empty ones."""
    return {name: value for name, value in environ.items() if value}, frozenset(
        name for name, value in environ.items() if not value
    )
