"""The protocols of scripts and recordings: all that differs between them for a player.

A protocol is added by an entry of :data:`PROTOCOLS`, by its rules, and by a rule in :func:`protocol_of` if
recordings are in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from jumpseat_protocol.json_values import as_object
from jumpseat_testkit.acp_rules import Acp1Rules, Acp2Rules
from jumpseat_testkit.ahp_rules import AhpRules
from jumpseat_testkit.copilot_rules import CopilotRules
from jumpseat_testkit.rules import Rules
from jumpseat_testkit.running import python_command

Framing: TypeAlias = Literal["content-length", "lines", "messages"]
"""How messages are told apart: headers, lines, or the messages of a WebSocket."""
ProtocolName: TypeAlias = Literal["copilot", "copilot-2", "copilot-3", "acp-1", "acp-2", "ahp"]

_JUMPSEAT: Final = tuple(python_command("jumpseat"))
_COPILOT_COMMAND: Final = (*_JUMPSEAT, "--headless", "--stdio", "--no-auto-login")
_ACP_COMMAND: Final = (*_JUMPSEAT, "acp", "--no-auto-login")


class Request(NamedTuple):
    """A request, and a pattern of its result."""

    method: str
    params: Mapping[str, Any]
    result: Any = "<any>"


_PING: Final = Request("ping", {})


class Feed(Struct, frozen=True):
    """The notification that carries what happens in a session, and where its parts are in ``params``.

    ``kind`` is the member of the event with its type.
    """

    method: str
    session: str
    event: str
    kind: str

    def event_of(self, message: Any, session: str | None = None) -> dict[str, Any] | None:
        """Return the event that a message carries, ``None`` for other messages and for those of other sessions."""
        fields = as_object(message)
        params = as_object(fields.get("params"))
        if fields.get("method") != self.method or session not in (None, params.get(self.session)):
            return None
        return as_object(params.get(self.event))


class Protocol(Struct, frozen=True):
    """A protocol.

    ``command`` starts a server of ours. ``greeting`` is the request with which a connection begins. ``ping`` is a
    request that a server answers, if only with an error, behind everything that it had to send before.
    ``has_schema``: the package of the protocol has its schema. ``has_own_models``: clients choose among the models
    of the server.
    """

    command: Sequence[str]
    framing: Framing
    greeting: Request
    feed: Feed
    rules: Callable[[], Rules]
    ping: Request = _PING
    has_schema: bool = False
    has_own_models: bool = False


_EVENTS: Final = Feed("session.event", "sessionId", "event", "type")
_UPDATES: Final = Feed("session/update", "sessionId", "update", "sessionUpdate")
# The Agent Client Protocol has no ping; methods with an underscore belong to nobody.
_UNKNOWN: Final = Request("_ping", {})
_ACTIONS: Final = Feed("action", "channel", "action", "type")

_COPILOT_3: Final = Protocol(
    _COPILOT_COMMAND, "content-length", Request("connect", {}), _EVENTS, CopilotRules, has_schema=True
)
_COPILOT_2: Final = Protocol(_COPILOT_COMMAND, "content-length", _PING, _EVENTS, CopilotRules)
_ACP_1: Final = Protocol(
    _ACP_COMMAND,
    "lines",
    Request("initialize", {"protocolVersion": 1, "clientCapabilities": {}}, {"protocolVersion": 1}),
    _UPDATES,
    Acp1Rules,
    _UNKNOWN,
    has_own_models=True,
)
_ACP_2: Final = Protocol(
    _ACP_COMMAND,
    "lines",
    Request(
        "initialize",
        {"protocolVersion": 2, "info": {"name": "script", "version": "1"}, "capabilities": {}},
        {"protocolVersion": 2, "info": "<object>"},
    ),
    _UPDATES,
    Acp2Rules,
    _UNKNOWN,
    has_own_models=True,
)
_AHP: Final = Protocol(
    (*_JUMPSEAT, "ahp", "--no-auto-login"),
    "lines",
    Request(
        "initialize",
        {"channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": "script"},
        {"protocolVersion": "1.0.0"},
    ),
    _ACTIONS,
    AhpRules,
    Request("ping", {"channel": "ahp-root://"}),
    has_own_models=True,
)

PROTOCOLS: Final[Mapping[ProtocolName, Protocol]] = {
    "copilot": _COPILOT_3,
    "copilot-2": _COPILOT_2,
    "copilot-3": _COPILOT_3,
    "acp-1": _ACP_1,
    "acp-2": _ACP_2,
    "ahp": _AHP,
}


def is_missing(command: Sequence[str]) -> bool:
    """Return whether a command is one of ours, and jumpseat is not installed here."""
    return tuple(command[: len(_JUMPSEAT)]) == _JUMPSEAT and find_spec("jumpseat") is None


PORT: Final = "${port}"
"""The place of the server's port, in its address and in the command that starts it."""
OUR_LISTENERS: Final[Mapping[str, Sequence[str]]] = {
    "ws": (*_JUMPSEAT, "--ws-port", PORT, "--no-token", "--no-auto-login"),
    "tcp": (*_JUMPSEAT, "--headless", "--port", PORT, "--no-token", "--no-auto-login"),
}
"""How a server of ours is started for a URL with such a place."""


def model_variables(url: str) -> dict[str, str | None]:
    """Return the environment in which agents use the model at ``url``, an OpenAI-compatible endpoint."""
    return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "OPENAI_MODEL": "scripted"}


def name_of(messages: Iterable[Any]) -> ProtocolName:
    """Return the protocol of a conversation, by the first messages of the client."""
    for message in map(as_object, messages):
        params, method = as_object(message.get("params")), message.get("method")
        if method in ("initialize", "reconnect") and "channel" in params:
            # Clients of the Agent Host Protocol offer several versions, in the root channel.
            return "ahp"
        if method == "initialize" and "protocolVersion" in params:
            return "acp-2" if params["protocolVersion"] == 2 else "acp-1"
        if method is not None:
            return "copilot-2" if method == "ping" else "copilot"
    return "copilot"


def protocol_of(messages: Iterable[Any]) -> Protocol:
    """Return the protocol of a recorded conversation, by the client's handshake."""
    return PROTOCOLS[name_of(messages)]


SPOKEN: Final[tuple[ProtocolName, ...]] = ("copilot", "acp-1", "acp-2", "ahp")
"""The protocols that a peer with faults speaks."""
