"""The published official SDKs drive the server: events for the application, and requests to the model.

Every test runs once per SDK version, and where the transport matters, once per transport. ``hosts.py`` runs the
SDKs, ``support/toolchains.py`` lists the versions.
"""

from __future__ import annotations

import anyio
import pytest

from tests.contract.hosts import HOSTS_KEY, USERS_KEY, Host, Observations, configure, in_order
from tests.support.fake_openai import MODEL, JsonObject, Script, calls, fake_openai, says, stalls, texts
from tests.support.limits import WAIT_S

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

# The first test of an SDK version installs it, which takes longer than a test's time limit.
pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

# Transports differ in the start and end of connections, and in the framing of messages: these scenarios cover
# turns, calls of both sides, an abort and a new process.
over_pipes = pytest.mark.parametrize("transport", ["stdio"])


async def test_a_plain_turn_ends_with_the_answer_and_idle(host: Host) -> None:
    async with fake_openai({"What is 1+1?": [says("The answer ", "is 2.")]}) as model:
        observations = await host.run("converse", "What is 1+1?", model=model)

    assert_healthy(observations, host)
    assert observations.answers == ["The answer is 2."]
    assert in_order(
        observations.types(),
        "session.start",
        "user.message",
        "assistant.turn_start",
        "assistant.message",
        "assistant.turn_end",
        "session.idle",
    )
    assert "assistant.message_delta" not in observations.types()
    assert observations.data("user.message")[0]["content"] == "What is 1+1?"
    assert observations.history[0]["type"] == "session.start"
    assert [event["type"] for event in observations.history if event.get("ephemeral")] == []

    [request] = model.requests
    assert (request["model"], bool(request.get("stream"))) == (MODEL, False)
    assert model.authorizations == [f"Bearer {HOSTS_KEY}"]


@over_pipes
async def test_streamed_deltas_joined_equal_the_final_message(host: Host) -> None:
    async with fake_openai({"Count": [says("one, ", "two, ", "thr", "ee")]}) as model:
        observations = await host.run("converse", "Count to three", model=model, streaming=True)

    assert_healthy(observations, host)
    assert observations.answers == ["one, two, three"]
    assert [delta["deltaContent"] for delta in observations.data("assistant.message_delta")] == [
        "one, ",
        "two, ",
        "thr",
        "ee",
    ]
    [message] = observations.data("assistant.message")
    assert {delta["messageId"] for delta in observations.data("assistant.message_delta")} == {message["messageId"]}
    assert in_order(observations.types(), "assistant.message_delta", "assistant.message", "session.idle")
    assert model.requests[0]["stream"] is True


async def test_a_tool_of_the_client_is_called_and_its_result_reaches_the_model(host: Host) -> None:
    script: Script = {"Encrypt": [calls("encrypt_string", input="Hello"), says("It is HELLO.")]}
    async with fake_openai(script) as model:
        observations = await host.run("converse", "Encrypt Hello", model=model)

    assert_healthy(observations, host)
    assert observations.answers == ["It is HELLO."]
    assert observations.tool_arguments == [{"input": "Hello"}]
    assert in_order(
        observations.types(),
        "assistant.message",
        "tool.execution_start",
        "permission.requested",
        "permission.completed",
        "external_tool.requested",
        "tool.execution_complete",
        "assistant.message",
        "session.idle",
    )
    assert observations.data("permission.requested")[0]["permissionRequest"]["kind"] == "custom-tool"
    [completed] = observations.data("tool.execution_complete")
    assert (completed["success"], completed["result"]["content"]) == (True, "HELLO")

    assert "encrypt_string" in [tool["function"]["name"] for tool in model.requests[0]["tools"]]
    assert [texts(request, "tool") for request in model.requests] == [[], ["HELLO"]]


