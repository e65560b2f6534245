"""Every member that the newest SDK can send has its effect, or a row with the reason why not.

The SDK's own types say what it can send; its source is read, not imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from jumpseat_protocol.members import Node, members_of
from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.sdk_options import SENT
from jumpseat_protocol.unserved import listed
from tests.support.toolchains import NEWEST_PYPI_SDK, Sdk, require_sdk

# The first test of an SDK version installs it, which takes longer than a test's time limit.
pytestmark = pytest.mark.timeout(300)

READ: Final = re.compile(r"obj\.get\('([^']+)'\)")
DEPTH: Final = 6


@pytest.fixture(scope="module")
def source() -> Path:
    (package,) = require_sdk(Sdk("pypi", NEWEST_PYPI_SDK)).glob("lib/python*/site-packages/copilot")
    return package


def test_every_member_of_a_request_is_served_or_has_a_reason(source: Path) -> None:
    generated = Generated(ast.parse((source / "generated/rpc.py").read_text(encoding="utf-8")))
    params = {method: name for method, name in generated.requests() if method in CLIENT_REQUESTS}
    assert len(params) > 150
    unexplained = [
        f"{method}.{path}"
        for method, name in params.items()
        for path in unserved(generated, Node((CLIENT_REQUESTS[method].params,)), [name], ())
        if listed(f"{method}.{path}") is None
    ]
    assert unexplained == []


def test_every_option_of_a_new_session_is_in_the_table(source: Path) -> None:
    sent = set(re.findall(r'payload\["(\w+)"\]', (source / "client.py").read_text(encoding="utf-8")))
    assert len(sent) > 80
    # `filter` is for `session.list`.
    assert sent - set(SENT[""].names.split()) == {"filter"}


class Generated:
    """The generated types of the SDK, by name, and their members with the types of those."""

    def __init__(self, module: ast.Module) -> None:
        self.classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
        self.loaders = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}

    def requests(self) -> Iterator[tuple[str, str]]:
        """Yield the methods with params, and the names of the types of these."""
        for api in self.classes.values():
            for function in api.body:
                if not isinstance(function, ast.AsyncFunctionDef):
                    continue
                method = re.search(r"\.request\('([^']+)'", ast.unparse(function))
                types = [arg.annotation for arg in function.args.args if arg.arg == "params" and arg.annotation]
                if method is not None and types:
                    yield method[1], ast.unparse(types[0]).partition(" |")[0]

    def members(self, name: str) -> dict[str, list[str]]:
        """Return the names of the types of each member of an object, none for plain values."""
        if name not in self.classes:
            # One of several types, which one member tells apart.
            loader = self.loaders.get(f"_load_{name}")
            return {} if loader is None else self._merged(_decoded(ast.unparse(loader)))
        found: dict[str, list[str]] = {}
        for function in self.classes[name].body:
            if isinstance(function, ast.FunctionDef) and function.name == "from_dict":
                for line in ast.unparse(function).splitlines():
                    if (read := READ.search(line)) is not None:
                        found[read[1]] = _decoded(line) + re.findall(r"\b_load_(\w+)", line)
        return found

    def _merged(self, names: list[str]) -> dict[str, list[str]]:
        return {member: types for name in names for member, types in self.members(name).items()}


def _decoded(code: str) -> list[str]:
    return re.findall(r"\b(\w+)\.from_dict\b", code)


def unserved(generated: Generated, node: Node | None, names: list[str], path: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths of the members of the types ``names`` that the models of ``node`` do not have."""
    while node is not None and not node.models:
        node, path = node.items or node.values, (*path, "*")
    if node is None or len(path) > DEPTH or (members := members_of(node.models)).is_open:
        return
    for name in names:
        for member, types in generated.members(name).items():
            if member not in members.accepted:
                yield ".".join((*path, member))
            elif types:
                yield from unserved(generated, members.inner.get(member), types, (*path, member))
