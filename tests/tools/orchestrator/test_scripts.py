"""Scripts that call tools, in a real session with a scripted model, and in real sandboxes."""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from anyio.abc import TaskGroup

from jumpseat.agent.blocks import ToolMessage
from jumpseat.agent.conversation.conversation import INTERRUPTED
from jumpseat.agent.settings import SessionSettings
from jumpseat.sandbox.closed import interpreter
from jumpseat.sandbox.session import Sandboxes
from jumpseat.sandbox.settings import SandboxSettings
from jumpseat.tools.builtin import builtin_tools
from jumpseat.tools.orchestrator.environment import ScriptSettings
from jumpseat.tools.orchestrator.inner_calls import SHOWN_CHARACTERS
from jumpseat.tools.shell.script_process import (
    MAX_CALLS,
    MAX_OUTPUT_BYTES,
    MAX_REQUESTS,
    WHOLE_S,
    ScriptEnd,
    ScriptProcess,
    program_of,
)
from jumpseat_protocol import events
from jumpseat_protocol.sessions import ClientTool
from tests.support.limits import WAIT_S
from tests.support.pictures import png
from tests.support.sessions import MadeSession, make_session

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="scripts are not available on Windows"),
]

TOOLS = [tool for tool in builtin_tools() if tool.name in ("call_tools", "view", "glob", "create", "bash")]


@pytest.fixture
async def sandboxes(tmp_path: Path) -> Sandboxes:
    """Return sandboxes of this system, of which one can confine scripts."""
    made = Sandboxes(SandboxSettings("off"), tmp_path / "home", dict(os.environ))
    await made.probe()
    if not made.can_close_off:
        pytest.skip("needs a sandbox without gaps")
    return made


def session(tasks: TaskGroup, cwd: Path, script: str, sandboxes: Sandboxes | None, **options: Any) -> MadeSession:
    call = {"id": "c1", "name": "call_tools", "arguments": {"script": script}}
    options = {"scripts": ScriptSettings(by_default=True), **options}
    return make_session(
        tasks,
        script=[{"tool_calls": [call]}, {"text": "done"}],
        settings=SessionSettings(cwd=cwd),
        builtin=TOOLS,
        sandboxes=sandboxes,
        **options,
    )


def outcome(made: MadeSession) -> str:
    """Return what the model got for the only call that it made."""
    messages = [message for message in made.session.conversation.messages() if isinstance(message, ToolMessage)]
    ((block,),) = [message.results for message in messages]
    return block.text


def ends(made: MadeSession) -> dict[str, events.ToolExecutionComplete]:
    found = made.client.payloads(events.ToolExecutionComplete)
    assert Counter(end.tool_call_id for end in found) == Counter(
        start.tool_call_id for start in made.client.payloads(events.ToolExecutionStart)
    )
    assert len({end.tool_call_id for end in found}) == len(found)
    return {end.tool_call_id: end for end in found}


async def test_ten_calls_are_one_round_and_the_model_gets_only_what_is_printed(
    tasks: TaskGroup, tmp_path: Path, sandboxes: Sandboxes
) -> None:
    for number in range(9):
        (tmp_path / f"{number}.txt").write_text(f"text {number}")
    script = """
names = sorted(glob("*.txt").split())
texts = parallel(view, names)
print(len(texts), texts[8])
"""
    made = session(tasks, tmp_path, script, sandboxes, approve_all=True)
    await made.ask("go")

    assert outcome(made) == "9 1. text 8"
    found = ends(made)
    assert set(found) == {"c1", *(f"c1.{number}" for number in range(1, 11))}
    assert {end.parent_tool_call_id for name, end in found.items() if name != "c1"} == {"c1"}
    assert found["c1"].parent_tool_call_id is None
    # The requests of the session have no more tools than before.
    assert made.session.history.tools_in_use == {"call_tools"}
    assert made.session.history.inner_calls == {}


