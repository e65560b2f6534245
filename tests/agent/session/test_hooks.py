"""Hooks: the changes they make, and that a failing hook stops nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import ClientCallError
from jumpseat.tools.builtin import builtin_tools
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import UserInputResponse
from jumpseat_protocol.sessions import ClientTool, SystemMessageConfig
from tests.support.limits import WAIT_S
from tests.support.sessions import MadeSession, make_session

pytestmark = pytest.mark.anyio

ECHO = ClientTool(name="echo")
CALL: dict[str, Any] = {"tool_calls": [{"id": "c1", "name": "echo", "arguments": {"value": "mine"}}]}


def hook_inputs(made: MadeSession, hook: str) -> list[dict[str, Any]]:
    return [hook_input for kind, hook_input in made.client.hook_calls if kind == hook]


async def test_the_hooks_of_a_prompt_with_a_tool_call_are_called_in_order() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[CALL, {"text": "ok"}], tools=[ECHO], approve_all=True, hooks={})
        prompt = made.send("go")
        made.answer_tool(await made.client.wait_for(events.ExternalToolRequested), "out")
        with anyio.fail_after(WAIT_S):
            await prompt.run.done.wait()
        assert [kind for kind, _ in made.client.hook_calls] == [
            "userPromptSubmitted",
            "userPromptTransformed",
            "sessionStart",
            "preToolUse",
            "postToolUse",
            "agentStop",
        ]
        for _, hook_input in made.client.hook_calls:
            assert hook_input["sessionId"] == "session-1"
            assert hook_input["cwd"] == "/project"
            assert isinstance(hook_input["timestamp"], int)
        assert hook_inputs(made, "preToolUse")[0]["toolArgs"] == {"value": "mine"}
        assert hook_inputs(made, "postToolUse")[0]["toolResult"] == {
            "textResultForLlm": "out",
            "resultType": "success",
        }
        starts, ends = made.client.payloads(events.HookStart), made.client.payloads(events.HookEnd)
        assert [start.hook_invocation_id for start in starts] == [end.hook_invocation_id for end in ends]
        assert all(end.success for end in ends)


async def test_without_hooks_nothing_is_called_and_nothing_published() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[{"text": "ok"}])
        await made.ask("go")
        assert made.client.hook_calls == []
        assert made.client.payloads(events.HookStart) == []


async def test_session_start_is_called_once_and_its_context_precedes_the_prompt() -> None:
    async with anyio.create_task_group() as tasks:
        hooks: dict[str, Any] = {"sessionStart": [{"additionalContext": "We use tabs."}]}
        made = make_session(tasks, script=[{"text": "a"}, {"text": "b"}], hooks=hooks)
        await made.ask("one")
        await made.ask("two")
        assert [
            (hook_input["source"], hook_input["initialPrompt"]) for hook_input in hook_inputs(made, "sessionStart")
        ] == [("new", "one")]
        users = made.client.payloads(events.UserMessage)
        assert [(message.content, message.source) for message in users] == [
            ("We use tabs.", "hook"),
            ("one", None),
            ("two", None),
        ]
        assert users[0].transformed_content == "We use tabs."
        assert made.session.history.first_prompt == "one"


async def test_a_hook_can_replace_the_prompt_and_the_wrapped_text() -> None:
    async with anyio.create_task_group() as tasks:
        hooks: dict[str, Any] = {
            "userPromptSubmitted": [{"modifiedPrompt": "be short"}, None],
            "userPromptTransformed": [None, {"modifiedTransformedPrompt": "all mine"}],
        }
        made = make_session(tasks, script=[{"text": "a"}, {"text": "b"}], hooks=hooks)
        await made.ask("one")
        await made.ask("two")
        first, second = made.client.payloads(events.UserMessage)
        assert first.content == "one"
        assert "be short" in (first.transformed_content or "")
        assert "one" not in (first.transformed_content or "")
        assert second.transformed_content == "all mine"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"permissionDecision": "deny"}, "No reason provided"),
        ({"permissionDecision": "deny", "permissionDecisionReason": "not on Fridays"}, "not on Fridays"),
    ],
)
async def test_pre_tool_use_can_deny_with_a_reason_for_the_model(answer: dict[str, Any], reason: str) -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(
            tasks,
            script=[CALL, {"text": "{{last_tool_result}}"}],
            tools=[ECHO],
            hooks={"preToolUse": [answer]},
        )
        await made.ask("go")
        text = f"Denied by preToolUse hook: {reason}"
        (completion,) = made.client.payloads(events.ToolExecutionComplete)
        assert completion.error == events.ToolError(message=text, code="denied")
        assert made.client.payloads(events.AssistantMessage)[-1].content == text
        assert made.client.payloads(events.PermissionRequested) == []
        assert hook_inputs(made, "postToolUse") == hook_inputs(made, "postToolUseFailure") == []


async def test_a_denial_also_applies_to_unknown_tools() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(
            tasks, script=[CALL, {"text": "-"}], hooks={"preToolUse": [{"permissionDecision": "deny"}]}
        )
        await made.ask("go")
        (completion,) = made.client.payloads(events.ToolExecutionComplete)
        assert completion.error is not None
        assert completion.error.message == "Denied by preToolUse hook: No reason provided"


async def test_modified_arguments_are_run_and_shown_to_the_model_as_its_own() -> None:
    async with anyio.create_task_group() as tasks:
        hooks: dict[str, Any] = {
            "preToolUse": [{"permissionDecision": "allow", "modifiedArgs": {"value": "theirs"}}]
        }
        made = make_session(tasks, script=[CALL, {"text": "ok"}], tools=[ECHO], hooks=hooks)
        prompt = made.send("go")
        request = await made.client.wait_for(events.ExternalToolRequested)
        assert request.arguments == {"value": "theirs"}
        made.answer_tool(request, "x")
        with anyio.fail_after(WAIT_S):
            await prompt.run.done.wait()
        (call,) = next(m for m in made.session.conversation.messages() if m.role == "assistant").tool_uses()
        assert (call.arguments, call.arguments_json) == ({"value": "theirs"}, '{"value":"theirs"}')
        assert made.client.payloads(events.PermissionRequested) == []


async def test_a_hook_can_leave_the_decision_to_the_user() -> None:
    async with anyio.create_task_group() as tasks:
        answer = {"permissionDecision": "ask", "permissionDecisionReason": "is this wise?"}
        made = make_session(tasks, script=[CALL, {"text": "-"}], tools=[ECHO], hooks={"preToolUse": [answer]})
        prompt = made.send("go")
        request = await made.client.wait_for(events.PermissionRequested)
        assert request.permission_request.kind == "hook"
        assert request.permission_request.hook_message == "is this wise?"
        made.decide(request, {"kind": "reject"})
        with anyio.fail_after(WAIT_S):
            await prompt.run.done.wait()
        assert len(made.client.payloads(events.PermissionRequested)) == 1
        assert made.client.payloads(events.ExternalToolRequested) == []


async def test_post_tool_use_can_replace_the_result() -> None:
    async with anyio.create_task_group() as tasks:
        hooks: dict[str, Any] = {
            "postToolUse": [
                {"modifiedResult": {"textResultForLlm": "changed"}, "additionalContext": "Mind the gap."}
            ]
        }
        script = [CALL, {"text": "{{last_tool_result}}"}]
        made = make_session(tasks, script=script, tools=[ECHO], approve_all=True, hooks=hooks)
        prompt = made.send("go")
        made.answer_tool(await made.client.wait_for(events.ExternalToolRequested), "original")
        with anyio.fail_after(WAIT_S):
            await prompt.run.done.wait()
        assert made.client.payloads(events.AssistantMessage)[-1].content == "changed"
        roles = [message.role for message in made.session.conversation.messages()]
        assert roles == ["user", "assistant", "tool", "user", "assistant"]
        assert made.client.payloads(events.UserMessage)[-1].content == "Mind the gap."


async def test_a_failed_tool_call_calls_the_failure_hook_instead(tmp_path: Path) -> None:
    script = [{"tool_calls": [{"name": "view", "arguments": {"path": "missing.txt"}}]}, {"text": "-"}]
    async with anyio.create_task_group() as tasks:
        made = make_session(
            tasks,
            script=script,
            builtin=builtin_tools(),
            settings=SessionSettings(cwd=tmp_path),
            approve_all=True,
            hooks={"postToolUseFailure": [{"additionalContext": "Look elsewhere."}]},
        )
        await made.ask("go")
        assert hook_inputs(made, "postToolUse") == []
        (failed,) = hook_inputs(made, "postToolUseFailure")
        assert "does not exist" in failed["error"]
        assert made.client.payloads(events.UserMessage)[-1].content == (
            'Tool "view" failed. Additional guidance from postToolUseFailure hooks:\nLook elsewhere.'
        )
        await made.session.close()


async def test_agent_stop_can_continue_the_run() -> None:
    async with anyio.create_task_group() as tasks:
        hooks: dict[str, Any] = {"agentStop": [{"decision": "block", "reason": "Test it too."}, None]}
        made = make_session(tasks, script=[{"text": "done"}, {"text": "tested"}], hooks=hooks)
        await made.ask("go")
        assert [hook_input["stop_hook_active"] for hook_input in hook_inputs(made, "agentStop")] == [False, True]
        assert hook_inputs(made, "agentStop")[0]["stopReason"] == "end_turn"
        assert hook_inputs(made, "agentStop")[0]["transcriptPath"] == "/project/events.jsonl"
        assert [message.content for message in made.client.payloads(events.AssistantMessage)] == ["done", "tested"]
        assert made.client.payloads(events.UserMessage)[-1].content == "Test it too."
        assert len(made.client.payloads(events.SessionIdle)) == 1


@pytest.mark.parametrize(
    "answer",
    [{"decision": "block", "reason": "has a key"}, {"continue": False, "stopReason": "has a key"}],
    ids=str,
)
async def test_a_client_can_block_a_prompt(answer: dict[str, Any]) -> None:
    async with anyio.create_task_group() as tasks:
        hooks: dict[str, Any] = {"userPromptSubmitted": [answer, None]}
        made = make_session(tasks, script=[{"text": "Fine."}], hooks=hooks)
        await made.ask("the secret")
        (error,) = made.client.payloads(events.SessionError)
        assert (error.error_type, error.message.rpartition(": ")[2]) == ("hook", "has a key")
        assert made.client.payloads(events.UserMessage) == []
        await made.ask("go")
        assert [message.content for message in made.client.payloads(events.UserMessage)] == ["go"]
        assert [message.content for message in made.client.payloads(events.AssistantMessage)] == ["Fine."]


async def test_a_prompt_that_steers_is_left_out_if_a_hook_blocks_it() -> None:
    async with anyio.create_task_group() as tasks:
        hooks: dict[str, Any] = {"userPromptSubmitted": [None, {"decision": "block", "reason": "has a key"}]}
        made = make_session(tasks, script=[CALL, {"text": "Fine."}], tools=[ECHO], approve_all=True, hooks=hooks)
        prompt = made.send("go")
        request = await made.client.wait_for(events.ExternalToolRequested)
        steering = Prompt("the secret")
        made.session.send(steering, "immediate")
        made.answer_tool(request, "out")
        with anyio.fail_after(WAIT_S):
            await prompt.run.done.wait()
            await steering.run.done.wait()
        assert [message.content for message in made.client.payloads(events.UserMessage)] == ["go"]
        assert [message.content for message in made.client.payloads(events.AssistantMessage)][-1] == "Fine."
        (warning,) = made.client.payloads(events.SessionWarning)
        assert warning.message == "A prompt was not sent: a hook blocked the prompt: has a key"


async def test_an_error_hook_can_request_another_attempt() -> None:
    failing = {"text": "at last", "errors": [{"status": 400, "message": "no"}] * 2}
    async with anyio.create_task_group() as tasks:
        hooks: dict[str, Any] = {"errorOccurred": [{"errorHandling": "retry", "retryCount": 2}]}
        made = make_session(tasks, script=[failing], hooks=hooks)
        await made.ask("go")
        assert made.client.payloads(events.AssistantMessage)[-1].content == "at last"
        (error,) = hook_inputs(made, "errorOccurred")
        assert (error["errorContext"], error["recoverable"]) == ("model_call", False)


@pytest.mark.parametrize(
    "answer", [ClientCallError("it threw"), {"permissionDecision": "perhaps"}, {"modifiedArgs": "no object"}]
)
async def test_a_hook_that_fails_or_answers_with_invalid_values_has_no_effect(answer: Any) -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(
            tasks, script=[CALL, {"text": "ok"}], tools=[ECHO], approve_all=True, hooks={"preToolUse": [answer]}
        )
        prompt = made.send("go")
        request = await made.client.wait_for(events.ExternalToolRequested)
        assert request.arguments == {"value": "mine"}
        made.answer_tool(request, "x")
        with anyio.fail_after(WAIT_S):
            await prompt.run.done.wait()
        ends = [end for end in made.client.payloads(events.HookEnd) if end.hook_type == "preToolUse"]
        assert [end.success for end in ends] == [False]
        assert ends[0].error is not None
        assert "threw" not in ends[0].error.message


@pytest.mark.thorough
async def test_a_hook_that_never_answers_times_out() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[{"text": "ok"}], hooks={})

        async def never(session_id: str, hook_type: str, hook_input: dict[str, Any]) -> dict[str, Any] | None:
            await anyio.sleep_forever()

        made.client.invoke_hook = never
        made.session.hooks.timeout_s = 0.25
        await made.ask("go")
        assert made.client.payloads(events.AssistantMessage)[-1].content == "ok"
        assert {end.success for end in made.client.payloads(events.HookEnd)} == {False}


ASK: dict[str, Any] = {
    "tool_calls": [{"name": "ask_user", "arguments": {"question": "Which?", "choices": ["Red", "Blue"]}}]
}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (UserInputResponse(answer="Red", was_freeform=False), "User selected: Red"),
        (UserInputResponse(answer="Green", was_freeform=True), "User responded: Green"),
    ],
)
async def test_ask_user_returns_the_answer_of_the_user(answer: UserInputResponse, text: str) -> None:
    async with anyio.create_task_group() as tasks:
        script = [ASK, {"text": "{{last_tool_result}}"}]
        made = make_session(tasks, script=script, builtin=builtin_tools(), handles_user_input=True)
        made.client.user_answers.append(answer)
        await made.ask("go")
        assert made.client.payloads(events.AssistantMessage)[-1].content == text
        (requested,) = made.client.payloads(events.UserInputRequested)
        assert (requested.question, requested.choices) == ("Which?", ["Red", "Blue"])
        (completed,) = made.client.payloads(events.UserInputCompleted)
        assert completed.answer == answer.answer
        assert made.client.payloads(events.PermissionRequested) == []


async def test_a_failed_ask_user_call_does_not_end_the_turn() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[ASK, {"text": "ok"}], builtin=builtin_tools(), handles_user_input=True)
        await made.ask("go")
        (completion,) = made.client.payloads(events.ToolExecutionComplete)
        assert not completion.success
        assert made.client.payloads(events.AssistantMessage)[-1].content == "ok"


async def test_ask_user_is_offered_only_if_a_client_can_ask_its_user() -> None:
    async with anyio.create_task_group() as tasks:
        without = make_session(tasks, builtin=builtin_tools())
        able = make_session(tasks, builtin=builtin_tools(), handles_user_input=True)
        assert "ask_user" not in [spec.name for spec in without.session.tools.specs()]
        assert "ask_user" in [spec.name for spec in able.session.tools.specs()]


async def test_a_client_can_rewrite_sections_of_the_system_message() -> None:
    config = SystemMessageConfig.model_validate(
        {"mode": "customize", "sections": {"tone": {"action": "transform"}, "safety": {"action": "remove"}}}
    )
    expected = {"text": "ok", "expect": {"system": "BE BRIEF AND CONCRETE"}}
    async with anyio.create_task_group() as tasks:
        settings = SessionSettings.of(Path("/project"), system_message=config)
        made = make_session(tasks, script=[expected], settings=settings)
        await made.ask("go")
        assert made.client.payloads(events.SessionError) == []
        (sections,) = made.client.to_transform
        assert list(sections) == ["tone"]


async def test_instructions_are_part_of_the_system_message() -> None:
    async with anyio.create_task_group() as tasks:
        expected = {"text": "ok", "expect": {"system": "Always use tabs."}}
        made = make_session(tasks, script=[expected], instructions="Always use tabs.")
        await made.ask("go")
        assert made.client.payloads(events.SessionError) == []
