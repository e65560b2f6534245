"""JSON-RPC 2.0: error codes, and the members of a message."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from pydantic import ConfigDict

from jumpseat_protocol.lazy_models import LazyModel

RequestId: TypeAlias = int | str

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_CANCELLED: Final = -32800

# Codes of this server, for logs and people: clients match messages, not codes.
UNSUPPORTED: Final = -32000
AUTHENTICATION_FAILED: Final = -32001
SESSION_NOT_FOUND: Final = -32002
INVALID_OPERATION: Final = -32003
PROVIDER_FAILED: Final = -32004
OVERLOADED: Final = -32005
SESSION_IN_USE: Final = -32006


class ErrorObject(LazyModel):
    """The ``error`` member of a response. The type of ``data`` depends on the code; it never holds a traceback."""

    model_config = ConfigDict(extra="ignore")

    code: int
    message: str
    data: Any = None


Version: TypeAlias = Literal["2.0"]