async def test_a_script_calls_tools_by_names_of_other_agents_and_gets_results_without_notes(
    tasks: TaskGroup, tmp_path: Path, sandboxes: Sandboxes
) -> None:
    (tmp_path / "a.txt").write_text("text")
    script = """
texts = {call("ReadFile", path="a.txt", other=1), Read(file_path="a.txt"), Read("a.txt"), view("a.txt")}
print(texts)
try:
    Deploy("a.txt")
except NameError as error:
    print(error)
"""
    made = session(tasks, tmp_path, script, sandboxes, approve_all=True)
    await made.ask("go")

    printed, *notes = outcome(made).split("\n[")
    assert printed == "{'1. text'}\nname 'Deploy' is not defined"
    assert any(note.startswith("This tool is called `view`, not `ReadFile`") for note in notes)
    assert any(note.startswith("Ignored, because `view` has no such argument: `other`") for note in notes)
    assert any(note.startswith("This call had the same result 3 times") for note in notes)
    assert {start.tool_name for start in made.client.payloads(events.ToolExecutionStart)} == {"call_tools", "view"}


async def test_images_of_calls_of_a_script_reach_the_model(
    tasks: TaskGroup, tmp_path: Path, sandboxes: Sandboxes
) -> None:
    (tmp_path / "a.png").write_bytes(png(2, 2))
    made = session(tasks, tmp_path, 'view("a.png")', sandboxes, approve_all=True)
    await made.ask("go")
    messages = [message for message in made.session.conversation.messages() if isinstance(message, ToolMessage)]
    assert [image.mime_type for image in messages[0].results[0].images] == ["image/png"]


async def test_a_call_with_effects_is_asked_about_and_a_denial_is_an_exception(
    tasks: TaskGroup, tmp_path: Path, sandboxes: Sandboxes
) -> None:
    script = """
for name in ("a", "b"):
    try:
        print(create(path=name, file_text="x"))
    except ToolError as error:
        print("denied", bool(str(error)))
"""
    made = session(tasks, tmp_path, script, sandboxes)
    sent = made.send("go")
    first = await made.client.wait_for(events.PermissionRequested)
    assert first.permission_request.tool_call_id == "c1.1"
    made.decide(first, {"kind": "approve-once"})
    made.decide(await made.client.wait_for(events.PermissionRequested, 2), {"kind": "user-not-available"})
    with anyio.fail_after(WAIT_S):
        await sent.run.done.wait()

    assert outcome(made).endswith("denied True")
    assert [(tmp_path / name).exists() for name in ("a", "b")] == [True, False]
    assert [end.success for end in ends(made).values()] == [True, False, True]


async def test_a_call_that_the_person_rejects_ends_the_turn(
    tasks: TaskGroup, tmp_path: Path, sandboxes: Sandboxes
) -> None:
    script = 'for name in ("a", "b"):\n    try: create(path=name, file_text="x")\n    except ToolError: pass'
    made = session(tasks, tmp_path, script, sandboxes)
    sent = made.send("go")
    made.decide(await made.client.wait_for(events.PermissionRequested), {"kind": "reject"})
    with anyio.fail_after(WAIT_S):
        await sent.run.done.wait()

    # The second call did not run, and the model was not called again.
    assert [end.success for end in ends(made).values()] == [False, False, False]
    assert len(made.client.payloads(events.PermissionRequested)) == 1
    assert len(made.client.payloads(events.AssistantMessage)) == 1


async def test_plan_mode_and_hooks_hold_for_the_calls_of_a_script(
    tasks: TaskGroup, tmp_path: Path, sandboxes: Sandboxes
) -> None:
    (tmp_path / "a.txt").write_text("text")
    script = """
print(view("a.txt"))
for call in (lambda: create(path="new", file_text="x"), lambda: glob("*")):
    try:
        print(call())
    except ToolError as error:
        print("refused:", error)
"""
    hooks = {
        "preToolUse": [None, None, None, {"permissionDecision": "deny", "permissionDecisionReason": "No glob"}]
    }
    made = session(tasks, tmp_path, script, sandboxes, approve_all=True, hooks=hooks)
    await made.ask("go", agent_mode="plan")

    lines = outcome(made).splitlines()
    assert lines[0] == "1. text"
    assert lines[1].startswith("refused: ")
    assert lines[2] == "refused: Denied by preToolUse hook: No glob"
    assert not (tmp_path / "new").exists()


