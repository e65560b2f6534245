"""The functions that handlers of adapters may import."""

from __future__ import annotations

from typing import Any

from jumpseat.adapters import utilities as utils


def test_the_json_of_a_line_or_of_a_whole_answer_is_returned() -> None:
    cleaned = {
        'data: {"a": 1}': '{"a": 1}',
        'data:{"a": {}}': '{"a": {}}',
        '{"a": 1}': '{"a": 1}',
        "data: [DONE]": "data: [DONE]",
        "": "",
    }
    assert {line: utils.clean_streamed_data(line) for line in cleaned} == cleaned
    assert utils.clean_streamed_data({"status": 200, "body": '{"a": 1}'}) == '{"a": 1}'


def test_system_messages_come_first_and_roles_alternate() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "one"},
        {"role": "user", "content": "two", "_meta": {"tag": "file"}},
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": "Looking."},
        {"role": "assistant", "tools": {"calls": [{"id": "a"}]}},
        {"role": "tool", "content": "first"},
        {"role": "tool", "content": "second"},
        {"role": "user", "content": [{"type": "image_url"}]},
        {"role": "user", "content": "three"},
    ]
    before = repr(messages)

    assert utils.merge_messages(utils.merge_system_messages(messages)) == [
        {"role": "system", "content": "Be kind. Be brief."},
        {"role": "user", "content": "one\n\ntwo"},
        {"role": "assistant", "content": "Looking.", "tools": {"calls": [{"id": "a"}]}},
        {"role": "tool", "content": "first"},
        {"role": "tool", "content": "second"},
        {"role": "user", "content": [{"type": "image_url"}, "three"]},
    ]
    assert repr(messages) == before


def test_keys_and_roles_of_messages_are_changed_in_copies() -> None:
    message = {"role": "LLM", "content": "x", "opts": {"visible": False}}

    assert utils.filter_out_messages(message, ["role", "content"]) == {"role": "LLM", "content": "x"}
    assert utils.map_roles({"llm": "model"}, [message, {"role": "tool"}]) == [
        {**message, "role": "model"},
        {"role": "tool"},
    ]


def test_values_of_a_header_are_added_once_and_removed() -> None:
    headers = {"anthropic-beta": "one, two"}
    utils.add_header(headers, "anthropic-beta", "two")
    utils.add_header(headers, "anthropic-beta", "three")
    utils.add_header(headers, "x-new", "a")
    assert headers == {"anthropic-beta": "one,two,three", "x-new": "a"}
    utils.remove_header(headers, "anthropic-beta", "two")
    utils.remove_header(headers, "x-new", "a")
    utils.remove_header(headers, "x-missing", "a")
    assert headers == {"anthropic-beta": "one,three"}