@over_pipes
async def test_an_approved_tool_runs(host: Host) -> None:
    note = host.workspace / "note.txt"
    script: Script = {"Write": [calls("create", path=str(note), file_text="Hello"), says("Done.")]}
    async with fake_openai(script) as model:
        observations = await host.run("converse", "Write a note", model=model)

    assert_healthy(observations, host)
    assert note.read_text() == "Hello"
    assert observations.answers == ["Done."]
    [requested] = observations.data("permission.requested")
    assert requested["permissionRequest"]["kind"] == "write"
    assert requested["permissionRequest"]["fileName"] == str(note)
    assert observations.data("permission.completed")[0]["result"]["kind"] == "approved"
    assert observations.data("tool.execution_complete")[0]["success"] is True
    assert len(model.requests) == 2


@over_pipes
async def test_a_rejected_tool_does_not_run_and_ends_the_turn(host: Host) -> None:
    note = host.workspace / "note.txt"
    script: Script = {"Write": [calls("create", path=str(note), file_text="Hello")]}
    async with fake_openai(script) as model:
        observations = await host.run("converse", "Write a note", model=model, rejection={})

    assert_healthy(observations, host)
    assert not note.exists()
    assert observations.data("permission.completed")[0]["result"]["kind"] == "denied-interactively-by-user"
    [completed] = observations.data("tool.execution_complete")
    assert (completed["success"], completed["error"]["code"]) == (False, "rejected")
    assert "The user rejected this tool call." in completed["error"]["message"]
    assert len(model.requests) == 1


@over_pipes
async def test_attachments_headers_and_a_change_of_model_reach_the_provider(host: Host) -> None:
    (host.workspace / "note.txt").write_text("one\ntwo\n")
    selection = {
        "type": "selection",
        "filePath": str(host.workspace / "note.txt"),
        "displayName": "note.txt",
        "selection": {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 3}},
        "text": "two",
    }
    attachments: list[JsonObject] = [
        {"type": "file", "path": str(host.workspace / "note.txt"), "displayName": "note.txt"},
        {"type": "directory", "path": str(host.workspace), "displayName": "workspace"},
        selection,
        {"type": "blob", "data": PIXEL, "mimeType": "image/png", "displayName": "dot.png"},
    ]
    async with fake_openai({"Look": [says("I see.")], "And now": [says("Still.")]}) as model:
        observations = await host.run("choose", "Look at this", "And now?", model=model, attachments=attachments)

    assert_healthy(observations, host)
    assert observations.answers == ["I see.", "Still."]
    assert observations.data("user.message")[0]["attachments"] == attachments
    assert observations.data("session.model_change")[0]["newModel"] == "second-model"
    assert observations.report == {"model": "second-model", "agents": [["planner", "Planner"]]}
    assert in_order(observations.types(), "pending_messages.modified", "user.message", "session.idle")

    first, second = model.requests
    [prompt] = [message["content"] for message in first["messages"] if message["role"] == "user"]
    assert [part["type"] for part in prompt] == ["text", "text", "image_url"]
    assert prompt[0]["text"].startswith("<ide_selection>\n")
    assert "\nFile: note.txt (line 2)\n```\ntwo\n```\n</ide_selection>\n\n<current_datetime>" in prompt[0]["text"]
    assert prompt[0]["text"].endswith(
        f"<tagged_files>\n* {host.workspace}/note.txt (2 lines)\n* {host.workspace} (1 items)\n</tagged_files>"
    )
    assert [part.get("text") for part in prompt[1:]] == ["dot.png", None]
    assert prompt[2]["image_url"]["url"] == f"data:image/png;base64,{PIXEL}"
    assert (first["model"], second["model"]) == (MODEL, "second-model")
    assert (first.get("reasoning_effort"), second["reasoning_effort"]) == (None, "high")
    assert [headers.get("x-message") for headers in model.headers] == ["first", None]
    assert all("contract-host" in headers["user-agent"] for headers in model.headers)