async def test_a_script_sees_and_reaches_nothing_itself(
    tasks: TaskGroup, tmp_path: Path, sandboxes: Sandboxes
) -> None:
    (tmp_path / "secret").write_text("s3cret")
    script = f"""
import os, socket
for attempt in (
    lambda: open({str(tmp_path / "secret")!r}).read(),
    lambda: open({str(tmp_path / "new")!r}, "w"),
    lambda: open(os.path.join({str(Path.home())!r}, "new"), "w"),
    lambda: os.kill({os.getpid()}, 0),
    lambda: socket.create_connection(("127.0.0.1", 9), 1),
):
    try:
        print("reached", attempt())
    except OSError:
        print("refused")
print(sorted(os.environ.keys() - {{"LC_CTYPE", "TZ", "LD_LIBRARY_PATH"}}))
"""
    made = session(tasks, tmp_path, script, sandboxes)
    await made.ask("go")

    assert outcome(made).splitlines() == ["refused"] * 5 + ["['MALLOC_ARENA_MAX', 'PATH', 'PWD']"]


async def test_calls_that_are_open_when_the_turn_is_aborted_end_once(
    tasks: TaskGroup, tmp_path: Path, sandboxes: Sandboxes
) -> None:
    tools = [ClientTool(name=name, skip_permission=True) for name in ("one", "two")]
    made = session(tasks, tmp_path, "parallel(call, ['one', 'two'])", sandboxes, tools=tools)
    sent = made.send("go")
    await made.client.wait_for(events.ExternalToolRequested, 2)
    await made.session.abort("user_initiated")
    with anyio.fail_after(WAIT_S):
        await sent.run.done.wait()

    found = ends(made)
    assert set(found) == {"c1", "c1.1", "c1.2"}
    assert {end.error.message for end in found.values() if end.error} == {INTERRUPTED}


async def test_a_script_that_ends_leaves_no_call_open(
    tasks: TaskGroup, tmp_path: Path, sandboxes: Sandboxes
) -> None:
    script = """
import threading, os
threading.Thread(target=lambda: call("slow"), daemon=True).start()
call("answered")
print("left")
"""
    tools = [ClientTool(name=name, skip_permission=True) for name in ("slow", "answered")]
    made = session(tasks, tmp_path, script, sandboxes, tools=tools)
    sent = made.send("go")
    await made.client.wait_for(events.ExternalToolRequested, 2)
    (answered,) = [
        request for request in made.client.payloads(events.ExternalToolRequested) if request.tool_name == "answered"
    ]
    made.answer_tool(answered, "yes")
    with anyio.fail_after(WAIT_S):
        await sent.run.done.wait()

    assert outcome(made) == "left"
    assert sorted(end.success for end in ends(made).values()) == [False, True, True]


async def test_the_tool_is_offered_where_scripts_can_be_confined_or_the_user_allows_otherwise(
    tasks: TaskGroup, tmp_path: Path, sandboxes: Sandboxes
) -> None:
    none = Sandboxes(SandboxSettings("off"), tmp_path / "other", dict(os.environ))
    none.probed = True

    async def offered(**options: Any) -> bool:
        made = make_session(tasks, builtin=TOOLS, **options)
        await made.session.tools.ready()
        return "call_tools" in made.session.tools.names()

    by_default = ScriptSettings(by_default=True)
    assert not await offered(sandboxes=sandboxes)
    assert await offered(sandboxes=sandboxes, scripts=by_default)
    assert not await offered(sandboxes=none, scripts=by_default)
    assert await offered(sandboxes=none, scripts=ScriptSettings(by_default=True, unconfined=True))
    for names, expected in ((["@all"], True), (["call_tools"], True), (["@minimal"], False), (["view"], False)):
        settings = SessionSettings(cwd=tmp_path)
        settings.options.available_tools = names
        assert await offered(sandboxes=sandboxes, settings=settings) is expected


async def test_only_sessions_with_scripts_or_commands_wait_for_the_test_of_the_sandbox(
    tasks: TaskGroup, tmp_path: Path
) -> None:
    for available, excluded, expected in (
        (["view"], [], False),
        (["@all"], ["call_tools"], False),
        (["@all"], [], True),
    ):
        sandboxes = Sandboxes(SandboxSettings("off"), tmp_path / "home", dict(os.environ))
        settings = SessionSettings(cwd=tmp_path)
        settings.options.available_tools, settings.options.excluded_tools = available, excluded
        made = make_session(tasks, builtin=TOOLS, sandboxes=sandboxes, settings=settings)
        await made.session.tools.ready()
        assert sandboxes.probed is expected


