"""Tools of an installed package: built as a wheel, installed by pip, found by the real server."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.server import JsonObject, calls, running_server, scripted

pytestmark = pytest.mark.anyio

MODULE = """
def shout(self, args):
    return args["text"].upper()


SHOUT = {
    "description": "Say it louder",
    "parameters": {"text": {"type": "string"}},
    "cmds": [shout],
    "requires_approval": False,
}
LOUD = {"tools": ["shout"], "prompt": "the loud tools (${tools})"}


def broken():
    raise RuntimeError("it cannot be made")
"""
ENTRY_POINTS = (
    "[jumpseat.tools]\nshout = louder.tools:SHOUT\nloud = louder.tools:LOUD\nbroken = louder.tools:broken\n"
)
METADATA = "Metadata-Version: 2.1\nName: louder\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the package ``louder``, installed by pip."""
    folder = tmp_path_factory.mktemp("louder")
    info = "louder-1.0.dist-info"
    files = {
        "louder/__init__.py": "",
        "louder/tools.py": MODULE,
        f"{info}/METADATA": METADATA,
        f"{info}/WHEEL": WHEEL,
        f"{info}/entry_points.txt": ENTRY_POINTS,
    }
    wheel = folder / "louder-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        record = [*files, f"{info}/RECORD"]
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in record))
    target = folder / "packages"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--disable-pip-version-check",
    ]
    subprocess.run([*pip, "--target", str(target), str(wheel)], check=True, timeout=120)
    return target


async def run(folder: Path, packages: Path, prompt: str, **options: object) -> tuple[JsonObject, str]:
    """Return the result of a call of ``shout``, and the prompt that the model received."""
    env = {"PYTHONPATH": str(packages)}
    async with running_server(folder, env=env) as server:
        wire = server.wire
        session = await wire.create(scripted(calls("shout", text="hi"), {"text": "ok"}), **options)
        await wire.prompt(session, prompt)
        completion = await wire.event("tool.execution_complete", session=session)
        message = await wire.event("user.message", session=session)
    return completion["data"], message["data"]["transformedContent"]


@pytest.mark.parametrize(
    ("prompt", "words"), [("Use @{shout}", "Use the `shout` tool"), ("@{loud}", "the loud tools (`shout`)")]
)
async def test_an_installed_tool_runs_once_it_was_mentioned(
    tmp_path: Path, packages: Path, prompt: str, words: str
) -> None:
    completion, message = await run(tmp_path, packages, prompt)
    assert completion["result"]["content"] == "HI"
    assert words in message


async def test_an_installed_tool_runs_if_the_session_names_it(tmp_path: Path, packages: Path) -> None:
    completion, _ = await run(tmp_path, packages, "go", availableTools=["shout"])
    assert completion["result"]["content"] == "HI"


async def test_an_installed_tool_is_not_offered_by_default(tmp_path: Path, packages: Path) -> None:
    completion, _ = await run(tmp_path, packages, "go")
    assert "does not exist" in completion["error"]["message"]


async def test_tools_of_installed_packages_are_listed_with_their_errors(tmp_path: Path, packages: Path) -> None:
    async with running_server(tmp_path, env={"PYTHONPATH": str(packages)}) as server:
        tools = (await server.wire.call("jumpseat.tools.list"))["tools"]
    found = {tool["name"]: tool for tool in tools}
    assert {name: tool["origin"] for name, tool in found.items()} == dict.fromkeys(
        ("broken", "loud", "shout"), "package"
    )
    assert found["loud"]["kind"] == "group"
    assert "problem" not in found["shout"]
    assert "louder.tools:broken" in found["broken"]["problem"]