@over_pipes
async def test_the_feedback_of_a_rejection_reaches_the_model(host: Host) -> None:
    note = host.workspace / "note.txt"
    script: Script = {"Write": [calls("create", path=str(note), file_text="Hello"), says("As you wish.")]}
    async with fake_openai(script) as model:
        observations = await host.run(
            "converse", "Write a note", model=model, rejection={"feedback": "use the wiki"}
        )

    assert_healthy(observations, host)
    assert not note.exists()
    assert observations.answers == ["As you wish."]
    [result] = texts(model.requests[1], "tool")
    assert "The user rejected this tool call. User feedback: use the wiki" in result


async def test_a_session_resumed_in_a_new_process_keeps_its_history(host: Host) -> None:
    script: Script = {
        "Remember the word": [calls("encrypt_string", input="Hello"), says("Noted.")],
        "Which word": [says("It was blue.")],
    }
    async with fake_openai(script) as model:
        first = await host.run("converse", "Remember the word blue", model=model)
        observations = await host.run("converse", "Which word was it?", model=model, session_id=first.session_id)

    assert_healthy(observations, host)
    assert observations.session_id == first.session_id
    assert observations.answers == ["It was blue."]
    assert "session.resume" in observations.types()
    history = [event["id"] for event in observations.history]
    assert history[: len(first.history)] == [event["id"] for event in first.history]

    # The earlier messages are repeated unchanged, followed by the new prompt.
    earlier, latest = model.requests[-2]["messages"], model.requests[-1]["messages"]
    assert latest[1 : len(earlier)] == earlier[1:]
    assert [message["role"] for message in latest[len(earlier) :]] == ["assistant", "user"]
    assert latest[len(earlier)]["content"] == "Noted."


async def test_an_aborted_turn_stops_the_model_and_the_next_turn_works(host: Host) -> None:
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
    assert observations.data("abort")[0]["reason"] == "user_initiated"
    assert [bool(idle.get("aborted")) for idle in observations.data("session.idle")] == [True, False]
    assert [message["content"] for message in observations.data("assistant.message")] == ["hi"]
    assert "abort" in [event["type"] for event in observations.history]
    assert not any("dark" in text for text in texts(model.requests[-1], "assistant"))


HOOKS = ("userPromptSubmitted", "sessionStart", "preToolUse", "postToolUse", "sessionEnd")
"""The hooks that all ``SDKS`` know."""


@over_pipes
@pytest.mark.parametrize("resumed", [False, True], ids=["created", "resumed"])
async def test_the_answers_of_a_hosts_handlers_are_applied(host: Host, resumed: bool) -> None:
    note, moved = host.workspace / "note.txt", host.workspace / "moved.txt"
    script: Script = {
        "Warm up": [says("-")],
        "Use them": [
            calls("create", path=str(note), file_text="Hello"),
            calls("ask_user", question="Which?", choices=["Red", "Blue"]),
            says("Done."),
        ],
    }
    written = {"path": str(moved), "file_text": "Hello", "question": "Which colour?", "choices": ["Red"]}
    callbacks: JsonObject = {
        "hooks": {
            "userPromptSubmitted": {"modifiedPrompt": "Use them, please"},
            "sessionStart": {"additionalContext": "We like tabs."},
            "preToolUse": {"permissionDecision": "allow", "modifiedArgs": written},
            "postToolUse": {"additionalContext": "Mind the gap."},
            "sessionEnd": None,
        },
        "question": {"answer": "Red", "wasFreeform": False},
        "form": {"action": "accept", "content": {"confirmed": True}},
        "tone": "Rhyme.",
    }
    async with fake_openai(script) as model:
        before = await host.run("converse", "Warm up", model=model) if resumed else None
        session_id = before.session_id if before else None
        observations = await host.run(
            "converse", "Use them", model=model, session_id=session_id, rejection={}, callbacks=callbacks
        )

    assert_healthy(observations, host)
    assert observations.answers == ["Done."]
    assert moved.read_text() == "Hello"
    assert not note.exists()
    assert "permission.requested" not in observations.types()
    assert [name for name, _ in observations.asked if name in HOOKS] == [
        *HOOKS[:3],
        "postToolUse",
        "preToolUse",
        *HOOKS[3:],
    ]
    assert observations.questions("sessionStart")[0]["source"] == ("resume" if resumed else "new")
    assert observations.questions("question")[0]["question"] == "Which colour?"
    assert observations.questions("form")[0]["message"] == "Sure?"
    assert observations.report == {"confirmed": True}
    final = model.requests[-1]
    assert "\n\nRhyme.\n\n" in texts(final, "system")[0]
    assert observations.questions("transform")[0] not in texts(final, "system")[0]
    assert texts(final, "tool")[-1] == "User selected: Red"
    assert "Use them, please" in "".join(texts(final, "user"))
    assert texts(final, "user").count("We like tabs.") == 1
    assert texts(final, "user").count("Mind the gap.") == 2