async def test_a_script_without_a_sandbox_is_asked_about_like_a_command(tasks: TaskGroup, tmp_path: Path) -> None:
    scripts = ScriptSettings(by_default=True, unconfined=True)
    made = session(tasks, tmp_path, "print(6 * 7)", None, scripts=scripts)
    sent = made.send("go")
    request = await made.client.wait_for(events.PermissionRequested)
    assert request.permission_request.kind == "shell"
    made.decide(request, {"kind": "approve-once"})
    with anyio.fail_after(WAIT_S):
        await sent.run.done.wait()

    assert outcome(made) == "42"


async def test_a_script_that_is_no_python_does_not_start(tasks: TaskGroup, tmp_path: Path) -> None:
    made = session(tasks, tmp_path, "for x in:", None, scripts=ScriptSettings(True, True))
    await made.ask("go")

    assert outcome(made) == "The script is not valid Python: invalid syntax (line 1)."


# --- the process alone ------------------------------------------------------------------------------------------


async def run(
    script: str, own_s: float = 60.0, whole_s: float = WHOLE_S
) -> tuple[ScriptEnd, list[tuple[str, dict[str, Any]]]]:
    """Run a script outside of a sandbox; its calls of ``add`` are answered, those of ``fail`` fail."""
    made: list[tuple[str, dict[str, Any]]] = []

    async def call(name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        made.append((name, arguments))
        if name == "wait":
            await anyio.sleep_forever()
        return (f"no {name}", False) if name == "fail" else (str(sum(arguments.values())), True)

    process = ScriptProcess(call, lambda name: f"about {name}", own_s, whole_s)
    tools = {"add": ["a", "b"], "with-hyphen": ["a"], "fail": [], "wait": []}
    with anyio.fail_after(WAIT_S):
        command = await anyio.to_thread.run_sync(partial(program_of, interpreter()))
        return await process.run(command, {"PATH": os.defpath}, script, tools), made


async def test_functions_take_the_arguments_of_tools_by_place_and_by_name() -> None:
    end, made = await run("print(add(1, b=2), with_hyphen(3), call('with-hyphen', a=4)); help(add); help()")
    assert end == ScriptEnd("3 3 4\nabout add\nabout None\n")
    assert made == [("add", {"a": 1, "b": 2}), ("with-hyphen", {"a": 3}), ("with-hyphen", {"a": 4})]


async def test_an_error_of_a_script_shows_its_own_lines() -> None:
    end, _ = await run("def f():\n    return fail()\nf()")
    assert end.problem == "The script ended with exit code 1."
    # Newer versions of Python mark the place in a line.
    assert [line for line in end.output.splitlines() if line.strip("^~ ")] == [
        '  File "script", line 3, in <module>',
        "    f()",
        '  File "script", line 2, in f',
        "    return fail()",
        "ToolError: no fail",
    ]


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("import os; print('so far'); os.kill(os.getpid(), 9)", "The script ended with exit code -9."),
        ("import sys; print('so far'); sys.exit(3)", "The script ended with exit code 3."),
        (
            "import os\nprint('so far')\nfor fd in range(3, 20):\n  try: os.write(fd, b'{}\\n')\n"
            "  except OSError: pass\nwait()",
            "The script wrote something else than calls to its connection.",
        ),
        (
            "print('so far'); add('x' * 3_000_000)",
            "A call of the script was larger than 1048576 bytes.",
        ),
    ],
)
async def test_a_script_that_does_not_end_well_says_so_after_its_output(script: str, problem: str) -> None:
    end, _ = await run(script)
    assert end == ScriptEnd("so far\n", problem)


async def test_a_script_without_an_end_is_ended() -> None:
    end, _ = await run("while True: pass", own_s=0.5)
    assert end == ScriptEnd("", "The script was ended after 0.5 seconds.")


async def test_a_script_whose_calls_have_no_end_is_ended() -> None:
    end, _ = await run("wait()", whole_s=0.5)
    assert end == ScriptEnd("", "The script was ended after 0.5 seconds with its calls.")


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("while True: help(add)", f"The script made more than {MAX_REQUESTS} requests."),
        (
            "while True:\n  try: add(1)\n  except ToolError: pass",
            f"The script made more than {MAX_REQUESTS} requests.",
        ),
        ("while True: print('x' * 1_000_000)", f"The script printed more than {MAX_OUTPUT_BYTES} bytes."),
    ],
)
async def test_a_script_that_floods_the_server_is_ended(script: str, problem: str) -> None:
    end, made = await run(script)
    assert end.problem == problem
    assert len(made) <= MAX_CALLS


