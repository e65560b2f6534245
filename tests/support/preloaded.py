"""The server as a program for :mod:`tests.support.forking`.

Modules that the server imports late are imported here too, and pydantic's validators are built: each forked server
would otherwise repeat that work, which takes longer than most tests. Tests about late imports start the executable.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from pydantic import BaseModel
from pydantic._internal import _fields


def import_all() -> None:
    """Import every module of the server and the packages behind them."""
    import_module("jumpseat.app")
    # The modules of `mcp` import each other: the import must begin here, as in jumpseat.mcp.loading.
    import_module("jumpseat.mcp.connection")
    # The event loop, which anyio imports when it starts.
    import_module("anyio._backends._asyncio")
    for package in ("jumpseat", "jumpseat_protocol"):
        for module in walk_packages(import_module(package).__path__, f"{package}."):
            # A script and a pytest plugin: importing either has side effects.
            if module.name not in ("jumpseat.__main__", "jumpseat.testing"):
                import_module(module.name)


def build_models() -> None:
    """Build the validators that pydantic would build at the first use of each model."""
    pending: list[type[BaseModel]] = [BaseModel]
    while pending:
        for model in pending.pop().__subclasses__():
            pending.append(model)
            if not model.__pydantic_complete__:
                # Generic models and those of other packages may refer to types that are not imported.
                model.model_rebuild(raise_errors=False)


def warm_up() -> None:
    """Read a command line and the default configuration, as each server does first.

    The interpreter adapts its code to repeated work, and writes to what it reads: a forked process would copy the
    memory of both. Pydantic parses the signatures of built-in types for each default value again.
    """
    _fields.takes_validated_data_argument = cache(_fields.takes_validated_data_argument)
    # After the modules, as in `__main__`.
    from jumpseat.cli.arguments import parse
    from jumpseat.config import load_config

    for _ in range(10):
        parse(["--headless", "--stdio"], {})
        load_config(Path("/nonexistent"))


import_all()
build_models()
warm_up()

# After all modules that it would import itself.
from jumpseat.__main__ import main  # noqa: E402

__all__ = ["main"]
