"""Only the owner can read what the server writes, and what an older version has written."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import anyio
import pytest

from tests.support.limits import WAIT_S
from tests.support.server import calls, running_server, scripted

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes"),
]

TURNS = (
    calls("bash", "call-1", command="seq 100000"),
    calls("sql", "call-2", query="insert into todos (id, title) values ('a', 'b')", description="Add"),
    calls("store_memory", "call-3", subject="tests", fact="They are quick.", citations="none", reason="seen"),
    {"text": "done"},
)


def readable_by_others(folder: Path) -> list[str]:
    paths = [path for path in (folder, *folder.rglob("*")) if not path.is_symlink()]
    return sorted(str(path.relative_to(folder)) for path in paths if stat.S_IMODE(path.stat().st_mode) & 0o077)


async def test_everything_that_the_server_writes_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    config = "[sandbox]\nmode = 'off'\n[tools.memory]\nenabled = true\n"
    async with running_server(tmp_path, args=["--yolo"], config=config) as server:
        wire = server.wire
        session = await wire.create(scripted(*TURNS))
        events = await wire.prompt(session)
        await wire.call("session.plan.update", {"sessionId": session, "content": "1. Test"})
        file = {"sessionId": session, "path": "notes.md", "content": "Notes"}
        await wire.call("session.workspaces.createFile", file)
        await wire.call("user.settings.set", {"settings": {"model": "x"}})
        await wire.call("sessions.fork", {"sessionId": session})
        await wire.call("session.destroy", {"sessionId": session})
        written = {path.name for path in server.home.rglob("*")}
    results = [event["data"] for event in events if event["type"] == "tool.execution_complete"]
    assert [data["success"] for data in results] == [True, True, True], results
    assert written >= {"session.db", "plan.md", "notes.md", "settings.json", "memories", "workspace.yaml", "temp"}
    assert readable_by_others(tmp_path / "home") == []


async def test_a_home_folder_of_an_older_version_is_closed_at_the_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    session = home / "session-state" / "one"
    own = home / "skills" / "deploy"
    for folder in (session, own):
        folder.mkdir(parents=True)
    for path in (home / "approvals.json", session / "events.jsonl", own / "run.sh"):
        path.write_text("")
        path.chmod(0o755)
    async with running_server(tmp_path) as server:
        await server.wire.check_alive()
        with anyio.fail_after(WAIT_S):
            while (left := readable_by_others(home)) != ["skills", "skills/deploy", "skills/deploy/run.sh"]:
                assert "." not in left
                await anyio.sleep(0.01)
    assert stat.S_IMODE((own / "run.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((session / "events.jsonl").stat().st_mode) == 0o700


async def test_files_in_a_project_have_the_modes_of_the_users_umask(tmp_path: Path) -> None:
    turns = (
        calls("create", "call-1", path=str(tmp_path / "new" / "a.txt"), file_text="a"),
        calls("bash", "call-2", command="touch b.txt"),
        {"text": "done"},
    )
    async with running_server(tmp_path, args=["--yolo"]) as server:
        session = await server.wire.create(scripted(*turns))
        await server.wire.prompt(session)
    expected = (tmp_path / "compared").open("w")
    expected.close()
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new/a.txt", "b.txt", "compared")}
    assert len(modes) == 1