async def test_the_calls_of_a_script_are_limited_and_the_time_of_its_calls_does_not_count() -> None:
    script = f"""
results = []
for number in range({MAX_CALLS + 2}):
    try:
        results.append(add(number))
    except ToolError as error:
        results.append(str(error))
print(len(set(results)), results[-1])
"""
    end, made = await run(script)
    assert len(made) == MAX_CALLS
    limit = f"This call did not run: a script makes at most {MAX_CALLS} calls"
    assert end.output == f"{MAX_CALLS + 1} {limit}\n"


async def test_what_a_script_starts_has_no_connection_to_the_server() -> None:
    script = """
import os, subprocess, sys
code = "import os\\nfor fd in range(3, 30):\\n  try: os.fstat(fd); print('open', fd)\\n  except OSError: pass"
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, stdin=0).stdout or "nothing")
"""
    end, _ = await run(script)
    assert end.output == "nothing\n"


async def test_a_script_can_neither_break_its_connection_nor_take_the_memory_of_the_machine(
    tasks: TaskGroup, tmp_path: Path, sandboxes: Sandboxes
) -> None:
    script = """
deep = []
for _ in range(900):
    deep = [deep]
for attempt in (lambda: view(deep), lambda: bytearray(3 << 30)):
    try:
        print(attempt())
    except (ToolError, MemoryError) as error:
        print(type(error).__name__)
help("none")
"""
    made = session(tasks, tmp_path, script, sandboxes, approve_all=True)
    await made.ask("go")
    assert outcome(made).splitlines() == ["ToolError", "MemoryError", "There is no tool 'none'."]
    assert ends(made)["c1"].success


async def test_a_script_starts_no_process_and_takes_no_memory_that_is_not_counted(
    tasks: TaskGroup, tmp_path: Path, sandboxes: Sandboxes
) -> None:
    script = """
import ctypes, os, resource, socket, subprocess, sys, tempfile, threading
libc = ctypes.CDLL(None, use_errno=True)
def shared_memory():
    if libc.shmget(0, 1 << 20, 0o1600) < 0:
        raise OSError(ctypes.get_errno())
def queue():
    if libc.msgget(0, 0o1600) < 0:
        raise OSError(ctypes.get_errno())
attempts = {
    "fork": os.fork,
    "vfork": lambda: subprocess.run(["/bin/true"]),
    "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "namespace": lambda: [] if libc.unshare(0x10000000) == 0 else [][0],
    "/dev/shm": lambda: open("/dev/shm/x", "w"),
    "/tmp": lambda: open("/tmp/x", "w"),
    "unnamed": lambda: os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR),
    "/dev": lambda: os.mkdir("/dev/x"),
    "link": lambda: os.symlink("x" * 4000, "/dev/shm/x"),
    "node": lambda: os.mkfifo("/dev/shm/x"),
    "memory": lambda: os.memfd_create("x"),
    "shared memory": shared_memory,
    "queue": queue,
    "socket": socket.socket,
    "vsock": lambda: socket.socket(40, socket.SOCK_STREAM),
    "pipes": lambda: [os.pipe() for _ in range(1000)],
    "limit": lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name)
    except (OSError, ValueError, IndexError):
        pass
started = [threading.Thread(target=len, args=("",)) for _ in range(8)]
[(thread.start(), thread.join()) for thread in started]
print("threads", resource.getrlimit(resource.RLIMIT_CPU))
"""
    made = session(tasks, tmp_path, script, sandboxes, approve_all=True)
    await made.ask("go")
    if sys.platform == "linux":
        assert outcome(made) == "threads (60, 60)"


async def test_results_for_a_script_are_stored_in_part(
    tasks: TaskGroup, tmp_path: Path, sandboxes: Sandboxes
) -> None:
    (tmp_path / "large.txt").write_text("x" * 9000)
    script = f"print(len(view({str(tmp_path / 'large.txt')!r})) > 9000)"
    made = session(tasks, tmp_path, script, sandboxes, approve_all=True)
    await made.ask("go")
    assert outcome(made) == "True"
    stored = ends(made)["c1.1"].result
    assert stored is not None
    assert len(stored.content) < SHOWN_CHARACTERS + 100
