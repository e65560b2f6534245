"""Methods of the process: handshake, health, login, shutdown, secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import Field, StrictBool

from jumpseat_protocol.wire import Method, WireDataclass, WireModel, wire_dataclass


class EmptyParams(WireModel):
    """For methods without params."""


class ConnectParams(WireModel):
    """``token`` is the connection token, if the server has one."""

    token: str | None = Field(default=None, repr=False)
    enable_git_hub_telemetry_forwarding: StrictBool | None = None


@wire_dataclass
class ConnectResult(WireDataclass):
    ok: StrictBool = True
    protocol_version: int
    version: str


class PingParams(WireModel):
    message: str | None = None


@wire_dataclass
class PingResult(WireDataclass):
    """``timestamp`` is ISO 8601 for clients that have sent ``connect``, Unix milliseconds for older ones."""

    message: str
    timestamp: str | int
    protocol_version: int


class StatusResult(WireModel):
    version: str
    protocol_version: int


class AuthStatusResult(WireModel):
    is_authenticated: StrictBool
    auth_type: str | None = None
    host: str | None = None
    login: str | None = None
    status_message: str | None = None


class AddFilterValuesParams(WireModel):
    """The values to mask in events, logs and errors, each with at least four characters."""

    values: list[str] = Field(repr=False)


class OkResult(WireModel):
    ok: StrictBool = True


@wire_dataclass
class SuccessResult(WireDataclass):
    success: StrictBool = True
    error: str | None = None


class EmptyResult(WireModel):
    """``{}``, for methods that return nothing."""


METHODS: Final[Mapping[str, Method]] = {
    "connect": Method(ConnectParams, ConnectResult),
    "ping": Method(PingParams, PingResult),
    "status.get": Method(EmptyParams, StatusResult),
    "auth.getStatus": Method(EmptyParams, AuthStatusResult),
    "runtime.shutdown": Method(EmptyParams, None),
    "secrets.addFilterValues": Method(AddFilterValuesParams, OkResult),
}
