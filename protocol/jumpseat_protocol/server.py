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
    enable_git_hub_telemetry_forwarding: StrictBool | None = None


class ConnectResult(WireStruct, kw_only=True):
    ok: StrictBool = always(True)
    protocol_version: int
    version: str


class PingParams(WireModel):
    message: str | None = None


class PingResult(WireStruct, kw_only=True):
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


class SuccessResult(WireStruct, kw_only=True):
    success: StrictBool = always(True)
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
