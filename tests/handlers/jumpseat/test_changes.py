"""``jumpseat.changes.*``: what the file tools changed is listed by prompt, and taken back."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import RunningServer, calls, running_server, scripted

pytestmark = pytest.mark.anyio

DONE = {"text": "Done."}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"one\r\n\xff\r\n")
    (folder / "a.txt").chmod(0o640)
    return folder


def edit(call_id: str, old: str, new: str) -> dict[str, Any]:
    return calls("edit", call_id, path="a.txt", old_str=old, new_str=new)


async def changed(server: RunningServer, project: Path, *turns: dict[str, Any]) -> str:
    """Create a session that may do everything, and run one prompt."""
    session = await server.wire.create(scripted(*turns), workingDirectory=str(project))
    await server.wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
    await server.wire.prompt(session, "change  it\nplease")
    return session


async def test_changes_of_a_prompt_are_listed_and_taken_back(tmp_path: Path, project: Path) -> None:
    new = calls("create", "call-3", path="new/b.txt", file_text="b\n")
    turns = [edit("call-1", "one", "two"), edit("call-2", "two", "three"), new, DONE, DONE]
    async with running_server(tmp_path) as server:
        session = await changed(server, project, *turns)
        found = await server.wire.call("jumpseat.changes.list", {"sessionId": session})
        (changes,) = found["prompts"]
        assert changes["prompt"] == "change it please"
        first, second = changes["files"]
        assert (first["path"], first["state"]) == (str(project / "a.txt"), "as-left")
        assert "-one\r\n+three\r\n" in first["diff"]
        assert (second["path"], second["diff"].split("\n")[0]) == (str(project / "new/b.txt"), "--- /dev/null")

        outcome = await server.wire.call("jumpseat.changes.undo", {"sessionId": session})
        paths = [first["path"], second["path"]]
        assert outcome == {"prompt": "change it please", "undone": paths, "left": []}
        assert (project / "a.txt").read_bytes() == b"one\r\n\xff\r\n"
        assert stat.S_IMODE((project / "a.txt").stat().st_mode) == 0o640
        assert not (project / "new/b.txt").exists()
        assert await server.wire.call("jumpseat.changes.list", {"sessionId": session}) == {"prompts": []}
        assert await server.wire.call("jumpseat.changes.undo", {"sessionId": session}) == {"undone": [], "left": []}
        told = [event for event in server.wire.events(session) if event["data"].get("source") == "undo"]
        assert [str(project / "new/b.txt") in event["data"]["content"] for event in told] == [True]


async def test_a_patch_is_taken_back_with_all_its_files(tmp_path: Path, project: Path) -> None:
    (project / "b.txt").write_text("b\n")
    patch = (
        "*** Update File: a.txt\n*** Move to: moved/a.txt\n@@\n-one\n+two\n"
        "*** Delete File: b.txt\n*** Add File: c.txt\n+c\n"
    )
    async with running_server(tmp_path) as server:
        session = await changed(server, project, calls("apply_patch", input=patch), DONE, DONE)
        assert (project / "moved/a.txt").read_bytes() == b"two\r\n\xff\r\n"
        assert sorted(os.listdir(project)) == ["c.txt", "moved"]
        outcome = await server.wire.call("jumpseat.changes.undo", {"sessionId": session})
        assert outcome["left"] == []
        assert sorted(os.listdir(project)) == ["a.txt", "b.txt", "moved"]
        assert (project / "a.txt").read_bytes() == b"one\r\n\xff\r\n"
        assert stat.S_IMODE((project / "a.txt").stat().st_mode) == 0o640


async def test_a_file_that_has_changed_since_is_left_alone(tmp_path: Path, project: Path) -> None:
    new = calls("create", "call-2", path="b.txt", file_text="b\n")
    async with running_server(tmp_path) as server:
        session = await changed(server, project, edit("call-1", "one", "two"), new, DONE)
        (project / "a.txt").write_text("mine\n")
        (project / "b.txt").unlink()
        outcome = await server.wire.call("jumpseat.changes.undo", {"sessionId": session})
        assert (outcome["undone"], outcome["left"]) == ([], [str(project / "a.txt"), str(project / "b.txt")])
    assert os.listdir(project) == ["a.txt"]
    assert (project / "a.txt").read_text() == "mine\n"


async def test_prompts_are_taken_back_one_by_one_also_in_a_new_process(tmp_path: Path, project: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await changed(server, project, edit("1", "one", "two"), DONE, edit("2", "two", "three"), DONE)
        await server.wire.prompt(session, "again")
        found = await server.wire.call("jumpseat.changes.list", {"sessionId": session, "limit": 5})
        assert [changes["prompt"] for changes in found["prompts"]] == ["again", "change it please"]
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {"sessionId": session, "provider": scripted(DONE)})
        for prompt, left in (("again", b"two\r\n\xff\r\n"), ("change it please", b"one\r\n\xff\r\n")):
            outcome = await server.wire.call("jumpseat.changes.undo", {"sessionId": session})
            assert (outcome["prompt"], (project / "a.txt").read_bytes()) == (prompt, left)


async def test_nothing_is_taken_back_while_a_prompt_runs(tmp_path: Path, project: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"hang": True}), workingDirectory=str(project))
        await server.wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await server.wire.event("assistant.turn_start", session=session)
        refused = await server.wire.error_of("jumpseat.changes.undo", {"sessionId": session})
        assert refused["message"] == "a prompt is running, which may change files: wait or abort it first"


async def test_nothing_is_written_or_deleted_through_a_link_that_appears_later(
    tmp_path: Path, project: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("written", "deleted"):
        (outside / name).write_text("known")
    turns = [
        calls("create", "c1", path="sub/written", file_text="evil"),
        DONE,
        calls("edit", "c2", path="sub/written", old_str="evil", new_str="known"),
        calls("create", "c3", path="sub/deleted", file_text="known"),
        calls("create", "c4", path="new/deep/file", file_text="x"),
        calls("bash", "c5", command="mv sub old; ln -s ../outside sub; rm -r new; ln -s ../outside new"),
        DONE,
    ]
    async with running_server(tmp_path) as server:
        session = await changed(server, project, *turns)
        await server.wire.prompt(session, "again")
        outcome = await server.wire.call("jumpseat.changes.undo", {"sessionId": session})
    assert outcome["undone"] == []
    assert {file.name: file.read_text() for file in outside.iterdir()} == {"written": "known", "deleted": "known"}


async def test_a_change_through_a_link_is_taken_back_where_it_was_made(tmp_path: Path, project: Path) -> None:
    for name in ("one", "two"):
        (project / name).mkdir()
        (project / name / "file").write_text("old")
    (project / "link").symlink_to("one")
    turns = [
        calls("edit", "c1", path="link/file", old_str="old", new_str="new"),
        calls("bash", "c2", command="ln -sfn two link; printf new > two/file"),
        DONE,
    ]
    async with running_server(tmp_path) as server:
        session = await changed(server, project, *turns)
        outcome = await server.wire.call("jumpseat.changes.undo", {"sessionId": session})
    assert outcome["undone"] == [str(project / "link/file")]
    assert [(project / name / "file").read_text() for name in ("one", "two")] == ["old", "new"]


async def test_the_files_of_a_session_are_shown_with_their_final_diffs_and_undone_one_by_one(
    tmp_path: Path, project: Path
) -> None:
    more = calls("create", "call-3", path="new/b.txt", file_text="b\n")
    turns = [edit("call-1", "one", "two"), more, DONE, edit("call-2", "two", "three"), DONE, DONE]
    async with running_server(tmp_path) as server:
        session = await changed(server, project, *turns)
        await server.wire.prompt(session, "and once more")
        asked = {"sessionId": session}
        first, second = (await server.wire.call("jumpseat.changes.files", asked))["files"]
        assert (first["path"], first["change"], first["state"]) == (str(project / "a.txt"), "modified", "as-left")
        # The two changes are one: what was there only in between is not shown.
        assert (first["added"], first["removed"]) == (1, 1)
        assert "-one\r\n+three\r\n" in first["diff"]
        assert "two" not in first["diff"]
        assert (second["change"], second["added"], second["removed"]) == ("created", 1, 0)

        (project / "a.txt").write_text("mine\n")
        assert (await server.wire.call("jumpseat.changes.files", asked))["files"][0]["state"] == "changed-since"
        outcome = await server.wire.call("jumpseat.changes.undoFiles", {**asked, "path": second["path"]})
        assert outcome == {"undone": [second["path"]], "left": []}
        assert not (project / "new/b.txt").exists()
        outcome = await server.wire.call("jumpseat.changes.undoFiles", asked)
        assert outcome == {"undone": [], "left": [{"path": first["path"], "reason": "was changed since"}]}
        assert (project / "a.txt").read_text() == "mine\n"

        # A session that is not open is read from its files.
        await server.wire.call("session.destroy", asked)
        (file,) = (await server.wire.call("jumpseat.changes.files", asked))["files"]
        assert (file["path"], file.get("state"), file["diff"]) == (first["path"], None, first["diff"])
