"""Published SDKs from before 1.0 drive the server over protocol 2.

Every test runs once per SDK version, all but one over stdio. These SDKs must receive the same answers as the
new ones; the server sends them requests instead of events, which the tests observe only by the effects.
"""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from tests.contract.hosts import Host, Observations, TransportKind, configure, in_order
from tests.support.fake_openai import Script, calls, fake_openai, says, stalls, texts
from tests.support.limits import WAIT_S
from tests.support.pictures import png
from tests.support.toolchains import OLD_SDKS, Sdk, require_program, require_sdk

# The first test of an SDK version installs it, which takes longer than a test's time limit.
pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]


@pytest.fixture(params=OLD_SDKS, ids=str)
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Host:
    """Return a host application on an old SDK, with an empty home and an empty workspace."""
    return host_of(request.param, tmp_path)


@pytest.fixture(params=[sdk for sdk in OLD_SDKS if sdk.version.startswith("0.1.")], ids=str)
def oldest(request: pytest.FixtureRequest, tmp_path: Path) -> Host:
    """Return a host on an SDK that, unlike later ones, requires no permission handler."""
    return host_of(request.param, tmp_path)


def host_of(sdk: Sdk, tmp_path: Path, transport: TransportKind = "stdio") -> Host:
    if sdk.registry == "npm":
        require_program("node")
    folder = require_sdk(sdk)
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    workspace.mkdir()
    return Host(sdk, folder, transport, home, workspace, driver="old_driver")


async def test_an_old_sdk_starts_the_server_lists_its_models_and_streams_a_turn(host: Host) -> None:
    async with fake_openai({"Count": [says("one, ", "two, ", "thr", "ee")]}) as model:
        configure(host, model.base_url)
        observations = await host.run("inspect", "Count to three", model_name=None, streaming=True)

    assert_healthy(observations, host)
    assert observations.answers == ["one, two, three"]
    assert observations.report == {
        "pong": "pong: hello",
        "protocol": 2,
        "authenticated": True,
        "models": ["local/fake-model"],
        "sessions": [observations.session_id],
    }
    deltas = [delta["deltaContent"] for delta in observations.data("assistant.message_delta")]
    # A letter may be held back: a key, also a reversed one, might begin there.
    assert ("".join(deltas), len(deltas)) == ("one, two, three", 4)
    assert in_order(observations.types(), "assistant.message_delta", "assistant.message", "session.idle")


@pytest.mark.parametrize("sdk", OLD_SDKS, ids=str)
async def test_an_old_sdk_that_cannot_send_a_token_starts_the_server_over_tcp(sdk: Sdk, tmp_path: Path) -> None:
    host = host_of(sdk, tmp_path, "tcp")
    async with fake_openai({"Count": [says("one, two, three")]}) as model:
        configure(host, model.base_url)
        observations = await host.run("inspect", "Count to three", model_name=None)

    assert_healthy(observations, host)
    assert observations.answers == ["one, two, three"]


async def test_a_tool_of_an_old_sdk_may_call_the_server_while_it_runs(host: Host) -> None:
    script: Script = {"Encrypt": [calls("encrypt_string", input="Hello"), says("It is HELLO.")]}
    async with fake_openai(script) as model:
        observations = await host.run("call_back", "Encrypt Hello", model=model)

    assert_healthy(observations, host)
    assert observations.answers == ["It is HELLO."]
    assert observations.tool_arguments == [{"input": "Hello"}]
    assert observations.report["permission_kinds"] == ["custom-tool"]
    assert observations.report["during_the_call"]["pong"] == "pong: from a tool"
    assert observations.data("tool.execution_complete")[0]["success"] is True
    assert [texts(request, "tool") for request in model.requests] == [[], ["HELLO"]]


async def test_an_old_sdk_reads_the_history_of_a_turn_with_permissions(host: Host) -> None:
    note = host.workspace / "note.txt"
    script: Script = {
        "Write": [calls("create", path=str(note), file_text="Hello"), says("Done.")],
        "Encrypt": [calls("encrypt_string", input="Hello"), says("It is HELLO.")],
    }
    async with fake_openai(script) as model:
        observations = await host.run("converse", "Write a note", "Encrypt Hello", model=model)

    assert_healthy(observations, host)
    assert observations.answers == ["Done.", "It is HELLO."]
    assert note.read_text() == "Hello"
    assert observations.report["permission_kinds"] == ["write", "custom-tool"]
    assert in_order(
        [event["type"] for event in observations.history],
        "session.start",
        "user.message",
        "tool.execution_start",
        "tool.execution_complete",
        "assistant.message",
        "user.message",
        "tool.execution_complete",
        "assistant.message",
    )
    assert stored_field(observations, "tool.execution_complete", "success") == [True, True]
    assert stored_field(observations, "user.message", "content") == ["Write a note", "Encrypt Hello"]


