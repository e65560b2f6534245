"""Import ``pygls.protocol.json_rpc`` without the Language Server Protocol.

``import pygls.protocol`` loads every type of LSP; its JSON-RPC module uses four names of them, the decorator of
attrs for three classes, and an exception that only the converter of cattrs raises.
:func:`import_json_rpc` puts placeholders for these modules into ``sys.modules`` while that one module is loaded,
and removes them afterwards, so that other importers in this process get the complete packages.
``docs/pygls.md`` has the figures, and the change to pygls that would make this module unnecessary.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass, fields
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


def _define(cls: type[T]) -> type[T]:
    """Make a class with the constructor, equality and fields of ``attrs.define``."""
    made: Any = dataclass(slots=True)(cls)
    made.__attrs_attrs__ = fields(made)
    # A dataclass would be encoded by orjson, without its converter.
    del made.__dataclass_fields__
    return made


@_define
class ResponseError:
    """The error of a response, as in ``lsprotocol.types``."""

    code: int
    message: str
    data: Any = None


@_define
class ResponseErrorMessage:
    """A response with an error, as in ``lsprotocol.types``."""

    id: int | str | None = None
    error: ResponseError | None = None
    jsonrpc: str = "2.0"


class ClassValidationError(Exception):
    """The exception of the converter of cattrs, which this server does not use."""


def import_json_rpc() -> ModuleType:
    """Return the module ``pygls.protocol.json_rpc``, loaded alone where possible, else in the ordinary way."""
    if not _modules_of("pygls", "lsprotocol"):
        loaded = _modules_of("attrs", "cattrs")
        try:
            return _import_alone()
        except Exception as exc:
            # Another version of pygls may need more. The ordinary way is slower, but it works.
            log.info("pygls cannot be loaded without the Language Server Protocol: %s", exc)
        finally:
            for name in _modules_of("pygls", "lsprotocol", "attrs", "cattrs"):
                del sys.modules[name]
            sys.modules.update(loaded)
    return import_module("pygls.protocol.json_rpc")


def _modules_of(*packages: str) -> dict[str, ModuleType]:
    """Return the loaded modules of packages, by name."""
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] in packages}


def _import_alone() -> ModuleType:
    pygls = find_spec("pygls")
    if pygls is None or pygls.origin is None:
        raise ImportError("pygls is not installed as files")
    placeholders: dict[str, dict[str, Any]] = {
        # A package with the real path, whose ``__init__`` does not run.
        "pygls.protocol": {"__path__": [str(Path(pygls.origin).parent / "protocol")]},
        "attrs": {"define": _define},
        "cattrs": {"__path__": []},
        "cattrs.errors": {"ClassValidationError": ClassValidationError},
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
