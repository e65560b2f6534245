"""Import ``pygls.protocol.json_rpc`` without the Language Server Protocol.

``import pygls.protocol`` loads every type of LSP; its JSON-RPC module uses four names of them.
:func:`import_json_rpc` puts placeholders for the LSP modules into ``sys.modules`` while that one module is loaded,
and removes them afterwards, so that other importers of pygls in this process get the complete package.
``docs/pygls.md`` has the figures, and the change to pygls that would make this module unnecessary.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

log = logging.getLogger(__name__)


@attrs.define
class ResponseError:
    """The error of a response, as in ``lsprotocol.types``."""

    code: int
    message: str
    data: Any = None


@attrs.define
class ResponseErrorMessage:
    """A response with an error, as in ``lsprotocol.types``."""

    id: int | str | None = None
    error: ResponseError | None = None
    jsonrpc: str = "2.0"


def import_json_rpc() -> ModuleType:
    """Return the module ``pygls.protocol.json_rpc``, loaded alone where possible, else in the ordinary way."""
    if not _loaded_modules():
        try:
            return _import_alone()
        except Exception as exc:
            # Another version of pygls may need more. The ordinary way is slower, but it works.
            log.info("pygls cannot be loaded without the Language Server Protocol: %s", exc)
        finally:
            for name in _loaded_modules():
                del sys.modules[name]
    return import_module("pygls.protocol.json_rpc")


def _loaded_modules() -> list[str]:
    return [name for name in sys.modules if name.split(".")[0] in ("pygls", "lsprotocol")]


def _import_alone() -> ModuleType:
    pygls = find_spec("pygls")
    if pygls is None or pygls.origin is None:
        raise ImportError("pygls is not installed as files")
    placeholders: dict[str, dict[str, Any]] = {
        # A package with the real path, whose ``__init__`` does not run.
        "pygls.protocol": {"__path__": [str(Path(pygls.origin).parent / "protocol")]},
        # Used for the options of LSP's methods only.
        "pygls.lsp": {"get_method_options_type": None, "is_instance": None},
        "lsprotocol": {"__path__": []},
        "lsprotocol.types": {
            "CANCEL_REQUEST": "$/cancelRequest",
            "EXIT": "exit",
            "ResponseError": ResponseError,
            "ResponseErrorMessage": ResponseErrorMessage,
        },
    }
    for name, members in placeholders.items():
        module = sys.modules[name] = ModuleType(name)
        vars(module).update(members)
    return import_module("pygls.protocol.json_rpc")
