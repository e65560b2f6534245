"""The conversation as a function of the events, both live and replayed from a log."""

from __future__ import annotations

import base64
import copy
import random

import orjson
import pytest
from anyio.abc import TaskGroup
from msgspec.structs import replace

from jumpseat.adapters.wire import parse_arguments
from jumpseat.agent.blocks import (
    AssistantMessage,
    Citation,
    DocumentBlock,
    HostedToolResultBlock,
    HostedToolUseBlock,
    ImageBlock,
    JsonObject,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.conversation import tokens
from jumpseat.agent.conversation.conversation import INTERRUPTED, Conversation, canonical_json
from jumpseat.agent.conversation.portability import check_portability
from jumpseat.agent.conversation.provider_blocks import provider_blocks
from jumpseat_protocol import events
from tests.support.pictures import PNG_BASE64
from tests.support.sessions import make_session

ID = "00000000-0000-4000-8000-000000000000"
NOW = "2026-01-01T00:00:00.000Z"

# Texts a model may write as arguments; each must be sent back to it unchanged.
ARGUMENT_TEXTS = [
    "{}",
    "",
    " ",
    '{"a":1}',
    '{ "a" : 1 }',
    '{"b":2,"a":1}',
    '{"a":1,"a":2}',
    '{"a":1.0,"b":1e3,"c":-0}',
    '{"n":123456789012345678901234567890}',
    '{"path":"C:\\\\x","e":"\\u00e9","s":"\\/"}',
    '{"e":"é🙂","z":"\\u2028"}',
    '{"nested":{"list":[1,{"k":null}],"t":true}}',
    '{"a":1}\n',
    "{oops",
    "[1,2]",
    '"text"',
    "null",
    '{"half":"\\ud83d"}',
]


def user(text: str, **fields: object) -> events.UserMessage:
    return events.UserMessage(content=text, message_id=ID, **fields)  # pyright: ignore[reportArgumentType]


def answer(message: AssistantMessage) -> events.AssistantMessage:
    """Return the event that the loop emits for an answer."""
    requests: list[events.ToolRequest] = []
    for call in message.tool_uses():
        arguments = call.arguments if call.arguments is not None else {}
        exact = call.arguments_json if call.arguments_json != canonical_json(arguments) else None
        requests.append(
            events.ToolRequest(tool_call_id=call.id, name=call.name, arguments=arguments, arguments_json=exact)
        )
    return events.AssistantMessage(
        message_id=ID,
        content=message.text(),
        tool_requests=requests,
        provider_blocks=provider_blocks(message),
    )


def call(call_id: str, text: str = "{}", **fields: object) -> ToolUseBlock:
    arguments = parse_arguments(text)
    return ToolUseBlock(call_id, "add", text, arguments, **fields)  # pyright: ignore[reportArgumentType]


def done(call_id: str, text: str = "ok") -> events.ToolExecutionComplete:
    return events.ToolExecutionComplete(tool_call_id=call_id, success=True, result=events.ToolResult(content=text))


def failed(call_id: str, text: str) -> events.ToolExecutionComplete:
    return events.ToolExecutionComplete(
        tool_call_id=call_id, success=False, error=events.ToolError(message=text, code="failure")
    )


def messages(*payloads: events.EventPayload) -> list[Message]:
    return built(*payloads).messages()


def built(*payloads: events.EventPayload) -> Conversation:
    conversation = Conversation()
    for payload in payloads:
        conversation.apply(payload)
    return conversation


def replayed(*payloads: events.EventPayload) -> Conversation:
    """Return the conversation built from the same events after encoding and decoding them."""
    conversation = Conversation()
    for payload in payloads:
        record = orjson.loads(events.Event.of(ID, NOW, None, payload).encode())
        conversation.apply(events.decode_payload(record["type"], record["data"]))
    return conversation


def result(call_id: str, text: str = "ok") -> ToolResultBlock:
    return ToolResultBlock(call_id, "add", text)


def interrupted(call_id: str) -> ToolResultBlock:
    return ToolResultBlock(call_id, "add", INTERRUPTED, is_error=True)


def test_a_prompt_and_its_answer_become_two_messages_with_the_text_sent_to_the_model() -> None:
    prompt = user("Hi", transformed_content="<date/>\n\nHi")

    assert messages(prompt, answer(AssistantMessage([TextBlock(" Hello.\n")]))) == [
        UserMessage([TextBlock("<date/>\n\nHi")]),
        AssistantMessage([TextBlock(" Hello.\n")]),
    ]
    assert messages(user("Hi")) == [UserMessage([TextBlock("Hi")])]


@pytest.mark.parametrize("order", [["1", "2", "3"], ["3", "1", "2"], ["2", "3", "1"]])
def test_results_have_the_order_of_the_calls_whichever_finished_first(order: list[str]) -> None:
    reply = AssistantMessage([call("1"), call("2"), call("3")])

    assert messages(user("go"), answer(reply), *(done(call_id, f"r{call_id}") for call_id in order)) == [
        UserMessage([TextBlock("go")]),
        reply,
        ToolMessage([result("1", "r1"), result("2", "r2"), result("3", "r3")]),
    ]


def test_a_call_without_a_result_gets_the_text_for_interrupted_calls() -> None:
    reply = AssistantMessage([TextBlock("Let me see."), call("1"), call("2")])
    conversation = built(user("go"), answer(reply), done("2"))

    assert conversation.messages()[-1] == ToolMessage([interrupted("1"), result("2")])
    assert conversation.open_calls() == [call("1")]
    conversation.apply(failed("1", "late"))
    assert conversation.messages()[-1] == ToolMessage([ToolResultBlock("1", "add", "late", True), result("2")])
    assert conversation.open_calls() == []


def test_only_calls_of_the_last_answer_are_open() -> None:
    assert built(user("go"), answer(AssistantMessage([call("1")])), answer(AssistantMessage([]))).open_calls() == [
        call("1")
    ]
    assert built(user("go"), answer(AssistantMessage([call("1")])), user("next")).open_calls() == [call("1")]
    later = AssistantMessage([TextBlock("never mind")])
    assert built(user("go"), answer(AssistantMessage([call("1")])), answer(later)).open_calls() == []


def test_an_id_reused_in_a_later_answer_gets_the_later_result_and_becomes_unique() -> None:
    reply = AssistantMessage([call("call_0")])

    assert messages(answer(reply), done("call_0", "one"), answer(reply), done("call_0", "two")) == [
        reply,
        ToolMessage([result("call_0", "one")]),
        AssistantMessage([call("call_0_2")]),
        ToolMessage([result("call_0_2", "two")]),
    ]


def test_a_result_goes_to_the_latest_open_call_with_its_id() -> None:
    reply = AssistantMessage([call("call_0")])

    assert messages(answer(reply), answer(reply), done("call_0", "two")) == [
        reply,
        ToolMessage([interrupted("call_0")]),
        AssistantMessage([call("call_0_2")]),
        ToolMessage([result("call_0_2", "two")]),
    ]


def test_an_id_used_twice_in_one_answer_keeps_both_results() -> None:
    twice = AssistantMessage([call("c"), call("c")])

    assert messages(answer(AssistantMessage([call("c")])), answer(twice), done("c", "one"), done("c", "two")) == [
        AssistantMessage([call("c")]),
        ToolMessage([interrupted("c")]),
        AssistantMessage([call("c_2"), call("c_3")]),
        ToolMessage([result("c_2", "one"), result("c_3", "two")]),
    ]


@pytest.mark.thorough
def test_ids_of_which_each_answer_repeats_the_same_take_linear_time() -> None:
    # With a search from the first number for each call, this takes minutes.
    number = 30_000
    conversation = Conversation()
    reply = answer(AssistantMessage([call("call_0")]))
    for _ in range(number):
        conversation.apply(reply)
        conversation.apply(done("call_0"))
    assert conversation.has_call(f"call_0_{number}")
    assert not conversation.has_call(f"call_0_{number + 1}")


def test_a_second_result_and_one_for_an_unknown_call_change_nothing() -> None:
    reply = AssistantMessage([call("1")])

    assert messages(answer(reply), done("1", "first"), done("1", "second"), done("nobody")) == [
        reply,
        ToolMessage([result("1", "first")]),
    ]


def test_an_empty_answer_adds_no_message() -> None:
    conversation = built(user("go"), answer(AssistantMessage([])), answer(AssistantMessage([TextBlock("")])))

    assert conversation.messages() == [UserMessage([TextBlock("go")])]
    assert len(conversation) == 1


def test_the_model_gets_the_result_of_a_failed_call_or_else_its_error() -> None:
    both = events.ToolExecutionComplete(
        tool_call_id="2",
        success=False,
        result=events.ToolResult(content="what the model reads"),
        error=events.ToolError(message="what the user reads"),
    )
    bare = events.ToolExecutionComplete(tool_call_id="3", success=False)
    reply = AssistantMessage([call("1"), call("2"), call("3")])

    assert messages(answer(reply), failed("1", "no"), both, bare)[-1] == ToolMessage(
        [
            ToolResultBlock("1", "add", "no", is_error=True),
            ToolResultBlock("2", "add", "what the model reads", is_error=True),
            ToolResultBlock("3", "add", "", is_error=True),
        ]
    )


def test_images_in_a_result_reach_the_model_and_resources_do_not() -> None:
    complete = events.ToolExecutionComplete(
        tool_call_id="1",
        success=True,
        result=events.ToolResult(
            content="Viewed.",
            binary_results_for_llm=[
                events.BinaryResult(
                    data=PNG_BASE64, mime_type="image/png", description="Image file at path /a.png"
                ),
                events.BinaryResult(data="BBBB", mime_type="application/pdf", type="resource"),
            ],
        ),
    )

    assert messages(answer(AssistantMessage([call("1")])), complete)[-1] == ToolMessage(
        [
            ToolResultBlock(
                "1", "add", "Viewed.", images=[ImageBlock(PNG_BASE64, "image/png", "Image file at path /a.png")]
            )
        ]
    )


def test_attached_image_files_become_images() -> None:
    image = {"data": PNG_BASE64, "mimeType": "image/png"}
    attachments: list[dict[str, object]] = [
        {"type": "file", "path": "/tmp/a.png", "image": image},
        {"type": "file", "path": "/tmp/b.png", "displayName": "b", "image": image},
        {"type": "file", "path": "/tmp/c.png", "image": "AAAA"},
        {"type": "directory", "path": "/tmp", "image": image},
    ]

    assert messages(user("Look", attachments=attachments)) == [
        UserMessage(
            [
                TextBlock("Look"),
                ImageBlock(PNG_BASE64, "image/png", label="/tmp/a.png"),
                ImageBlock(PNG_BASE64, "image/png", label="b"),
            ]
        )
    ]


PDF = base64.b64encode(b"%PDF-1.7").decode()


def test_blobs_become_images_and_documents() -> None:
    attachments = [
        {"type": "blob", "data": PNG_BASE64, "mimeType": "image/png", "displayName": "a.png"},
        {"type": "blob", "data": PDF, "mimeType": "application/pdf", "displayName": "b.pdf"},
        {"type": "blob", "data": PNG_BASE64, "mimeType": "image/jpeg"},
        {"type": "blob", "data": "DDDD", "mimeType": "text/plain", "displayName": 7},
        {"type": "blob", "data": "EEEE"},
        {"type": "blob", "mimeType": "image/png"},
        {"type": "file", "path": "a.txt", "data": "AAAA", "mimeType": "image/png"},
        {"type": "selection", "text": "x"},
        {},
    ]

    assert messages(user("Look", attachments=attachments)) == [
        UserMessage(
            [
                TextBlock("Look"),
                ImageBlock(PNG_BASE64, "image/png", label="a.png"),
                DocumentBlock(PDF, "application/pdf", title="b.pdf"),
                ImageBlock(PNG_BASE64, "image/png"),
                DocumentBlock("DDDD", "text/plain"),
            ]
        )
    ]


def test_provider_specific_data_is_kept() -> None:
    reply = AssistantMessage(
        [
            ReasoningBlock("signed", "anthropic", {"signature": "U0k="}),
            ReasoningBlock("", "anthropic", {"data": "RGF0"}),
            TextBlock("So."),
            call(
                "1", provider="openai", provider_data={"extra_content": {"google": {"thought_signature": "cw=="}}}
            ),
        ]
    )

    assert messages(answer(reply), done("1")) == [reply, ToolMessage([result("1")])]


def test_unsigned_reasoning_is_not_sent_again() -> None:
    reply = AssistantMessage([ReasoningBlock("Hm.", "openai"), TextBlock("So.")])

    assert messages(answer(reply)) == [AssistantMessage([TextBlock("So.")])]


def test_an_answer_keeps_the_order_of_its_blocks_and_hosted_tool_calls() -> None:
    cited = Citation("web_search_result", "https://a.example", "A", "quoted", 0, 5, "anthropic", {"index": "x"})
    reply = AssistantMessage(
        [
            ReasoningBlock("first", "anthropic", {"signature": "MQ=="}),
            TextBlock("I search."),
            HostedToolUseBlock("s1", "web_search", {"query": "x"}, "anthropic", {"id": "s1"}),
            HostedToolResultBlock("s1", "A: found", "anthropic", is_error=False, provider_data={"content": [1]}),
            TextBlock("Found", [cited]),
            ReasoningBlock("second", "anthropic", {"signature": "Mg=="}),
            call("1"),
            ReasoningBlock("third", "anthropic", {"signature": "Mw=="}),
            call("2", provider="openai", provider_data={"extra": 1}),
            TextBlock(" it."),
        ]
    )

    assert messages(user("go"), answer(reply))[1] == reply


def test_reasoning_in_a_log_of_an_older_server_precedes_the_text() -> None:
    logged = events.AssistantMessage(
        message_id=ID,
        content="So.",
        tool_requests=[events.ToolRequest(tool_call_id="1", name="add", arguments={})],
        provider_blocks=[
            {"type": "reasoning", "text": "Hm.", "provider": "anthropic", "data": {"signature": "MQ=="}},
            {"type": "tool_use", "id": "1", "provider": "openai", "data": {"extra": 1}},
        ],
    )

    assert messages(user("go"), logged)[1] == AssistantMessage(
        [
            ReasoningBlock("Hm.", "anthropic", {"signature": "MQ=="}),
            TextBlock("So."),
            ToolUseBlock("1", "add", "{}", {}, "openai", {"extra": 1}),
        ]
    )


@pytest.mark.parametrize(
    "blocks",
    [
        [{"type": "text", "length": 1}, {"type": "text", "length": -4}],
        [{"type": "text"}, {"type": "tool_use"}, {"type": "tool_use"}],
        [{"type": "text", "length": 2, "citations": [3, {}, {"kind": "x", "nonsense": 1}]}],
        [{"type": "unheard_of"}, {}],
        [{"type": "hosted_tool_use", "input": 3}],
    ],
)
def test_an_invalid_list_of_blocks_loses_neither_text_nor_calls(blocks: list[JsonObject]) -> None:
    logged = events.AssistantMessage(
        message_id=ID,
        content="So it is.",
        tool_requests=[events.ToolRequest(tool_call_id="1", name="add", arguments={})],
        provider_blocks=blocks,
    )

    reply = messages(user("go"), logged)[1]
    assert isinstance(reply, AssistantMessage)
    assert reply.text() == "So it is."
    assert [use.id for use in reply.tool_uses()] == ["1"]


def test_other_events_change_nothing() -> None:
    assert (
        messages(
            events.TurnStart(turn_id="0"),
            events.Reasoning(reasoning_id=ID, content="Hm."),
            events.SessionWarning(warning_type="x", message="y"),
            events.ToolExecutionStart(tool_call_id="1", tool_name="add"),
            events.Abort(reason="user_initiated"),
        )
        == []
    )
    conversation = Conversation()
    conversation.apply(events.UnknownPayload(type="session.of_tomorrow", data={"content": "x"}))
    assert conversation.messages() == []


@pytest.mark.parametrize("text", ARGUMENT_TEXTS)
def test_the_text_of_arguments_survives_the_log_byte_for_byte(text: str) -> None:
    reply = AssistantMessage([call("1", text)])

    assert replayed(answer(reply), done("1")).messages() == [reply, ToolMessage([result("1")])]


def test_messages_that_were_sent_do_not_change_when_a_call_runs_with_other_arguments() -> None:
    conversation = built(answer(AssistantMessage([TextBlock("I add."), call("1", '{"a":1}')])))
    sent = conversation.messages()[0]
    before = copy.deepcopy(sent)

    conversation.apply(replace(done("1"), effective_arguments={"a": 2}))

    assert sent == before
    changed = conversation.messages()[0]
    assert isinstance(changed, AssistantMessage)
    assert [block.arguments_json for block in changed.tool_uses()] == ['{"a":2}']


def test_a_replayed_conversation_equals_the_live_one() -> None:
    for seed in range(60):
        payloads = _some_events(random.Random(seed))
        live, read = built(*payloads), replayed(*payloads)

        assert read.messages() == live.messages(), f"seed {seed}"
        assert read.open_calls() == live.open_calls(), f"seed {seed}"


def test_what_is_kept_of_earlier_messages_is_what_they_add_up_to() -> None:
    for seed in range(60):
        chance = random.Random(seed)
        live = Conversation()
        lists = [live.messages()]
        for payload in _some_events(chance):
            live.apply(payload)
            if chance.random() < 0.1:
                live.apply(events.SessionContextCleared(initial_message="go", messages_cleared=1))
            lists.append(live.messages())
            # The latest list is asked about most, but earlier ones are, too.
            asked = chance.choice([lists[-1], chance.choice(lists)])
            plain = copy.deepcopy([*asked])
            assert tokens.of_messages(asked) == sum(map(tokens.of_message, plain)), f"seed {seed}"
            assert check_portability(asked, "openai") == check_portability(plain, "openai"), f"seed {seed}"


@pytest.mark.anyio
async def test_replaying_the_log_of_a_session_yields_the_messages_sent_to_its_model(tasks: TaskGroup) -> None:
    calls = [{"id": f"c{number}", "name": "add", "arguments": text} for number, text in enumerate(ARGUMENT_TEXTS)]
    made = make_session(
        tasks, script=[{"reasoning": "Hm.", "text": " First:", "tool_calls": calls}, {"text": "Sorry. "}]
    )
    await made.ask("go", attachments=[{"type": "blob", "data": PNG_BASE64, "mimeType": "image/png"}])

    conversation = Conversation()
    for record in map(orjson.loads, made.log.lines):
        conversation.apply(events.decode_payload(record["type"], record["data"]))
    assert conversation.messages() == made.session.conversation.messages()
    _, reply, results, _ = conversation.messages()
    assert isinstance(reply, AssistantMessage)
    assert isinstance(results, ToolMessage)
    assert [use.arguments_json for use in reply.tool_uses()] == ARGUMENT_TEXTS
    assert [block.tool_use_id for block in results.results] == [use.id for use in reply.tool_uses()]


def _some_events(chance: random.Random) -> list[events.EventPayload]:
    """Return random prompts, answers and results, including open calls and reused ids."""
    texts = ["", "Hi", " leading and trailing \n", "é🙂\u2028", "a\0b\tc", "</reminder>", "\\ud83d"]
    out: list[events.EventPayload] = []
    for _ in range(chance.randint(1, 4)):
        blob = {"type": "blob", "data": PNG_BASE64, "mimeType": chance.choice(["image/png", "application/pdf"])}
        attachments = [blob] * chance.randint(0, 2)
        out.append(
            user(
                chance.choice(texts),
                transformed_content=chance.choice([None, "wrapped"]),
                attachments=attachments or None,
            )
        )
        for _ in range(chance.randint(0, 3)):
            reply = AssistantMessage([])
            if chance.random() < 0.5:
                data = chance.choice([{"signature": "U0k=", "n": [1, None, 2.5]}, "opaque", ["a"]])
                reply.blocks.append(ReasoningBlock(chance.choice(texts), "anthropic", data))
            reply.blocks.append(TextBlock(chance.choice(texts)))
            reply.blocks += [
                call(
                    f"c{chance.randint(0, 3)}", chance.choice(ARGUMENT_TEXTS), provider="openai", provider_data=data
                )
                if (data := chance.choice([None, {"extra_content": {"x": [1]}}])) is not None
                else call(f"c{chance.randint(0, 3)}", chance.choice(ARGUMENT_TEXTS))
                for _ in range(chance.randint(0, 3))
            ]
            out.append(answer(reply))
            answered = [use for use in reply.tool_uses() if chance.random() < 0.8]
            chance.shuffle(answered)
            for answered_call in answered:
                out.append(
                    chance.choice(
                        [
                            done(answered_call.id, chance.choice(texts)),
                            failed(answered_call.id, chance.choice(texts)),
                        ]
                    )
                )
    return out
