"""``jumpseat run`` through pipes: output, exit codes, permissions and signals."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.support.forked import INSTALLED, executable
from tests.support.limits import WAIT_S
from tests.terminal.terminal import CONFIG, Place

WRITES = {"name": "create", "arguments": {"path": "a.txt", "file_text": "one\n"}}

SCRIPT = {
    "prompts": [
        {
            "when": "write",
            "turns": [{"text": "I will.", "tool_calls": [WRITES]}, {"text": "Then: {{last_tool_result}}"}],
        },
        {
            "when": "ask",
            "turns": [
                {"tool_calls": [{"name": "ask_user", "arguments": {"question": "What?"}}]},
                {"text": "I did not."},
            ],
        },
        {"when": "fail", "turns": [{"errors": [{"status": 401, "message": "bad key"}], "text": "never"}]},
        {"when": "hang", "turns": [{"text": "Working on it", "hang": True}]},
        {
            "when": "outside",
            "turns": [{"tool_calls": [{"name": "view", "arguments": {"path": "/etc/passwd"}}]}, {"text": "never"}],
        },
        {"when": "look", "turns": [{"text": "I see.", "expect": {"user": r"/notes\.txt .2 lines/"}}]},
        {"when": "count", "turns": [{"text": "About three."}, {"text": '{"n": 3}'}]},
        {"when": "escape", "turns": [{"text": "\x1b[31mred\x1b[0m"}]},
        {"turns": [{"text": "You said: {{last_user}}", "usage": {"input": 7, "output": 3}}]},
    ]
}


Streams: TypeAlias = dict[str, Any]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, SCRIPT)


def test_only_the_answer_goes_to_stdout(place: Place) -> None:
    done = place.run("-p", "hello")
    assert (done.returncode, done.stdout, done.stderr) == (0, "You said: hello\n", "")


def test_a_model_with_a_small_window_is_told_once_to_get_few_tools(place: Place) -> None:
    small = CONFIG.replace('["one",', '[{id = "one", context_window = 4096},')
    (place.home / "config.toml").write_text(small)
    done = place.run("-p", "write it")
    assert done.stdout.startswith("I will.")
    assert done.stderr.count("gets only these tools, because its window is 4,096 tokens: bash,") == 1


def test_prompt_can_come_from_stdin(place: Place) -> None:
    done = place.run("-p", "-", stdin="from a pipe, with ünïcode")
    assert (done.returncode, done.stdout) == (0, "You said: from a pipe, with ünïcode\n")


def test_prompt_can_be_an_argument_of_its_own_or_all_of_stdin(place: Place) -> None:
    assert place.run("say hello").stdout == "You said: say hello\n"
    assert place.run(stdin="from a pipe").stdout == "You said: from a pipe\n"
    assert place.run("-", stdin="from a pipe").stdout == "You said: from a pipe\n"


def test_structured_answer_is_all_of_stdout_and_one_that_does_not_match_fails(place: Place) -> None:
    schema = place.project / "schema.json"
    schema.write_text('{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}')
    done = place.run("count", "--json-schema", str(schema))
    assert (done.returncode, done.stdout) == (0, '{"n": 3}\n')
    done = place.run("hello", "--json-schema", str(schema))
    assert (done.returncode, done.stdout) == (1, "")
    schema.write_text("[1]")
    done = place.run("count", "--json-schema", str(schema))
    assert (done.returncode, done.stdout) == (2, "")
    assert "expected a JSON Schema, which is an object" in done.stderr


def test_piped_input_is_added_to_the_prompt(place: Place) -> None:
    done = place.run("-p", "sum up", stdin="one\ntwo\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "You said: sum up\n\n<stdin>\none\ntwo\n</stdin>\n"
    assert place.run("-p", "hello", stdin="").stdout == "You said: hello\n"
    with (place.project / "file").open("w+") as file:
        file.write("from a file")
        file.seek(0)
        with start(place, "-p", "sum up", stdin=file, stdout=subprocess.PIPE, text=True) as run:
            assert "from a file" in run.communicate(timeout=120)[0]


def test_the_run_does_not_wait_for_a_socket_without_input(place: Place) -> None:
    """Some programs start others with a socket as stdin, and never close it."""
    test_end, run_end = socket.socketpair()
    pipes: Streams = {"stdin": run_end, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with test_end, run_end, start(place, "-p", "hello", **pipes) as run:
        stdout, stderr = run.communicate(timeout=120)
    assert (run.returncode, stdout) == (0, "You said: hello\n")
    assert stderr.startswith("warning: no input on stdin")


def test_pipe_is_read_to_its_end_and_waiting_is_announced(place: Place) -> None:
    pipes: Streams = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
    }
    with start(place, "-p", "sum up", **pipes) as run:
        assert run.stderr is not None
        assert run.stderr.readline().startswith("reading stdin until it ends")
        assert "<stdin>\nat last\n</stdin>" in run.communicate("at last", timeout=120)[0]


def test_too_much_input_is_exit_code_2(place: Place) -> None:
    done = place.run("-p", "sum up", stdin="x" * (9 << 20))
    assert (done.returncode, done.stderr) == (2, "error: stdin has more than 8 MiB\n")


def test_files_can_be_attached(place: Place) -> None:
    (place.project / "notes.txt").write_text("one\ntwo\n")
    done = place.run("-p", "look", "--attach", "notes.txt")
    assert (done.returncode, done.stdout) == (0, "I see.\n")
    # Mentions in the prompt attach nothing: the prompt may come from an untrusted source.
    assert place.run("-p", "look @notes.txt").returncode == 1


def test_json_output_is_one_object_with_the_result(place: Place) -> None:
    done = place.run("-p", "hello", "--output-format", "json")
    result = json.loads(done.stdout)
    assert result.pop("durationMs") > 0
    assert result.pop("sessionId")
    assert result == {
        "type": "run.result",
        "exitCode": 0,
        "result": "You said: hello",
        "error": None,
        "denied": [],
        "model": "one",
        "usage": {"inputTokens": 7, "outputTokens": 3, "cacheReadTokens": 0, "cacheWriteTokens": 0},
    }


def test_stream_json_output_is_every_event_and_then_the_result(place: Place) -> None:
    done = place.run("-p", "write it", "--allow-tool", "write", "--output-format", "stream-json")
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [lines[0]["type"], lines[-1]["type"]] == ["run.started", "run.result"]
    types = [line["type"] for line in lines]
    for kind in ("user.message", "assistant.message_delta", "tool.execution_start", "tool.execution_complete"):
        assert kind in types
    assert types[-2] == "session.idle"
    assert lines[0]["sessionId"] == lines[-1]["sessionId"]


def test_call_that_needs_approval_ends_the_run_and_the_allowing_rule_is_suggested(place: Place) -> None:
    done = place.run("-p", "write it")
    assert (done.returncode, done.stdout) == (3, "I will.\n")
    assert "denied: create wants to write" in done.stderr
    assert "  allow it with --allow-tool 'write(a.txt)', or everything with --yolo" in done.stderr
    assert not (place.project / "a.txt").exists()
    result = json.loads(place.run("-p", "write it", "--output-format", "json").stdout)
    assert [(denial["tool"], denial["kind"]) for denial in result["denied"]] == [("create", "write")]


def test_suggested_rule_names_a_path_outside_the_folder(place: Place) -> None:
    done = place.run("-p", "outside")
    assert done.returncode == 3
    assert "allow it with --allow-tool 'read(/etc/passwd)'," in done.stderr
    assert place.run("-p", "outside", "--allow-tool", "read(/etc/passwd)").stdout == "never\n"


@pytest.mark.parametrize("args", [("--yolo",), ("--allow-tool", "write"), ("--allow-tool", "create")])
def test_allowed_calls_run(place: Place, args: tuple[str, ...]) -> None:
    done = place.run("-p", "write it", *args)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "I will.\n\nThen: Created file a.txt with 4 characters\n"
    assert (place.project / "a.txt").read_text() == "one\n"


def test_denial_by_a_rule_is_reported_to_the_model_which_goes_on(place: Place) -> None:
    done = place.run("-p", "write it", "--yolo", "--deny-tool", "write(*.txt)")
    assert done.returncode == 0
    assert "Permission denied by a rule: write(*.txt)" in done.stdout
    assert not (place.project / "a.txt").exists()


def test_tool_denied_by_name_is_not_offered(place: Place) -> None:
    place.home.joinpath("script.yaml").write_text("turns: [{text: x, expect: {tools: [create]}}]")
    assert place.run("-p", "hello").returncode == 0
    assert place.run("-p", "hello", "--deny-tool", "create").returncode == 1


@pytest.mark.parametrize(("names", "code"), [("view, create", 0), ("view", 1), ("none", 1)])
def test_only_the_named_tools_are_offered(place: Place, names: str, code: int) -> None:
    place.home.joinpath("script.yaml").write_text("turns: [{text: x, expect: {tools: [create]}}]")
    assert place.run("-p", "hello", "--tools", names).returncode == code


def test_a_session_has_the_budget_of_the_arguments(place: Place) -> None:
    assert place.run("-p", "hello", "--max-tokens", "1_000_000").returncode == 0
    done = place.run("-p", "hello", "--continue", "--max-tokens", "10", "--output-format", "json")
    failed = json.loads(done.stdout)
    assert (done.returncode, failed["error"]["type"]) == (1, "budget")
    assert " of 10 tokens: raise budget.session.maxTokens" in failed["error"]["message"]
    done = place.run("-p", "hello", "--continue", "--max-cost", "$2.50", "--max-tokens", "1000000")
    assert "the price of 'one' is unknown" in done.stderr
    for wrong in (("--max-cost", "0"), ("--max-cost", "nan"), ("--max-tokens", "-1"), ("--max-tokens", "1.5")):
        assert place.run("-p", "hello", *wrong).returncode == 2


def test_model_cannot_ask_the_user(place: Place) -> None:
    done = place.run("-p", "ask me")
    assert (done.returncode, done.stdout) == (0, "I did not.\n")


def test_failed_turn_is_exit_code_1(place: Place) -> None:
    done = place.run("-p", "fail")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: HTTP 401 Unauthorized: bad key\n"


def test_without_a_model_the_error_explains_how_to_find_one(place: Place) -> None:
    (place.home / "config.toml").unlink()
    done = place.run("-p", "hello")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no model is configured" in done.stderr
    assert "'jumpseat adapters' lists what is available" in done.stderr


def test_server_that_does_not_start_is_exit_code_1(place: Place) -> None:
    (place.home / "config.toml").write_text("nonsense = = 1")
    done = place.run("-p", "hello")
    assert (done.returncode, done.stdout) == (1, "")
    assert "config.toml" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ((), "the prompt on stdin is empty"),
        (("x", "-p", "y"), "PROMPT and --prompt are mutually exclusive"),
        (("x", "--json-schema", "nothing"), "cannot read 'nothing'"),
        (("-p", " "), "the prompt is empty"),
        (("-p", "-"), "the prompt on stdin is empty"),
        (("-p", "x", "--output-format", "xml"), "invalid choice"),
        (("-p", "x", "--allow-tool", "shell("), "invalid rule 'shell('"),
        (("-p", "x", "--resume"), "--resume: expected one argument"),
        (("-p", "x", "--resume", "abc", "--continue"), "mutually exclusive"),
        (("-p", "x", "--resume", "abc"), "no session has an id that starts with 'abc'"),
        (("-p", "x", "--continue"), "no session in "),
        (("-p", "x", "-C", "/nowhere/at/all"), "is not a folder"),
        (("-p", "x", "--attach", "nothing"), "no such file to attach: 'nothing'"),
        (("-p", "x", "--nonsense"), "unknown option '--nonsense'"),
    ],
)
def test_invalid_arguments_are_exit_code_2_with_a_message(place: Place, args: tuple[str, ...], reason: str) -> None:
    done = place.run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_session_can_be_resumed_by_id_and_as_the_latest(place: Place) -> None:
    first = json.loads(place.run("-p", "hello", "--output-format", "json").stdout)["sessionId"]
    by_id = json.loads(place.run("-p", "x", "--output-format", "json", "--resume", first[:8]).stdout)
    latest = json.loads(place.run("-p", "x", "--output-format", "json", "--continue").stdout)
    assert by_id["sessionId"] == latest["sessionId"] == first


def start(
    place: Place, *args: str, installed: bool = False, env: Mapping[str, str] | None = None, **streams: Any
) -> subprocess.Popen[Any]:
    """Start ``jumpseat run``, from the ``installed`` executable where its process or its start matters."""
    command = INSTALLED if installed else executable()
    return subprocess.Popen([command, "run", *args], env=place.env(env), cwd=place.project, **streams)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_cancels_the_turn_and_ends_the_server(place: Place, number: int, code: int) -> None:
    pipes: Streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(place, "-p", "hang", installed=True, **pipes) as run:
        assert run.stdout is not None
        assert run.stdout.read(7) == b"Working"
        server = int(Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text())
        run.send_signal(number)
        assert run.wait(WAIT_S) == code
        assert not Path(f"/proc/{server}").exists()
    # The session is kept and can be resumed.
    done = place.run("-p", "hello", "--continue")
    assert (done.returncode, done.stdout) == (0, "You said: hello\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_run_cancelled_early_still_prints_its_result(place: Place, number: int, code: int) -> None:
    # The import of this tool does not end, so no session is created.
    pipe = place.home / "pipe"
    os.mkfifo(pipe)
    (place.home / "tools").mkdir()
    (place.home / "tools" / "slow.py").write_text(f"open({str(pipe)!r}).read()")
    pipes: Streams = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
    }
    with (
        start(place, "-p", "hello", "--output-format", "json", **pipes) as run,
        pipe.open("w"),
    ):
        run.send_signal(number)
        stdout, stderr = run.communicate(timeout=120)
    assert (run.returncode, stderr) == (code, "")
    assert (json.loads(stdout)["exitCode"], json.loads(stdout)["sessionId"]) == (code, None)


@pytest.mark.parametrize(
    ("redirection", "code", "output"),
    [
        (">&-", 141, ""),
        ("2>&-", 0, "You said: hello\n"),
        ("<&-", 0, "You said: hello\n"),
        (">/dev/full", 1, "error: cannot write the answer: No space left on device\n"),
    ],
)
def test_closed_and_full_streams_give_at_most_one_message(
    place: Place, redirection: str, code: int, output: str
) -> None:
    process = subprocess.run(
        ["sh", "-c", f"{shlex.quote(INSTALLED)} run -p hello {redirection}"],
        capture_output=True,
        text=True,
        env=place.env(),
        cwd=place.project,
        check=False,
    )
    assert (process.returncode, process.stdout + process.stderr) == (code, output)


def test_closed_stdout_ends_the_run_quietly(place: Place) -> None:
    # In this script alone: reading half a megabyte of YAML takes most of a second.
    (place.home / "script.yaml").write_text(f"turns: [{{text: {'word ' * 100_000}}}]")
    pipes: Streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(place, "-p", "much", **pipes) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.read(100)
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait(WAIT_S) == 141


def test_pipes_get_the_models_text_and_terminals_safe_text(place: Place) -> None:
    assert place.run("-p", "escape").stdout == "\x1b[31mred\x1b[0m\n"
    output, code = in_a_terminal(place, "-p", "escape")
    assert (code, output) == (0, b"red\r\n")


def test_progress_is_shown_on_a_terminal_while_the_answer_goes_to_a_file(place: Place) -> None:
    """stdout is a file, stderr a terminal."""
    (place.home / "script.yaml").write_text(
        "turns:\n  - tool_calls: [{name: bash, arguments: {command: sleep 1}}]\n  - text: done\n"
    )
    with (place.project / "answer").open("wb") as answer:
        output, code = in_a_terminal(place, "-p", "go", "--yolo", stdout=answer, env={"TERM": "xterm"})
    assert (code, (place.project / "answer").read_bytes()) == (0, b"done\n")
    assert re.search(rb"bash sleep 1 \.\.\. \d+ s", output)
    assert b"ok: bash sleep 1\r\n" in output


def test_progress_and_answer_share_a_terminal_but_not_a_dumb_one(place: Place) -> None:
    (place.home / "script.yaml").write_text(
        "turns:\n  - tool_calls: [{name: bash, arguments: {command: sleep 1}}]\n  - text: done\n"
    )
    output, code = in_a_terminal(place, "-p", "go", "--yolo", env={"TERM": "xterm"})
    assert code == 0
    assert b"\r\x1b[Kbash sleep 1 ... 0 s" in output
    # After a finished line, or after an erased one.
    assert re.search(rb"(\n|\r\x1b\[K)done\r\n", output)
    output, code = in_a_terminal(place, "-p", "go", "--yolo", env={"TERM": "dumb"})
    assert (code, output) == (0, b"ok: bash sleep 1\r\ndone\r\n")


def in_a_terminal(
    place: Place, *args: str, stdout: Any = None, env: Mapping[str, str] | None = None
) -> tuple[bytes, int]:
    """Run on a terminal, with ``stdout`` redirected if given; return the terminal's output and the exit code."""
    keyboard, terminal = pty.openpty()
    with start(place, *args, env=env, stdin=terminal, stdout=stdout or terminal, stderr=terminal) as run:
        os.close(terminal)
        output = b""
        while select.select([keyboard], [], [], 20)[0]:
            try:
                data = os.read(keyboard, 65536)
            except OSError:
                # Linux raises this after the other end was closed.
                break
            if not data:
                break
            output += data
        code = run.wait(WAIT_S)
    os.close(keyboard)
    return output, code


def test_chat_without_a_terminal_suggests_run(place: Place) -> None:
    process = subprocess.run(
        [executable(), "chat"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=place.env(),
        check=False,
    )
    assert (process.returncode, process.stdout) == (2, "")
    assert "jumpseat run" in process.stderr
    assert "Traceback" not in process.stderr


def test_run_does_not_import_what_only_chat_needs() -> None:
    code = "import sys, jumpseat_terminal.run; print({'rich', 'prompt_toolkit', 'pygments'} & set(sys.modules))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.stdout == "set()\n", process.stderr
