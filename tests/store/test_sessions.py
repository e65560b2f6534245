"""Sessions on disk: lists, files of other programs, and valid ids."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest
import yaml
from anyio.abc import TaskGroup

from jumpseat.adapters.scripted import Script, ScriptedModel
from jumpseat.agent.client import Attachment
from jumpseat.agent.retry import RetryPolicy
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import SessionServices
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.turns.loop import run_prompt
from jumpseat.errors import SessionNotFoundError, StoreError
from jumpseat.sessions.idle import IdleSessions
from jumpseat.sessions.registry import SessionRegistry
from jumpseat.store.project.instructions import InstructionFiles
from jumpseat.store.session.sessions import SessionFolder, SessionStore, shorten
from jumpseat.store.session.workspace import Workspace, workspace_of
from jumpseat.tools.orchestrator.environment import Environment
from jumpseat.tools.orchestrator.session_tools import ToolOrchestrator
from jumpseat_protocol import events
from jumpseat_protocol.sessions import SessionContext, SessionListFilter, SessionMetadata
from tests.support.limits import WAIT_S
from tests.support.sessions import OneModel, RecordingClient, ignore_command

pytestmark = pytest.mark.anyio

STARTED = "2026-01-01T00:00:00.000Z"
PROMPTED = events.Event.of("id", STARTED, None, events.UserMessage(content="Hi", message_id="id")).encode() + b"\n"
STARTED_ONLY = b'{"id":"i","type":"session.start","data":{}}\n'


@pytest.fixture
def store(tmp_path: Path, tasks: TaskGroup) -> SessionStore:
    return SessionStore(tmp_path, tasks)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "session-state"


def write(folder: Path, *, log: bytes | None = PROMPTED, workspace: str | bytes | None = "{}", at: int = 0) -> None:
    """Write a session as another program may have left it; ``at`` is the time of its log, in Unix time."""
    folder.mkdir(parents=True, exist_ok=True)
    if workspace is not None:
        (folder / "workspace.yaml").write_bytes(workspace if isinstance(workspace, bytes) else workspace.encode())
    if log is not None:
        (folder / "events.jsonl").write_bytes(log)
        os.utime(folder / "events.jsonl", (at, at))


def created(store: SessionStore, session_id: str, **fields: str) -> SessionFolder:
    """Create a session as the server does."""
    folder = store.folder(session_id)
    context = events.WorkingDirectoryContext(cwd=fields.pop("cwd", "/project"), **fields)
    folder.create(workspace_of(session_id, context, STARTED))
    folder.log.append(events.Event.of("id", STARTED, None, events.SessionInfo(info_type="x", message="y")))
    folder.log.sync()
    return folder


def ids(store: SessionStore) -> list[str]:
    return [session.session_id for session in store.list()]


# --- files of the server ------------------------------------------------------------------------------------------


async def test_a_new_session_has_its_files_and_is_not_listed(store: SessionStore, state: Path) -> None:
    folder = created(store, "s-1", git_root="/project", branch="main", repository="owner/name")

    assert sorted(path.relative_to(state / "s-1").as_posix() for path in files_of(state / "s-1")) == [
        "events.jsonl",
        f"inuse.{os.getpid()}.lock",
        "workspace.yaml",
    ]
    assert folder.read_workspace() == Workspace(
        id="s-1",
        cwd="/project",
        created_at=STARTED,
        updated_at=STARTED,
        git_root="/project",
        repository="owner/name",
        branch="main",
    )
    assert store.list() == []
    assert store.last_id() is None


async def test_a_session_is_listed_after_its_first_summary(store: SessionStore) -> None:
    folder = created(store, "s-1", git_root="/project", branch="main", repository="owner/name")
    folder.set_summary("First prompt")
    assert (folder.path / "checkpoints" / "index.md").is_file()
    folder.set_summary("Second prompt")

    (listed,) = store.list()
    assert listed == SessionMetadata(
        session_id="s-1",
        start_time=STARTED,
        modified_time=listed.modified_time,
        summary="First prompt",
        context=SessionContext(cwd="/project", git_root="/project", repository="owner/name", branch="main"),
    )
    assert store.last_id() == "s-1"


async def test_the_workspace_holds_the_time_of_the_last_change(store: SessionStore) -> None:
    folder = created(store, "s-1")
    folder.set_summary("First prompt")
    folder.log.append(events.Event.of("id", STARTED, None, events.SessionInfo(info_type="x", message="y")))
    os.utime(folder.log.path, (4_000_000_000, 4_000_000_000))
    folder.log.sync()

    workspace = folder.read_workspace()
    assert workspace is not None
    assert (workspace.updated_at, workspace.summary) == ("2096-10-02T07:06:40.000Z", "First prompt")
    (listed,) = store.list()
    assert listed.modified_time == workspace.updated_at


async def test_the_last_changed_session_is_listed_first(store: SessionStore, state: Path) -> None:
    for name, at in (("old", 1), ("new", 3), ("middle", 2)):
        write(state / name, at=at)

    assert ids(store) == ["new", "middle", "old"]
    assert store.last_id() == "new"
    assert store.list()[0].modified_time == "1970-01-01T00:00:03.000Z"


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "a: b # no comment",
        "- 'quoted' \"twice\" \\ {{x}}",
        "é🙂\u2028",
        "tab\tand\x7fdelete",
        "\x1b[31mred \x9b0m",
        "\x85\ufeff\ufffe",
        "null",
        "",
        "2026-01-01",
        "lone \udc80",
    ],
)
async def test_any_summary_and_path_can_be_read_back(store: SessionStore, text: str) -> None:
    folder = created(store, "s-1", cwd=f"/home/{text}")
    folder.set_summary(text)

    workspace = folder.read_workspace()
    assert workspace is not None
    readable = text.replace("\udc80", "\ufffd")
    assert (workspace.summary, workspace.cwd) == (readable, f"/home/{readable}")
    assert ids(store) == ["s-1"]


async def test_the_summary_is_plain_yaml(store: SessionStore, state: Path) -> None:
    created(store, "s-1").set_summary("Grüße: 🙂")

    loaded = yaml.safe_load(text_of(state / "s-1" / "workspace.yaml"))
    assert (loaded["id"], loaded["summary"], loaded["created_at"]) == ("s-1", "Grüße: 🙂", STARTED)


async def test_readers_never_see_half_a_workspace(store: SessionStore, state: Path) -> None:
    created(store, "s-1").set_summary("x")

    assert [path.name for path in files_of(state / "s-1") if "tmp" in path.name] == []


async def test_a_folder_that_cannot_be_created_is_a_store_error(store: SessionStore, state: Path) -> None:
    write_text(state, "a file where the folder should be")

    with pytest.raises(StoreError, match="cannot create the session folder: Not a directory"):
        created(store, "s-1")
    assert store.list() == []


async def test_a_summary_that_cannot_be_written_affects_nothing_else(
    store: SessionStore, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = created(store, "s-1")
    make_folder(state / "s-1" / f"workspace.yaml.{os.getpid()}.tmp")
    folder.set_summary("x")

    assert "cannot write" in caplog.text
    assert folder.read_workspace() is not None


@pytest.mark.parametrize(
    ("prompt", "line"),
    [
        ("  Fix\n\tthe bug  ", "Fix the bug"),
        ("x" * 100, "x" * 100),
        ("x" * 101, "x" * 99 + "…"),
        ("word\u00a0" * 21, "word " * 19 + "word…"),
        ("", ""),
        (" \n", ""),
    ],
)
async def test_a_prompt_is_shortened_to_one_line(prompt: str, line: str) -> None:
    assert shorten(prompt) == line


# --- files of other programs --------------------------------------------------------------------------------------


async def test_valid_fields_of_a_foreign_workspace_are_read(store: SessionStore, state: Path) -> None:
    text = (
        "id: other\nof_tomorrow: {}\ncwd: /project\ngit_root: /project\nrepository: owner/name\nbranch: 7\n"
        "created_at: 2026-01-01T00:00:00.000Z\nupdated_at: 2026-01-01 01:00:00\nsummary_count: x\nuser: me\n"
    )
    write(state / "s-1", workspace=text, at=5)

    assert store.folder("s-1").read_workspace() == Workspace(
        id="s-1",
        cwd="/project",
        created_at=STARTED,
        updated_at="2026-01-01T01:00:00.000Z",
        git_root="/project",
        repository="owner/name",
    )
    assert store.list() == [
        SessionMetadata(
            session_id="s-1",
            start_time=STARTED,
            # The log's own time is before its beginning.
            modified_time=STARTED,
            context=SessionContext(cwd="/project", git_root="/project", repository="owner/name"),
            unanswered=True,
        )
    ]


@pytest.mark.parametrize(
    "workspace",
    [
        None,
        "",
        "[]",
        "just text",
        "a: [",
        b"\xff\xfe",
        "a: \x07",
        "created_at: 2026-13-45",
        "a: 0b_",
        "a: !!timestamp x",
        "a: !!python/object/apply:os.getcwd []",
        "[" * 500,
    ],
)
async def test_an_unreadable_workspace_does_not_hide_other_sessions(
    store: SessionStore, state: Path, workspace: str | bytes | None
) -> None:
    write(state / "broken", workspace=workspace)
    write(state / "good")

    assert ids(store) == ["good"]
    assert store.folder("broken").read_workspace() is None


async def test_strings_that_json_cannot_hold_are_converted(store: SessionStore, state: Path) -> None:
    write(state / "s-1", workspace='summary: "a\\ud800b"\ncwd: "/\\udc80"\ncreated_at: "\\ud800"')

    (listed,) = store.list()
    assert (listed.summary, listed.start_time) == ("a\ufffdb", "\ufffd")
    assert listed.context == SessionContext(cwd="/\ufffd")


@pytest.mark.parametrize(
    ("log", "workspace"),
    [(STARTED_ONLY, "{}"), (b"", "{}"), (None, "{}"), (None, "summary: x"), (PROMPTED, None)],
    ids=["started", "empty", "no log", "summary without log", "no workspace"],
)
async def test_only_prompted_sessions_are_listed(
    store: SessionStore, state: Path, log: bytes | None, workspace: str | None
) -> None:
    write(state / "s-1", log=log, workspace=workspace)

    assert store.list() == []


async def test_an_old_folder_without_a_summary_is_listed_by_its_first_prompt(
    store: SessionStore, state: Path
) -> None:
    write(state / "s-1", log=STARTED_ONLY + PROMPTED)

    assert ids(store) == ["s-1"]


async def test_other_files_and_a_missing_home_are_ignored(store: SessionStore, state: Path) -> None:
    assert store.list() == []
    make_folder(state)
    write_text(state / "file", "x")
    make_folder(state / "empty")

    assert store.list() == []


# --- ids and locks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "session_id",
    [
        "",
        ".",
        "..",
        "../x",
        "../../etc",
        "a/b",
        "/etc",
        "a\\..\\b",
        "a\0b",
        "x" * 201,
        "é" * 101,
        "\udc80",
        "missing",
    ],
)
async def test_an_invalid_id_is_not_found(store: SessionStore, tmp_path: Path, session_id: str) -> None:
    write(tmp_path / "x")
    write(tmp_path / "session-state" / "b")

    with pytest.raises(SessionNotFoundError, match="Session not found: "):
        store.get_existing(session_id)


async def test_a_folder_without_a_log_is_not_a_session(store: SessionStore, state: Path) -> None:
    write(state / "s-1", log=None)
    make_folder(state / "s-2" / "events.jsonl")

    for name in ("s-1", "s-2"):
        with pytest.raises(SessionNotFoundError):
            store.get_existing(name)


@pytest.mark.parametrize("session_id", ["x" * 200, "a b", "é", "-", "...", "s:1", "*"])
async def test_other_ids_are_valid_folder_names(store: SessionStore, session_id: str) -> None:
    created(store, session_id).set_summary("x")

    assert ids(store) == [session_id]
    assert store.get_existing(session_id).read_workspace() is not None


async def test_only_marks_of_other_running_processes_count(store: SessionStore, state: Path) -> None:
    folder = created(store, "s-1")
    async with await anyio.open_process([sys.executable, "-c", "input()"]) as other:
        mark = state / "s-1" / f"inuse.{other.pid}.lock"
        assert not folder.in_use()
        write_text(mark, "")
        assert folder.in_use()
        other.kill()
    assert not folder.in_use()


@pytest.mark.parametrize("name", ["inuse.lock", "inuse..lock", "inuse.x.lock", "inuse.-1.lock", "inuse.².lock"])
async def test_marks_without_a_process_id_are_ignored(store: SessionStore, state: Path, name: str) -> None:
    folder = created(store, "s-1")
    write_text(state / "s-1" / name, "")

    assert not folder.in_use()


async def test_release_removes_our_mark_and_can_be_repeated(store: SessionStore, state: Path) -> None:
    folder = created(store, "s-1")
    folder.release()
    folder.release()

    assert [path.name for path in files_of(state / "s-1") if path.suffix == ".lock"] == []


async def test_remove_deletes_the_session_and_can_be_repeated(store: SessionStore, state: Path) -> None:
    folder = created(store, "s-1")
    folder.remove()
    folder.remove()

    assert files_of(state) == []


# --- during the life of a server ----------------------------------------------------------------------------------


def registry(store: SessionStore, tasks: TaskGroup) -> SessionRegistry:
    model = ScriptedModel(Script.model_validate({"turns": [{"text": "Hi"}], "after_last": "repeat"}))
    environment = Environment(tuple, dict)
    services = SessionServices(
        tasks=tasks,
        models=OneModel(model),
        make_tools=lambda session: ToolOrchestrator(session, environment),
        read_instructions=InstructionFiles(Path("/nonexistent"), {}).read,
        run_prompt=run_prompt,
        run_command=ignore_command,
        retry=RetryPolicy(),
        allow_unasked=False,
        allow_old_clients=False,
    )
    return SessionRegistry(store, None, lambda: environment, services, lambda _kind, _id, _metadata, _owner: None)


async def test_a_request_about_a_new_session_is_served_after_those_that_waited_for_it(
    store: SessionStore, tasks: TaskGroup
) -> None:
    sessions, served = registry(store, tasks), list[str]()

    async def request(name: str) -> None:
        ended = sessions.awaited("s-1", to_resume=False)
        if ended is not None:
            await ended.wait()
        served.append(name)

    async with anyio.create_task_group() as requests:
        with sessions.opening("s-1", is_new=False):
            requests.start_soon(request, "early")
            await anyio.wait_all_tasks_blocked()
        # The event loop has not come to the first one yet.
        await request("late")
    assert served == ["early", "late"]
    assert sessions.awaited("s-1", to_resume=False) is None


async def test_a_session_that_was_never_prompted_leaves_nothing_behind(
    store: SessionStore, state: Path, tasks: TaskGroup
) -> None:
    sessions, client = registry(store, tasks), RecordingClient()
    session = sessions.create("s-1", SessionSettings(cwd=state.parent), Attachment(client))
    assert text_of(state / "s-1" / "events.jsonl").startswith('{"id":')
    await sessions.detach_and_close(session.id, client)

    assert files_of(state) == []


async def test_a_prompted_session_is_listed_with_its_working_directory(
    store: SessionStore, state: Path, tasks: TaskGroup
) -> None:
    sessions, client = registry(store, tasks), RecordingClient()
    cwd = state.parent
    session = sessions.create("s-1", SessionSettings(cwd=cwd), Attachment(client))
    session.send(Prompt("  Say\nhi "))
    await client.wait_for(events.SessionIdle)
    with anyio.fail_after(WAIT_S):
        await sessions.detach_and_close(session.id, client)

    (listed,) = sessions.list()
    assert (listed.session_id, listed.summary, listed.context) == ("s-1", "Say hi", SessionContext(cwd=str(cwd)))
    assert sessions.list(SessionListFilter(cwd=str(cwd))) == [listed]
    assert sessions.list(SessionListFilter(cwd="/elsewhere")) == []
    assert sessions.list(SessionListFilter(branch="main")) == []
    assert sessions.store.last_id() == "s-1"
    assert sessions.metadata("s-1") == listed
    assert sessions.metadata("../s-1") is None


async def test_a_session_without_clients_is_closed_after_the_timeout_and_kept_on_disk(
    store: SessionStore, state: Path, tasks: TaskGroup
) -> None:
    sessions, client, other = registry(store, tasks), RecordingClient(), RecordingClient()
    left = sessions.create("left", SessionSettings(cwd=state.parent), Attachment(client))
    used = sessions.create("used", SessionSettings(cwd=state.parent), Attachment(other))
    left.send(Prompt("hi"))
    await client.wait_for(events.SessionIdle)
    idle = IdleSessions(sessions, timeout_s=60)
    with anyio.fail_after(WAIT_S):
        await idle.check(now=0)
        sessions.detach_client(client)
        # Counted from the first check that finds the session without clients.
        await idle.check(now=100)
        await idle.check(now=159)
        assert sessions.is_live(left)
        await idle.check(now=160)

    assert not sessions.is_live(left)
    assert sessions.is_live(used)
    assert (state / "left" / "events.jsonl").exists()


# Blocking calls, as functions that async tests may use.


def files_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def write_text(path: Path, text: str) -> None:
    path.write_text(text)


def make_folder(path: Path) -> None:
    path.mkdir(parents=True)


def test_a_summary_has_the_prompt_as_it_was_typed() -> None:
    ran = '\n\n<user_command line="git status">\nOn branch main\n[exit code 0]\n</user_command>'
    assert shorten(f"please\nedit it{ran}{ran}") == "please edit it"
    assert shorten("what is </user_command> for?") == "what is </user_command> for?"
