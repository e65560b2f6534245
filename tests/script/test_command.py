"""The command ``jumpseat script``, and the fixtures of ``jumpseat.testing`` in the tests of another project."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import run_command
from tests.support.forked import executable
from tests.transcripts.play import FOLDER

pytest_plugins = ["pytester"]

PING = "steps: [{call: ping, params: {message: x}, result: {message: 'pong: x'}}]\n"
WRONG = "steps: [{call: ping, params: {message: x}, result: {message: 'pong: y'}}]\n"


def test_the_command_plays_files_and_exits_with_1_if_one_fails(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(PING)
    (tmp_path / "wrong.yaml").write_text(WRONG)
    command = [executable(), "script"]

    good = subprocess.run([*command, "good.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("ok     good (1 step, ")

    both = subprocess.run([*command, "good.yaml", "wrong.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert both.returncode == 1
    assert 'message: expected "pong: y", got "pong: x"' in both.stdout


def test_a_json_lines_script_may_have_the_head_in_its_first_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "lines.jsonl"
    script.write_text('{"name": "in lines", "within": 5}\n\n{"call": "ping"}\n{"close": true}\n')
    assert run_command(["script", str(script), "--json"]) == 0
    (outcome,) = json.loads(capsys.readouterr().out)
    assert (outcome["name"], outcome["ok"], outcome["steps"]) == ("in lines", True, 2)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.yaml", None, "cannot read"),
        ("bad.yaml", "steps: [", "invalid YAML"),
        ("bad.jsonl", '{"call": "ping"}\n{', "line 2"),
        ("odd.yaml", "steps: [{xyz: ping}]", "odd.yaml: steps[0]: expected a step with one of these fields"),
        ("odd.jsonl", '{"->": {}}\n{"??": {}}', "line 2: expected an object with one field, ->, <- or --"),
    ],
)
def test_an_invalid_file_is_named_with_the_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    assert run_command(["script", str(tmp_path / name)]) == 2
    assert message in capsys.readouterr().err


def test_the_server_can_be_replaced_and_its_files_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "close.yaml").write_text(
        "unchecked: true\nfiles: {a/b.txt: hello}\nsteps: [{close: true, exit: 7}]\n"
    )
    server = "sh -c 'cat a/b.txt >&2; cat >/dev/null; exit 7'"
    arguments = [str(tmp_path / "close.yaml"), "--server", server, "--keep", str(tmp_path / "kept"), "-v"]
    assert run_command(["script", *arguments]) == 0
    assert "stderr: hello" in capsys.readouterr().out
    assert (tmp_path / "kept" / "a" / "b.txt").read_text() == "hello"


def test_a_recorded_conversation_is_played_and_updated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["script", str(FOLDER / "plain.jsonl")]) == 0
    changed = tmp_path / "changed.jsonl"
    text = (FOLDER / "plain.jsonl").read_text()
    changed.write_text(
        text.replace('"streaming": true', '"streaming": false', 1).replace("user.message", "usr.message")
    )
    assert run_command(["script", str(changed)]) == 1
    assert "usr.message" in capsys.readouterr().out

    assert run_command(["script", str(changed), "--update"]) == 0
    assert run_command(["script", str(changed)]) == 0


PLUGIN_TEST = """
import anyio
import pytest


def test_a_script_as_an_object(play_script):
    play_script({"steps": [{"call": "ping"}]})


def test_a_script_that_fails(play_script):
    play_script({"steps": [{"call": "ping", "result": {"message": "no"}}]})


@pytest.mark.anyio
async def test_a_server_and_a_model(jumpseat_server, scripted_model, assert_events):
    async with scripted_model(turns=[{"text": "Hi."}]) as model, jumpseat_server() as server:
        provider = {"type": "openai", "baseUrl": model.url, "apiKey": "none"}
        await server.call("session.create", {"sessionId": "s", "provider": provider, "model": "m"})
        await server.call("session.send", {"sessionId": "s", "prompt": "go"})
        with pytest.raises(AssertionError, match="no.such.method"):
            await server.call("no.such.method")
        assert await server.until(lambda: "session.idle" in str(server.incoming()), 10)
        message = {"type": "assistant.message", "data": {"content": "Hi."}}
        assert_events(server, "user.message", message, "session.idle")
        assert_events(server, "session.idle", "user.message", in_order=False)
        with pytest.raises(AssertionError, match="no event like"):
            assert_events(server, "session.idle", "user.message")
        assert model.requests[0]["model"] == "m"
        assert server.problems == []


@pytest.fixture
def anyio_backend():
    return "asyncio"
"""


def test_the_fixtures_work_in_the_tests_of_another_project(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PLUGIN_TEST)
    (pytester.path / "good.script.yaml").write_text(PING)
    (pytester.path / "wrong.script.yaml").write_text(WRONG)
    (pytester.path / "recorded.script.jsonl").write_text((FOLDER / "plain.jsonl").read_text())
    result = pytester.runpytest_subprocess("-p", "jumpseat.testing", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(["*step 1 (call ping):*", '*message: expected "pong: y", got "pong: x"*'])


def test_differences_from_a_recording_are_reported_by_message_and_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = (FOLDER / "streaming.jsonl").read_text().splitlines()
    without = [line for line in recorded if '"type": "assistant.usage"' not in line]
    changed = [line.replace('"turnId": "0"', '"turnId": "7"') if "turn_end" in line else line for line in without]
    (tmp_path / "changed.jsonl").write_text("\n".join(changed))
    assert run_command(["script", str(tmp_path / "changed.jsonl"), "-v", "--keep", str(tmp_path / "kept")]) == 1
    output = capsys.readouterr().out
    usage, turn_end, *rest = [
        line for line in output.splitlines() if line.startswith(("  + ", "  - ", "  line", "    "))
    ]
    assert usage.startswith('  + <- event assistant.usage {"method": "session.event"')
    assert turn_end.endswith("<- event assistant.turn_end:")
    # The ids after the missing message have other numbers, which is no difference.
    assert rest == ['    params.event.data.turnId: expected "7", got "0"']
    assert '  -> {"jsonrpc": "2.0", "id": 1, "method": "connect"' in output
    assert (tmp_path / "kept" / "home").is_dir()


def test_a_recording_is_checked_against_the_rules_and_an_exited_server_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = tmp_path / "ping.jsonl"
    recording.write_text('{"->": {"id": 1, "method": "connect"}}\n{"<-": {"id": 1, "result": {}}}\n')
    broken = f"{sys.executable} {Path(__file__).with_name('broken_server.py')}"
    assert run_command(["script", str(recording), "--server", f"{broken} none"]) == 0
    assert run_command(["script", str(recording), "--server", f"{broken} no_version"]) == 1
    assert 'message without "jsonrpc": "2.0"' in capsys.readouterr().out
    assert run_command(["script", str(recording), "--server", "sh -c 'echo out of luck >&2; exit 1'"]) == 1
    output = capsys.readouterr().out
    assert "the server sent no response to 1 within 10 s; end of its stderr: out of luck" in output
    assert "received instead: nothing" in output
