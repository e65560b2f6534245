"""Methods of the process: handshake, health, login, shutdown, secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import Field, StrictBool

from jumpseat_protocol.limits import KeyText
from jumpseat_protocol.wire import Method, WireModel, WireStruct, always


class EmptyParams(WireModel):
    """For methods without params."""


class ConnectParams(WireModel):
    """``token`` is the connection token, if the server has one."""

    token: KeyText | None = Field(default=None, repr=False)
    """The token of the connection."""
    enable_git_hub_telemetry_forwarding: StrictBool | None = None
    """Whether the client is sent telemetry events."""


class ConnectResult(WireStruct, kw_only=True):
    ok: StrictBool = always(True)
    """Always true."""
    protocol_version: int
    """The version of the protocol."""
    version: str
    """The version of the server."""


class PingParams(WireModel):
    message: str | None = None
    """A text that comes back."""


class PingResult(WireStruct, kw_only=True):
    """``timestamp`` is ISO 8601 for clients that have sent ``connect``, Unix milliseconds for older ones."""

    message: str
    """The text."""
    timestamp: str | int
    """The time of the server."""
    protocol_version: int
    """The version of the protocol."""


class StatusResult(WireModel):
    version: str
    """The version of the server."""
    protocol_version: int
    """The version of the protocol."""


class AuthStatusResult(WireModel):
    is_authenticated: StrictBool
    """Whether there is a login."""
    auth_type: str | None = None
    """Where the login comes from."""
    host: str | None = None
    login: str | None = None
    status_message: str | None = None
    """What people can be told about it."""


class AddFilterValuesParams(WireModel):
    """The values to mask in events, logs and errors, each with at least four characters."""

    values: list[str] = Field(repr=False)
    """The values to mask."""


class OkResult(WireModel):
    ok: StrictBool = True
    """Always true."""


class SuccessResult(WireStruct, kw_only=True):
    success: StrictBool = always(True)
    error: str | None = None


class EmptyResult(WireModel):
    """``{}``, for methods that return nothing."""


METHODS: Final[Mapping[str, Method]] = {
    "connect": Method(ConnectParams, ConnectResult, "Begin the connection, with its token if the server has one."),
    "ping": Method(PingParams, PingResult, "Return the text, to see that the server answers."),
    "status.get": Method(EmptyParams, StatusResult, "Return the versions of the server and the protocol."),
    "auth.getStatus": Method(
        EmptyParams,
        AuthStatusResult,
        "Return the login at the Copilot API or, without a token, the configured provider.",
    ),
    "runtime.shutdown": Method(EmptyParams, None, "End the process after what runs has been stored."),
    "secrets.addFilterValues": Method(AddFilterValuesParams, OkResult, "Mask values in events, logs and errors."),
}
