"""Transcripts from events, and their forms: Markdown and HTML. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt

from jumpseat_transcript.as_html import as_html
from jumpseat_transcript.as_markdown import as_markdown
from jumpseat_transcript.plain_markdown import plain_markdown
from jumpseat_transcript.transcript import INTERRUPTED_CALL, Answer, Call, Note, Usage, build_transcript
from jumpseat_transcript.words import time_ago
from tests.support.cases import all_cases

HOSTILE = "</pre></details><script>alert(1)</script><img src=x onerror=alert(2)>"


def event(kind: str, seconds: int = 0, **data: Any) -> dict[str, Any]:
    time = f"2026-01-31T12:00:{seconds:02}.000Z"
    return {"id": f"e{seconds}", "timestamp": time, "type": kind, "data": data}


def prompt(text: str, **more: Any) -> dict[str, Any]:
    return event("user.message", content=text, messageId="m", **more)


def call(tool: str, call_id: str, arguments: Any, **complete: Any) -> list[dict[str, Any]]:
    """Return the events of a call that takes four seconds; without ``complete``, it never ended."""
    requests = [{"toolCallId": call_id, "name": tool, "arguments": arguments}]
    begun = [
        event("assistant.message", messageId="a", content="", toolRequests=requests, model="m"),
        event("tool.execution_start", 1, toolCallId=call_id, toolName=tool, arguments=arguments),
    ]
    done = [event("tool.execution_complete", 5, toolCallId=call_id, **complete)] if complete else []
    return [*begun, *done]


def answer(text: str, **more: Any) -> dict[str, Any]:
    return event("assistant.message", messageId="b", content=text, toolRequests=[], model="m", **more)


def decision(call_id: str, kind: str, **more: Any) -> list[dict[str, Any]]:
    request = {"kind": "read", "intention": "read", "path": "a", "toolCallId": call_id}
    return [
        event("permission.requested", requestId="r", permissionRequest=request),
        event("permission.completed", requestId="r", result={"kind": kind, **more}),
    ]


def ended(**models: tuple[int, float | None]) -> dict[str, Any]:
    """Return the end of a session with the calls and the dollars of each model, and 10 tokens per call."""
    metrics = {
        name: {
            "requests": {"count": calls},
            "usage": {"inputTokens": 10 * calls, "outputTokens": calls, "cacheReadTokens": 0},
            **({} if cost is None else {"costUsd": cost}),
        }
        for name, (calls, cost) in models.items()
    }
    changes = {"linesAdded": 2, "linesRemoved": 1, "filesModified": ["/a"]}
    return event(
        "session.shutdown",
        shutdownType="routine",
        sessionStartTime=0,
        totalApiDurationMs=1,
        codeChanges=changes,
        modelMetrics=metrics,
    )


def calls_of(*events: dict[str, Any]) -> list[Call]:
    return build_transcript("s", [prompt("go"), *events]).calls


@pytest.mark.parametrize(
    ("complete", "status", "note"),
    [
        ({"success": True, "result": {"content": "one\ntwo"}}, "done", "2 lines"),
        ({"success": True, "result": {"content": "x\n<exited with exit code 0>"}}, "done", "1 line"),
        ({"success": True, "result": {"content": "x\n<exited with exit code 3>"}}, "failed", "exit code 3, 1 line"),
        ({"success": False, "error": {"message": "no", "code": "failure"}}, "failed", "failed"),
        ({"success": False, "error": {"message": "no", "code": "denied"}}, "denied", "denied"),
        ({"success": False, "error": {"message": INTERRUPTED_CALL}}, "cancelled", "cancelled"),
        ({}, "unfinished", ""),
    ],
)
def test_a_call_has_its_status_and_a_note(complete: dict[str, Any], status: str, note: str) -> None:
    (made,) = calls_of(*call("bash", "1", {"command": "make"}, **complete))

    assert (made.status, made.note, made.seconds) == (status, note, 4.0 if complete else None)


def test_a_change_of_a_file_is_a_diff_with_counts() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"
    done = {"success": True, "result": {"content": "ok", "detailedContent": diff}}
    (made,) = calls_of(*call("edit", "1", {"path": "x"}, **done))

    assert (made.diff, made.note, made.output) == (diff, "+1 -1", "")


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        ("approved", {}, "approved once"),
        ("approved-for-session", {}, "approved for the session"),
        ("denied-interactively-by-user", {"feedback": "use less"}, "denied by the user: use less"),
        ("something-new", {}, "something new"),
    ],
)
def test_a_call_says_who_has_decided_and_how(kind: str, more: dict[str, Any], words: str) -> None:
    (made,) = calls_of(*call("view", "1", {}), *decision("1", kind, **more))

    assert made.approval == words


def test_turns_begin_with_prompts_of_the_user_only() -> None:
    ran = '\n\n<user_command line="ls">\na\n</user_command>'
    transcript = build_transcript(
        "s",
        [
            event("session.model_change", newModel="m2"),
            prompt(f"fix it{ran}", attachments=[{"type": "file", "path": "/a"}]),
            prompt("from a hook", source="hook"),
            answer("half", interrupted=True),
            event("abort", reason="user_initiated"),
            prompt("go on"),
            event("session.error", errorType="query", message="Execution failed: HTTP 500"),
        ],
    )
    before, first, second = transcript.turns

    assert (before.prompt, before.items) == (None, [Note("model: m2")])
    assert (first.prompt, first.attached, first.commands) == ("fix it", ["/a"], ["ls"])
    assert [type(item) for item in first.items] == [Answer, Note]
    assert isinstance(first.items[0], Answer)
    assert first.items[0].interrupted
    assert (second.prompt, second.items) == ("go on", [Note("HTTP 500", "error")])
    assert (transcript.title, transcript.prompts) == ("fix it", 2)


def test_usage_is_the_sum_of_all_times_that_the_session_was_open_unless_it_is_given() -> None:
    first = [prompt("a"), answer("b"), ended(m=(2, 0.5), n=(1, None))]
    events = [*first, prompt("c"), answer("d"), ended(m=(1, 0.25))]
    transcript = build_transcript("s", events)

    assert {name: (used.calls, used.input_tokens, used.dollars) for name, used in transcript.usage.items()} == {
        "m": (3, 30, 0.75),
        "n": (1, 10, None),
    }
    assert build_transcript("s", events, usage={"m": Usage(7)}).usage == {"m": Usage(7)}


def test_damaged_events_are_left_out() -> None:
    damaged: list[dict[str, Any]] = [
        {},
        {"type": "user.message"},
        {"type": "tool.execution_complete", "timestamp": 5, "data": {"toolCallId": "?", "success": True}},
        {"type": "session.shutdown", "data": {"modelMetrics": {"m": {"requests": 3}}, "codeChanges": {}}},
        {**prompt("still here"), "timestamp": "yesterday", "agentId": 7},
        *call("bash", "1", None, success=True),
    ]
    transcript = build_transcript("s", damaged)

    assert [turn.prompt for turn in transcript.turns] == ["still here"]
    assert (as_markdown(transcript), as_html(transcript)) != ("", "")


class Tags(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")


def hostile_page() -> str:
    diff = {"content": "", "detailedContent": f"--- a\n+++ b\n+{HOSTILE}"}
    link = "[a](javascript:alert(1)) [b](data:text/html,x) [c](https://example.com) ![d](https://example.com/d.png)"
    return as_html(
        build_transcript(
            "s",
            [
                prompt(HOSTILE, attachments=[{"type": "file", "path": HOSTILE}]),
                event("assistant.reasoning", reasoningId="r", content=HOSTILE),
                *call(HOSTILE, "1", {HOSTILE: HOSTILE}, success=True, result={"content": HOSTILE}),
                *decision("1", "denied-interactively-by-user", feedback=HOSTILE),
                *call("edit", "2", {}, success=True, result=diff),
                answer(f"{HOSTILE}\n\n```\n{HOSTILE}\n```\n\n{link}"),
                event("session.warning", warningType="w", message=HOSTILE),
                ended(**{HOSTILE: (1, None)}),
            ],
            folder=HOSTILE,
        )
    )


def test_the_page_runs_and_loads_nothing_whatever_a_session_contains() -> None:
    page = Tags(hostile_page())

    assert page.tags.isdisjoint({"script", "img", "iframe", "link", "object", "form", "base"})
    assert not {name for name in page.attributes if name.startswith("on") or name in ("src", "style")}
    assert page.attributes["href"] == {"https://example.com", "https://example.com/d.png"}
    assert any("default-src 'none'" in value for value in page.attributes["content"])


def test_the_page_is_one_file_for_all_sizes_and_both_colour_schemes() -> None:
    page = hostile_page()

    assert "url(" not in page
    assert "@import" not in page
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page


def test_invisible_characters_in_a_command_are_shown() -> None:
    page = as_html(build_transcript("s", [prompt("x"), *call("bash", "1", {"command": "rm \u202efoo"})]))

    assert "rm &lt;U+202E&gt;foo" in page


def test_output_cannot_leave_its_fence_in_markdown() -> None:
    done = {"success": True, "result": {"content": "```\n# not a heading\n````\n"}}
    made = call("bash`", "1", {"command": "a``b"}, **done)
    text = as_markdown(build_transcript("s", [prompt("# no\n> heading"), *made]))

    assert re.findall(r"^#+ .*", re.sub(r"(?ms)^(`{5})text\n.*?^\1$", "", text), re.MULTILINE) == [
        "# \\# no \\> heading",
        f"## {re.findall('^## (.*)', text, re.MULTILINE)[0]}",
    ]
    assert "> # no\n> > heading" in text
    assert "```a``b```" in text


def test_an_exported_answer_runs_nothing_and_keeps_its_code() -> None:
    tag = "<script>alert(1)</script>"
    hidden = (
        *(
            tag,
            f"- a\n  ```\n{tag}",
            f"- ```\n  x\n  ```\n  {tag}",
            f"   ```\n     ```\n```\n{tag}",
            f"\\`{tag}\\`",
        ),
        *(
            f"`foo\n` {tag} `",
            f"- `\n- {tag} ` x `",
            f"- x `\n- y `\nz ` {tag} `",
            f"> ```\n{tag}",
            f"[a]:\n```\n\n{tag}",
        ),
        *(
            f"<!--\n```\n-->\n{tag}",
            f"~~~\n~~~ x\n~~~\n{tag}",
            f"p\n    ```\n    {tag}",
            f"| a | b |\n|-|-|\n| ` | {tag} ` |",
        ),
    )
    with all_cases() as case:
        for text in hidden:
            with case(text):
                assert "<script" not in MarkdownIt("commonmark").enable("table").render(plain_markdown(text))
    for same in ("a < b and `List<String>`", "1. so:\n   ```html\n   <b>\n   ```\n2. next `<i>`"):
        assert plain_markdown(same) == same


def test_times_are_seen_from_now() -> None:
    now = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
    expected = {
        "2026-11-29T11:59:31Z": "just now",
        "2026-11-29T11:55:00Z": "5 min ago",
        "2026-11-29T09:10:00+00:00": "2 h ago",
        "2026-11-28T11:00:00Z": "1 day ago",
        "2026-11-23T11:00:00Z": "6 days ago",
        "2026-11-22T11:59:00Z": "2026-11-22",
        "2026-12-01T11:59:00Z": "2026-12-01",
        "soon": "soon",
    }
    assert {time: time_ago(time, now) for time in expected} == expected