@over_pipes
async def test_handlers_that_throw_change_nothing(host: Host) -> None:
    note = host.workspace / "note.txt"
    script: Script = {
        "Use them": [
            calls("create", path=str(note), file_text="Hello"),
            calls("ask_user", question="Which?"),
            says("Done."),
        ],
    }
    callbacks: JsonObject = {
        "hooks": dict.fromkeys(HOOKS, "throw"),
        "question": "throw",
        "form": "throw",
        "tone": "throw",
    }
    async with fake_openai(script) as model:
        observations = await host.run("converse", "Use them", model=model, callbacks=callbacks)

    assert "session.error" not in observations.types()
    assert observations.answers == ["Done."]
    assert note.read_text() == "Hello"
    assert [name for name, _ in observations.asked if name in HOOKS] == [
        "userPromptSubmitted",
        "sessionStart",
        "preToolUse",
        "postToolUse",
        "preToolUse",
        "sessionEnd",
    ]
    assert [completion["success"] for completion in observations.data("tool.execution_complete")] == [True, False]
    assert observations.report == {"confirmed": False}
    assert observations.questions("transform")[0] in texts(model.requests[-1], "system")[0]
    assert "the handler is broken" not in str(model.requests)


@over_pipes
async def test_the_server_reports_its_status_models_and_sessions(host: Host) -> None:
    async with fake_openai({"Hello": [says("Hello.")]}) as model:
        configure(host, model.base_url)
        observations = await host.run("inspect", "Hello", model=model)

    assert_healthy(observations, host)
    version = observations.report["status"]["version"]
    assert observations.report == {
        "pong": "pong: hello",
        "status": {"version": version, "protocolVersion": 3},
        "authenticated": True,
        "models": [f"local/{MODEL}"],
        "sessions_at_first": [],
        "sessions": [observations.session_id],
        "last_session": observations.session_id,
        "known": True,
        "sessions_at_last": [],
        "known_at_last": False,
    }


@over_pipes
@pytest.mark.parametrize("choice", [None, f"local/{MODEL}"], ids=["default-model", "listed-model"])
async def test_a_host_without_a_provider_uses_the_configured_one(host: Host, choice: str | None) -> None:
    async with fake_openai({"Hello": [says("Hello.")]}) as model:
        configure(host, model.base_url)
        observations = await host.run("converse", "Hello", model_name=choice)

    assert_healthy(observations, host)
    assert observations.answers == ["Hello."]
    assert model.requests[0]["model"] == MODEL
    assert model.authorizations == [f"Bearer {USERS_KEY}"]


def assert_healthy(observations: Observations, host: Host) -> None:
    """Assert the conditions that hold after every run."""
    assert observations.sdk == host.sdk.version
    assert observations.complaints == []
    assert observations.stderr == []
    assert "session.error" not in observations.types()
