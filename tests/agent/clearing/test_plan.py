"""Which results are cleared: properties of all conversations, and the reasons one by one."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from msgspec.structs import replace

from jumpseat.agent.blocks import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.clearing.calls import note_for
from jumpseat.agent.clearing.plan import (
    CHANGED,
    KEPT_ANSWERS,
    MIN_TOKENS,
    OLD,
    REPEATED,
    Clearing,
    changed_files,
    clearable_tokens,
    plan_clearing,
    remaining_tokens,
)
from jumpseat.agent.compaction.compaction import with_changed_files
from jumpseat.agent.conversation.tokens import Messages, Settled, of_message, of_text

LONG = "a line of a file\n" * 60
ALL = 10**9

PATHS = ("a.py", "./a.py", "/w/a.py", "b/c.py", "b\\c.py", "\ud800" * 300)
SEEDS = range(400)

Answer = list[tuple[tuple[str, Any], tuple[str, bool, bool]]]


def random_call(rng: random.Random) -> tuple[str, Any]:
    path = rng.choice(PATHS)
    lines = rng.choice([{}, {"view_range": [rng.randint(1, 40), rng.randint(-1, 80)]}, {"view_range": "x"}])
    return rng.choice(
        [
            ("view", {"path": path, **lines}),
            ("view", rng.choice([None, {"path": 3, "view_range": [True, 10**4000]}])),
            ("edit", {"path": path, "old_str": "x"}),
            ("apply_patch", {"input": f"*** Update File: {path}"}),
            ("bash", {"command": rng.choice(["make", "ls " * 80, "\n"])}),
            ("grep", {"pattern": "y" * rng.randint(0, 200), "path": path}),
            (rng.choice(["read_bash", "mcp-x"]), {"n": rng.choice([1, 2**70])}),
        ]
    )


def random_answers(rng: random.Random) -> list[Answer]:
    return [
        [
            (random_call(rng), (rng.choice(["", "short", LONG]), rng.random() < 0.2, rng.random() < 0.2))
            for _ in range(rng.randint(0, 3))
        ]
        for _ in range(rng.randint(0, 12))
    ]


def conversation(*answers: Answer) -> list[Message]:
    messages: list[Message] = [UserMessage([TextBlock("go")])]
    for number, answer in enumerate(answers):
        blocks = [
            ToolUseBlock(f"{number}-{place}", name, json.dumps(arguments), arguments)
            for place, ((name, arguments), _) in enumerate(answer)
        ]
        messages.append(AssistantMessage([TextBlock("next"), *blocks]))
        if answer:
            results = [
                ToolResultBlock(block.id, block.name, text, failed, [ImageBlock("", "image/png")] * seen)
                for block, (_, (text, failed, seen)) in zip(blocks, answer, strict=True)
            ]
            messages.append(ToolMessage(results))
    return messages


def cleared(messages: list[Message], planned: list[Clearing]) -> list[Message]:
    """Return the messages with notes in place of the planned results."""
    notes = {
        item.call.id: note_for(item.call, item.result, item.reason, "/f" if item.must_be_saved else None)
        for item in planned
    }
    return [
        ToolMessage(
            [
                replace(result, text=notes[result.tool_use_id], images=[])
                if result.tool_use_id in notes
                else result
                for result in message.results
            ]
        )
        if isinstance(message, ToolMessage)
        else message
        for message in messages
    ]


@pytest.mark.thorough
def test_clearing_keeps_calls_and_the_newest_results_and_is_done_once() -> None:
    for seed in SEEDS:
        rng = random.Random(seed)
        messages, needed = conversation(*random_answers(rng)), rng.choice([0, 500, ALL])
        planned = plan_clearing(messages, needed, "/w")
        after = cleared(messages, planned)

        kept = [message for message in after if isinstance(message, ToolMessage)][-KEPT_ANSWERS:]
        assert kept == [message for message in messages if isinstance(message, ToolMessage)][-KEPT_ANSWERS:]
        assert [shape(message) for message in after] == [shape(message) for message in messages]
        for item in planned:
            note = note_for(item.call, item.result, item.reason, "/f" if item.must_be_saved else None)
            assert "\n" not in note
            assert of_text(note) < MIN_TOKENS
            assert item.result.text in (LONG, "", "short")
        if needed in (0, ALL):
            assert plan_clearing(after, needed, "/w") == []
        assert sum(item.freed for item in planned) <= clearable_tokens(messages)


def test_sizes_are_the_same_if_only_new_messages_are_added_up() -> None:
    for seed in SEEDS:
        messages, settled = conversation(*random_answers(random.Random(seed))), Settled()
        for end in range(1, len(messages) + 1):
            final = max(0, end - 2)
            growing = Messages(messages[:final], messages[final:end], settled)
            assert clearable_tokens(growing) == clearable_tokens(messages[:end])
            assert remaining_tokens(growing) == remaining_tokens(messages[:end])


def test_what_no_clearing_frees_is_known_beforehand() -> None:
    long = [((("bash", {"command": f"make part{n}"})), (LONG, False, False)) for n in range(40)]
    short = [((("view", {"path": f"{n}.py"})), ("short", False, False)) for n in range(40)]
    messages = conversation(*([call] for call in (*long, *short)))
    remaining = remaining_tokens(messages)
    assert remaining_tokens(cleared(messages, plan_clearing(messages, ALL, "/w"))) <= remaining
    # The size does not depend on what was cleared before, nor on the prompts and the latest results.
    assert 40 * 40 < remaining < 80 * 60
    assert remaining_tokens([*messages[:1] * 9, *messages[1:]]) == remaining
    assert remaining_tokens(messages[: 2 * KEPT_ANSWERS + 1]) == of_message(messages[1])


def shape(message: Message) -> object:
    """Return all of a message but the content of results."""
    if isinstance(message, ToolMessage):
        return [(result.tool_use_id, result.tool_name, result.is_error) for result in message.results]
    return message


@pytest.mark.thorough
def test_what_is_stale_stays_stale_as_the_conversation_grows() -> None:
    for seed in SEEDS:
        rng = random.Random(seed)
        begun, more = random_answers(rng), random_answers(rng)
        first = {item.call.id for item in plan_clearing(conversation(*begun), 0, "/w")}
        assert first <= {item.call.id for item in plan_clearing(conversation(*begun, *more), 0, "/w")}


def view(path: str, *lines: int) -> tuple[str, Any]:
    return "view", {"path": path, **({"view_range": list(lines)} if lines else {})}


def reasons(*calls: tuple[str, Any], needed: int = 0, failed: int | None = None) -> list[str | None]:
    """Return the reason for which the result of each call is cleared, before three other calls."""
    later = [("bash", {"command": f"echo {number}"}) for number in range(KEPT_ANSWERS)]
    answers = [[(call, (LONG, number == failed, False))] for number, call in enumerate((*calls, *later))]
    planned = {item.call.id: item.reason for item in plan_clearing(conversation(*answers), needed, "/w")}
    return [planned.get(f"{number}-0") for number in range(len(calls))]


def test_a_result_is_stale_if_a_later_call_shows_the_same_or_its_file_was_changed() -> None:
    assert reasons(view("a.py", 1, 50), view("/w/a.py")) == [REPEATED, None]
    assert reasons(view("a.py"), view("a.py", 1, 50)) == [None, None]
    assert reasons(view("a.py", 10, 20), view("./a.py", 5, 30), view("b.py")) == [REPEATED, None, None]
    assert reasons(view("a.py"), ("edit", {"path": "x/../a.py"})) == [CHANGED, None]
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n*** End Patch"
    assert reasons(view("a.py"), view("b.py"), ("apply_patch", {"input": patch})) == [CHANGED, None, None]
    same = ("bash", {"command": "make test", "description": "Test"})
    assert reasons(same, ("bash", {"command": "make test "})) == [REPEATED, None]
    search = ("grep", {"pattern": "x", "path": "src"})
    assert reasons(search, ("grep", {"path": "./src", "pattern": "x"}), ("grep", {"pattern": "x"})) == [
        REPEATED,
        None,
        None,
    ]
    output = ("read_bash", {"shellId": "1"})
    assert reasons(output, output) == [None, None]


def test_a_failed_call_changes_nothing_and_replaces_nothing() -> None:
    assert reasons(view("a.py"), ("edit", {"path": "a.py"}), failed=1) == [None, None]
    assert reasons(view("a.py"), view("a.py"), failed=1) == [None, None]


def test_a_summary_gets_the_changed_files_that_it_does_not_name() -> None:
    patch = ("apply_patch", {"input": "*** Add File: c.py"})
    calls = [("edit", {"path": "a.py"}), ("create", {"path": "b.py"}), patch, ("edit", {"path": "d.py"})]
    answers: list[Answer] = [[(call, ("ok", number == 3, False))] for number, call in enumerate(calls)]
    changed = changed_files(conversation(*answers), "/w")
    assert changed == ["/w/a.py", "/w/b.py", "/w/c.py"]
    assert with_changed_files("a.py was changed", changed) == (
        "a.py was changed\n\n<changed_files>\n/w/b.py\n/w/c.py\n</changed_files>"
    )
    assert with_changed_files("a.py, b.py, c.py", changed) == "a.py, b.py, c.py"


def test_old_results_follow_from_the_oldest_on_until_enough_is_free() -> None:
    calls = [view(f"{name}.py") for name in "abcd"]
    assert reasons(*calls, needed=of_text(LONG)) == [OLD, OLD, None, None]
    assert reasons(*calls, needed=ALL) == [OLD] * 4


def test_the_line_for_a_result_names_the_call_and_the_way_back() -> None:
    call = ToolUseBlock("1", "view", "", {"path": "src/app.py", "view_range": [1, -1]})
    result = ToolResultBlock("1", "view", LONG)
    assert note_for(call, result, CHANGED) == (
        "[Cleared: view src/app.py lines 1-end, 1,020 characters; the file was changed since: "
        "call view again if needed]"
    )
    command = ToolUseBlock("1", "bash", "", {"command": "make\n  test"})
    assert note_for(command, result, OLD, "/s/out.txt") == (
        "[Cleared: bash make test, 1,020 characters; it is old: saved as /s/out.txt]"
    )


def test_what_no_call_may_say_again_is_saved_although_a_later_call_is_the_same() -> None:
    calls = [view("a.py"), ("bash", {"command": "make test"}), ("tracker-next", {"queue": "x"})]
    later = [("bash", {"command": f"echo {number}"}) for number in range(KEPT_ANSWERS)]
    messages = conversation(*[[(call, (LONG, False, False))] for call in (*calls, *calls, *later)])
    planned = plan_clearing(messages, 0, "/w")
    assert [(item.call.name, item.reason, item.must_be_saved) for item in planned] == [
        ("view", REPEATED, False),
        ("bash", REPEATED, True),
        ("tracker-next", REPEATED, True),
    ]
