"""Files that change while a question about them is open: what was shown is made, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.parts import project_with, results_of, word_config
from tests.support.server import JsonObject, Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

FILES = {"a.txt": "one\ntwo\none\n", "b.txt": "three\n"}


async def run(
    wire: Wire, project: Path, turn: JsonObject, meanwhile: Callable[[], object]
) -> tuple[str, JsonObject]:
    """Run one call, and change the project before it is approved; return its result and the request."""
    session = await wire.create(
        scripted(turn, {"text": "done"}), workingDirectory=str(project), requestPermission=True
    )
    await wire.call("session.send", {"sessionId": session, "prompt": "go"})
    asked = await wire.event("permission.requested", session=session)
    meanwhile()
    answer = {"sessionId": session, "requestId": asked["data"]["requestId"], "result": {"kind": "approve-once"}}
    await wire.call("session.permissions.handlePendingPermissionRequest", answer)
    await wire.event("session.idle", session=session)
    events = wire.events(session)
    assert [event["type"] for event in events].count("permission.requested") == 1
    (result,) = results_of(events)
    return result, asked["data"]["permissionRequest"]


def contents(project: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(project.iterdir())}


def patch(text: str) -> JsonObject:
    return calls("apply_patch", input=text)


def writing(name: str, text: str | None) -> Callable[[Path], object]:
    if text is None:
        return lambda project: (project / name).unlink()
    return lambda project: (project / name).write_text(text)


CASES: Mapping[str, tuple[JsonObject, Callable[[Path], object], str]] = {
    # The new text would still have exactly one place, but another one.
    "edit": (calls("edit", path="a.txt", old_str="two", new_str="2"), writing("a.txt", "two\n"), "changed since"),
    "all": (
        calls("edit", path="a.txt", old_str="one", new_str="1", replace_all=True),
        writing("a.txt", "one\n" * 3),
        "changed since",
    ),
    "several edits": (
        calls(
            "edit", path="a.txt", edits=[{"old_str": "two", "new_str": "2"}, {"old_str": "one\n2", "new_str": "0"}]
        ),
        writing("a.txt", "one\ntwo\nmore\n"),
        "changed since",
    ),
    "inserted line": (
        calls("edit", path="a.txt", insert_line=1, old_str="", new_str="x"),
        writing("a.txt", "0\n" + FILES["a.txt"]),
        "changed since",
    ),
    "deleted meanwhile": (
        calls("edit", path="a.txt", old_str="two", new_str="2"),
        writing("a.txt", None),
        "changed since",
    ),
    "create": (calls("create", path="c.txt", file_text="new"), writing("c.txt", "of another"), "created after"),
    "update": (
        patch("*** Update File: a.txt\n-two\n+2\n*** Add File: c.txt\n+c\n"),
        writing("a.txt", "0\n" + FILES["a.txt"]),
        "changed since",
    ),
    "second file": (
        patch("*** Update File: a.txt\n-two\n+2\n*** Update File: b.txt\n-three\n+3\n"),
        writing("b.txt", "three\nfour\n"),
        "changed since",
    ),
    "add": (
        patch("*** Update File: a.txt\n-two\n+2\n*** Add File: c.txt\n+c\n"),
        writing("c.txt", "of another"),
        "created after",
    ),
    "delete": (patch("*** Delete File: b.txt\n"), writing("b.txt", "three\nfour\n"), "changed since"),
    "move": (
        patch("*** Update File: b.txt\n*** Move to: c.txt\n-three\n+3\n"),
        writing("b.txt", "three\nfour\n"),
        "changed since",
    ),
    "move to": (
        patch("*** Update File: b.txt\n*** Move to: c.txt\n-three\n+3\n"),
        writing("c.txt", "of another"),
        "created after",
    ),
}


async def test_what_was_shown_is_made_or_nothing(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        for name, (turn, change, reason) in CASES.items():
            project = tmp_path / name
            project.mkdir()
            for file, text in FILES.items():
                (project / file).write_text(text)
            changed: dict[str, str] = {}

            def meanwhile(project: Path = project, change: Any = change, changed: dict[str, str] = changed) -> None:
                change(project)
                changed |= contents(project)

            result, request = await run(server.wire, project, turn, meanwhile)
            assert request["diff"], name
            assert reason in result, name
            assert contents(project) == changed, name


async def test_a_rename_is_one_question_with_all_files_and_makes_what_it_shows(tmp_path: Path) -> None:
    files = {"a.words": "def one\nuse one\n", "b.words": "use one\n"}
    project = project_with(tmp_path, files)
    config = word_config(project).replace("[permissions]\nallow_unasked = true\n", "")
    rename = calls("lsp", operation="rename", path="b.words", symbol="one", new_name="won")
    async with running_server(tmp_path, config=config) as server:
        result, request = await run(
            server.wire, project, rename, lambda: (project / "b.words").write_text("use 1\n")
        )
        assert result == (
            f"File {project}/b.words has changed since permission was asked. View it before you change it."
            "\nNo file was changed."
        )
        assert contents(project) == files | {"b.words": "use 1\n"}
        assert request["fileName"] == str(project)
        assert [edit["after"]["path"] for edit in request["fileEdits"]] == [f"{project}/{name}" for name in files]
        assert request["diff"].count("+use won") == 2
        (project / "b.words").write_text(files["b.words"])
        result, _ = await run(server.wire, project, rename, lambda: None)
        assert result.startswith("Changed 2 files:")
    assert contents(project) == {"a.words": "def won\nuse won\n", "b.words": "use won\n"}
