"""A request that does not begin as the last one is noticed, with the part and the cause."""

from __future__ import annotations

from msgspec.structs import replace

from jumpseat.agent.blocks import ImageBlock, Message, TextBlock, UserMessage
from jumpseat.agent.conversation.conversation import Conversation
from jumpseat.agent.model import ModelRequest, ToolSchema, ToolSpec
from jumpseat.agent.session.prefix import PrefixBreak, SentPrefix
from jumpseat_protocol import events


def says(*texts: str) -> list[Message]:
    return [UserMessage([TextBlock(text)]) for text in texts]


def tool(name: str, description: str = "") -> ToolSpec:
    return ToolSpec(name, description, ToolSchema.of({}))


def test_a_longer_conversation_begins_as_before() -> None:
    sent, conversation = SentPrefix(), Conversation()
    assert sent.note(ModelRequest("m", "s", says("one"), [tool("a")]), conversation) is None
    assert sent.note(ModelRequest("m", "s", says("one", "two"), [tool("a")]), conversation) is None


def test_the_first_part_that_differs_is_named_with_its_cause() -> None:
    request = ModelRequest("m", "s", says("one", "two"), [tool("a"), tool("b")])
    conversation = Conversation()

    def after(**changes: object) -> PrefixBreak | None:
        sent = SentPrefix()
        sent.note(request, conversation)
        return sent.note(replace(request, **changes), conversation)

    assert after(model="n", system="t") == PrefixBreak("model", "another model")
    assert after(system="t", tools=[]) == PrefixBreak("instructions", "changed")
    changed = [tool("b", "new"), tool("c")]
    assert after(tools=changed) == PrefixBreak("tools", "added c; removed a; changed b")
    assert after(tools=request.tools[::-1]) == PrefixBreak("tools", "order")
    assert after(messages=says("one", "other")) == PrefixBreak("messages", "rewritten", 1)
    picture = UserMessage([ImageBlock("", "image/png")])
    assert after(messages=[picture], vision=False) == PrefixBreak("messages", "rewritten", 0)


def test_a_request_is_compared_with_that_before_the_session_was_opened() -> None:
    request = ModelRequest("m", "s", says("one"), [tool("a"), tool("b")])
    first, conversation = SentPrefix(), Conversation()
    digest = first.changed(first.note(request, conversation), request)
    assert first.changed(first.note(request, conversation), request) is None, "nothing is stored twice"

    def after(stored: bytes | None, **changes: object) -> tuple[PrefixBreak | None, bool]:
        sent, other = SentPrefix(stored), replace(request, **changes)
        found = sent.note(other, conversation)
        return found, sent.changed(found, other) is not None

    assert after(digest, messages=says("one", "two")) == (None, False)
    assert after(digest, model="n") == (PrefixBreak("model", "another model"), True)
    assert after(digest, system="t") == (PrefixBreak("instructions", "changed"), True)
    changed = [tool("b", "new"), tool("c")]
    assert after(digest, tools=changed) == (PrefixBreak("tools", "added c; removed a; changed b"), True)
    assert after(digest, tools=request.tools[::-1]) == (PrefixBreak("tools", "order"), True)
    assert after(b"{broken") == after(None) == (None, True)


def test_the_conversation_names_the_cause_of_its_rewriting() -> None:
    sent, conversation = SentPrefix(), Conversation()
    conversation.apply(events.UserMessage(content="one", message_id="1"))
    conversation.apply(events.AssistantMessage(message_id="2", content="answer"))
    sent.note(ModelRequest("m", "s", conversation.messages()), conversation)
    conversation.apply(events.SessionCompactionStart())
    conversation.apply(events.SessionCompactionComplete(success=True, summary_content="short"))
    found = sent.note(ModelRequest("m", "s", conversation.messages()), conversation)
    assert found == PrefixBreak("messages", "compacted", 0)
    rewound = Conversation()
    rewound.apply(events.UserMessage(content="one", message_id="1"))
    found = sent.note(ModelRequest("m", "s", rewound.messages()), rewound)
    assert found == PrefixBreak("messages", "rewound", 0)
