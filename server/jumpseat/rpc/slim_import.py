"""Import pygls' JSON-RPC protocol without the Language Server Protocol.

``import pygls.protocol`` pulls in every type of LSP (``lsprotocol.types``: some 200 ms and 20 MiB), of which the
JSON-RPC half uses four names. Here that half is imported alone: placeholders stand where the LSP modules would
be, for the length of one import, and ``sys.modules`` is left as it was found, so that whoever else imports
pygls in this process gets the real thing. Where a new pygls has moved things, the plain import is taken:
slower, never broken.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygls.protocol.json_rpc import JsonRPCProtocol

_TOUCHED = ("pygls", "lsprotocol")


def json_rpc_protocol() -> type[JsonRPCProtocol]:
    """pygls' ``JsonRPCProtocol``, by the short way where possible."""
    try:
        with _placeholders():
            return importlib.import_module("pygls.protocol.json_rpc").JsonRPCProtocol
    except Exception:  # whatever has changed in there, the plain import is the answer
        from pygls.protocol import JsonRPCProtocol

        return JsonRPCProtocol


@contextmanager
def _placeholders() -> Generator[None]:
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] in _TOUCHED}
    pygls = find_spec("pygls")
    if before or pygls is None or pygls.origin is None:
        raise ImportError("pygls is loaded already, or not as files")
    package = ModuleType("pygls.protocol")
    package.__path__ = [str(Path(pygls.origin).parent / "protocol")]
    sys.modules["pygls.protocol"] = package
    sys.modules["pygls.lsp"] = _module("pygls.lsp", get_method_options_type=_never, is_instance=_never)
    sys.modules["lsprotocol"] = _module("lsprotocol", __path__=[])
    sys.modules["lsprotocol.types"] = _module(
        "lsprotocol.types",
        CANCEL_REQUEST="$/cancelRequest",
        EXIT="exit",
        ResponseError=type("ResponseError", (), {}),
        ResponseErrorMessage=type("ResponseErrorMessage", (), {}),
    )
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] in _TOUCHED]:
            del sys.modules[name]


def _module(name: str, **names: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(names)
    return module


def _never(*_args: Any) -> Any:
    raise NotImplementedError("the LSP half of pygls is not loaded")
