"""A path that does not exist: the result names those that the model may have meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jumpseat.tools.near_paths import near_paths
from tests.support.server import JsonObject, calls, running_server, scripted

pytestmark = pytest.mark.anyio

SAYS = {"text": "-"}
PATCH = "*** Begin Patch\n*** Update File: prices.py\n@@\n-a\n+b\n*** End Patch"


def lay(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("prices.py", ["shop/prices.py", "shop/old/prices.py"]),
        ("shop/old/old/prices.py", ["shop/old/prices.py", "shop/prices.py"]),
        ("/elsewhere/shop/prices.py", ["shop/prices.py", "shop/old/prices.py"]),
        ("Shop/Prices.py", ["shop/prices.py", "shop/old/prices.py"]),
        ("shop/price.py", ["shop/prices.py", "shop/old/prices.py"]),
        ("src/shop", ["shop"]),
        ("readme", ["README.md"]),
        ("shop/quite_another_name.py", []),
        ("", []),
        ("..", []),
    ],
)
def test_the_nearest_paths_come_first(tmp_path: Path, wrong: str, meant: list[str]) -> None:
    lay(tmp_path, "shop/prices.py", "shop/old/prices.py", "README.md", ".git/prices.py", "built/prices.py", "a\nb")

    assert near_paths(wrong, tmp_path, frozenset({"built/"})) == meant


@pytest.mark.parametrize(
    ("call", "model"),
    [
        (calls("view", path="prices.py"), "scripted"),
        (calls("edit", path="prices.py", old_str="a", new_str="b"), "scripted"),
        (calls("grep", pattern="a", path="prices.py"), "scripted"),
        (calls("glob", pattern="*", path="prices.py"), "scripted"),
        (calls("apply_patch", input=PATCH), "gpt-5.2-codex"),
    ],
)
async def test_each_tool_names_the_file_that_is_meant(tmp_path: Path, call: JsonObject, model: str) -> None:
    lay(tmp_path, "work/shop/prices.py")
    async with running_server(tmp_path, args=["--yolo"]) as server:
        done = await called(server, tmp_path / "work", call, model=model)
    assert done["success"] is False
    assert done["error"]["message"].endswith("Did you mean shop/prices.py?")


async def test_names_are_not_told_where_the_folder_may_not_be_read(tmp_path: Path) -> None:
    lay(tmp_path, "work/shop/prices.py")
    async with running_server(tmp_path, args=["--yolo"], config='[permissions]\ndeny = ["read"]\n') as server:
        done = await called(server, tmp_path / "work", calls("edit", path="prices.py", old_str="a", new_str="b"))
    assert "shop" not in done["error"]["message"]


async def called(server: Any, folder: Path, call: JsonObject, **more: Any) -> JsonObject:
    session = await server.wire.create(scripted(call, SAYS), workingDirectory=str(folder), **more)
    events = await server.wire.prompt(session)
    (done,) = [event["data"] for event in events if event["type"] == "tool.execution_complete"]
    return done
