"""The steps that adapt messages to stricter dialects of chat completions."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from jumpseat.adapters.wires.chat_quirks import (
    answer_before_user,
    file_as_note,
    map_parts,
    merge_roles,
    short_id,
    string_content,
)

CALL = {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:"}}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def reply(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "r"}


@pytest.mark.parametrize(
    ("messages", "merged"),
    [
        ([user("a"), user("b")], [user("a\n\nb")]),
        ([user("a"), user([IMAGE])], [user([{"type": "text", "text": "a"}, IMAGE])]),
        ([user([IMAGE]), user("b")], [user([IMAGE, {"type": "text", "text": "b"}])]),
        ([user("  "), user("b"), user("")], [user("b")]),
        (
            [reply("a"), reply("b", tool_calls=[CALL])],
            [reply("a\n\nb", tool_calls=[CALL])],
        ),
        (
            [reply("a", reasoning_content="x"), reply("b", reasoning_content="y")],
            [reply("a\n\nb", reasoning_content="x\n\ny")],
        ),
        (
            [user("a"), reply(""), reply(None), reply(" \n"), user("b")],
            [user("a\n\nb")],
        ),
        (
            [reply("", tool_calls=[CALL]), reply("b")],
            [reply("", tool_calls=[CALL]), reply("b")],
        ),
        ([result("1"), result("2")], [result("1"), result("2")]),
    ],
)
def test_adjacent_messages_of_one_role_are_merged(
    messages: list[dict[str, Any]], merged: list[dict[str, Any]]
) -> None:
    before = copy.deepcopy(messages)

    assert merge_roles(messages) == merged
    assert messages == before, "a step must leave the messages it was given alone"


def test_content_with_only_text_is_a_string() -> None:
    texts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [user(texts), user([*texts, IMAGE]), reply(None), {"role": "assistant"}]

    assert [message["content"] for message in string_content(messages)] == ["a\nb", [*texts, IMAGE], "", ""]


def test_a_file_becomes_a_line_with_its_name() -> None:
    file = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:"}}
    (changed,) = map_parts([user([file, IMAGE])], file_as_note)

    assert changed["content"] == [
        {
            "type": "text",
            "text": "(The document a.pdf is left out: this model cannot read its format.)",
        },
        IMAGE,
    ]


def test_an_answer_is_put_between_a_result_and_a_prompt() -> None:
    messages = [user("a"), reply("", tool_calls=[CALL]), result("1"), result("2"), user("b"), user("c")]

    roles = [message["role"] for message in answer_before_user(messages, "stopped")]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "user", "user"]


def test_shortened_ids_are_stable_and_distinct_and_short_ones_unchanged() -> None:
    ids = [f"call_{number}" for number in range(2000)]
    short = [short_id(call_id) for call_id in ids]

    assert len(set(short)) == len(ids)
    assert all(len(shortened) == 9 and shortened.isalnum() for shortened in short)
    assert short == [short_id(call_id) for call_id in ids]
    assert (short_id("3sKXImamX"), len(short_id("3sKXImam-"))) == ("3sKXImamX", 9)