async def test_a_tool_that_an_old_sdk_refuses_does_not_run_and_ends_the_turn(host: Host) -> None:
    note = host.workspace / "note.txt"
    script: Script = {"Write": [calls("create", path=str(note), file_text="Hello")]}
    async with fake_openai(script) as model:
        observations = await host.run("converse", "Write a note", model=model, rejection={})

    assert_healthy(observations, host)
    assert not note.exists()
    assert observations.report["permission_kinds"] == ["write"]
    [completed] = observations.data("tool.execution_complete")
    assert completed["success"] is False
    assert "The user rejected this tool call." in completed["error"]["message"]
    assert stored_field(observations, "tool.execution_complete", "success") == [False]
    assert len(model.requests) == 1


async def test_a_session_resumed_by_an_old_sdk_keeps_its_history_model_and_options(host: Host) -> None:
    script: Script = {
        "Remember the word": [calls("encrypt_string", input="Hello"), says("Noted.")],
        "Which word": [says("It was blue.")],
    }
    async with fake_openai(script) as model:
        first = await host.run(
            "converse",
            "Remember the word blue",
            model=model,
            model_name="a-model-of-the-host",
            system_message="Speak like a pirate.",
            excluded_tools=["grep"],
        )
        observations = await host.run(
            "converse", "Which word was it?", model=model, model_name=None, session_id=first.session_id
        )

    assert_healthy(observations, host)
    assert observations.session_id == first.session_id
    assert observations.answers == ["It was blue."]
    history = [event["id"] for event in observations.history]
    assert history[: len(first.history)] == [event["id"] for event in first.history]

    earlier, latest = model.requests[-2], model.requests[-1]
    assert latest["model"] == "a-model-of-the-host"
    assert latest["messages"][: len(earlier["messages"])] == earlier["messages"]
    assert "Speak like a pirate." in texts(latest, "system")[0]
    names = [tool["function"]["name"] for tool in latest["tools"]]
    assert names == [tool["function"]["name"] for tool in earlier["tools"]]
    assert ("grep" in names, "encrypt_string" in names) == (False, True)


async def test_an_old_sdk_attaches_a_screenshot_and_reads_its_own_prompt(host: Host) -> None:
    screenshot = host.workspace / "screenshot.png"
    screenshot.write_bytes(png())
    async with fake_openai({"What is it?": [says("A cat.")]}) as model:
        files = [{"type": "file", "path": str(screenshot)}]
        observations = await host.run("converse", "What is it?", model=model, attachments=files)

    assert_healthy(observations, host)
    assert observations.answers == ["A cat."]
    assert stored_field(observations, "user.message", "content") == ["What is it?"]
    [attachment] = observations.data("user.message")[0]["attachments"]
    assert (attachment["type"], attachment["displayName"]) == ("file", "screenshot.png")
    [prompt] = [message for message in model.requests[0]["messages"] if message["role"] == "user"]
    assert [part["type"] for part in prompt["content"]].count("image_url") == 1


async def test_the_name_of_the_command_or_a_setting_allows_the_tools_of_an_old_sdk_without_a_permission_handler(
    oldest: Host,
) -> None:
    starts_copilot = oldest.sdk.version == "0.1.17"
    async with fake_openai({"Encrypt": [calls("encrypt_string", input="Hello"), says("Sorry.")]}) as model:
        by_name = await oldest.run("converse", "Encrypt Hello", model=model, decides=False)
        setting = json.dumps(not starts_copilot)
        (oldest.home / "config.toml").write_text(f"[permissions]\nallow_old_clients = {setting}\n")
        by_setting = await oldest.run("converse", "Encrypt Hello", model=model, decides=False)

    denied, allowed = (by_setting, by_name) if starts_copilot else (by_name, by_setting)
    for observations in (denied, allowed):
        assert_healthy(observations, oldest)
        assert observations.answers == ["Sorry."]
    assert (denied.tool_arguments, allowed.tool_arguments) == ([], [{"input": "Hello"}])
    results = ["HELLO"], ["Permission denied and could not request permission from user"]
    first, second = results if starts_copilot else reversed(results)
    assert [texts(request, "tool") for request in model.requests] == [[], first, [], second]


async def test_an_old_sdk_aborts_a_turn_and_the_next_one_works(host: Host) -> None:
    script: Script = {"Write an essay": [stalls("It was a dark ", "and stormy")], "Say hi": [says("hi")]}
    async with fake_openai(script) as model:
        observations = await host.run("abort", "Write an essay", "Say hi", model=model, streaming=True)
        with anyio.fail_after(WAIT_S):
            await model.hung_up.wait()

    assert_healthy(observations, host)
    assert observations.answers == ["hi"]
    assert in_order(
        observations.types(), "assistant.message_delta", "abort", "session.idle", "user.message", "session.idle"
    )
    assert "abort" in [event["type"] for event in observations.history]


def stored_field(observations: Observations, event_type: str, member: str) -> list[object]:
    """Return one member of the data of the stored events of one type, in order."""
    return [event["data"][member] for event in observations.history if event["type"] == event_type]


def assert_healthy(observations: Observations, host: Host) -> None:
    """Assert the conditions that hold after every run."""
    assert observations.sdk == host.sdk.version
    assert observations.complaints == []
    assert observations.stderr == []
    assert "session.error" not in observations.types()
    assert {"permission.requested", "external_tool.requested"}.isdisjoint(observations.types())
