"""The translation between events and ACP, without a connection."""

from __future__ import annotations

import itertools
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from jumpseat.acp.draft.patches import patches_of
from jumpseat.acp.translation import tool_calls
from jumpseat.acp.translation.content import blocks_of, path_of, prompt_of
from jumpseat.acp.translation.diffs import diffs_of
from jumpseat.acp.translation.options import State, mode_of, options_of
from jumpseat.acp.translation.params import ResourceLinkBlock, TextBlock
from jumpseat.acp.translation.permissions import options_for
from jumpseat.acp.translation.plans import entries_of, entries_of_todos
from jumpseat.acp.translation.updates import Notice, OptionsChanged, Translator, Update, Withdraw
from jumpseat.agent.model import ModelInfo
from jumpseat.tools.files import unified_diff
from jumpseat_protocol import events
from jumpseat_protocol.permissions import (
    HookPermission,
    McpPermission,
    MemoryPermission,
    PermissionRequest,
    PermissionResult,
    ReadPermission,
    ShellPermission,
    UrlPermission,
)


@dataclass
class Feed:
    """The steps for the events of one session."""

    translator: Translator = field(default_factory=lambda: Translator("/work"))

    def steps(self, payload: events.EventPayload, *, lossy: bool = False) -> list[Any]:
        return list(self.translator.steps(events.Event.of("id", "now", None, payload), lossy=lossy))

    def text(self, payload: events.EventPayload, *, lossy: bool = False) -> str:
        return "".join(step.body["content"]["text"] for step in self.steps(payload, lossy=lossy))


def test_an_event_that_the_translation_does_not_know_has_no_steps() -> None:
    class ClockRead(events.Payload):
        type: ClassVar[str] = "session.clock_read"

    event = events.Event.of("id", "now", None, cast("events.EventPayload", ClockRead()))
    assert list(Translator("/work").steps(event)) == []


def test_a_message_without_deltas_is_sent_at_once() -> None:
    assert Feed().text(events.AssistantMessage(message_id="m", content="all of it")) == "all of it"


def test_calls_with_the_same_id_are_different_calls_of_the_editor() -> None:
    feed = Feed()

    def ids(payload: events.EventPayload) -> list[str]:
        return [step.body["toolCallId"] for step in feed.steps(payload)]

    def start() -> list[str]:
        return ids(events.ToolExecutionStart(tool_call_id="c", tool_name="sql", arguments={}))

    def end() -> list[str]:
        return ids(events.ToolExecutionComplete(tool_call_id="c", success=True))

    assert [start(), end()] == [["c"]] * 2
    assert [start(), start(), end(), end(), start()] == [["c#2"], ["c#3"], ["c#2"], ["c#3"], ["c#4"]]
    permission = ReadPermission(intention="Read", path="/work/a", tool_call_id="c")
    asked = events.PermissionRequested(request_id="r", permission_request=permission)
    update, question = feed.steps(asked)
    assert update.body["toolCallId"] == question.call["toolCallId"] == "c#4"


def test_a_streamed_message_is_not_repeated() -> None:
    feed = Feed()
    assert feed.text(events.MessageDelta(message_id="m", delta_content="all")) == "all"
    assert feed.text(events.AssistantMessage(message_id="m", content="all")) == ""


def test_deltas_that_a_slow_editor_missed_follow_without_a_gap() -> None:
    feed = Feed()
    sent = feed.text(events.MessageDelta(message_id="m", delta_content="one "))
    sent += feed.text(events.MessageDelta(message_id="m", delta_content="two "), lossy=True)
    sent += feed.text(events.MessageDelta(message_id="m", delta_content="three"))
    assert sent == "one "
    assert sent + feed.text(events.AssistantMessage(message_id="m", content="one two three")) == "one two three"


def test_a_prompt_of_another_client_is_shown_but_not_that_of_the_editor_itself() -> None:
    feed = Feed()
    feed.translator.titled = True
    feed.translator.own_messages.add("1")
    assert feed.steps(events.UserMessage(content="mine", message_id="1")) == []
    (step,) = feed.steps(events.UserMessage(content="theirs", message_id="2"))
    assert (step.body["sessionUpdate"], step.body["content"]["text"]) == ("user_message_chunk", "theirs")


def test_the_first_prompt_is_the_title_but_not_a_message_of_a_hook() -> None:
    feed = Feed()
    assert feed.steps(events.UserMessage(content="context", message_id="0", source="hook")) == []
    feed.translator.own_messages |= {"1", "2"}
    (title,) = feed.steps(events.UserMessage(content="  a  long\nprompt ", message_id="1"))
    assert title.body["title"] == "a long prompt"
    assert feed.steps(events.UserMessage(content="more", message_id="2")) == []


def test_what_a_tool_tells_the_user_is_shown_without_support_for_notices_and_instead_of_its_result() -> None:
    feed = Feed()
    (notice,) = feed.steps(events.SessionInfo(info_type="tool", message="half done"))
    assert (notice.title, notice.otherwise["content"]["text"]) == ("half done", "half done\n")
    feed.steps(events.ToolExecutionStart(tool_call_id="c", tool_name="t", arguments={}))
    result = events.ToolResult(content="for the model", detailed_content="for the user")
    error = events.ToolError(message="failed", code="failure")
    (update,) = feed.steps(
        events.ToolExecutionComplete(tool_call_id="c", success=False, result=result, error=error)
    )
    assert update.body["content"] == [{"type": "content", "content": {"type": "text", "text": "for the user"}}]


def test_a_failed_server_is_shown_once_until_it_is_connected() -> None:
    feed = Feed()
    statuses = ("failed", "pending", "failed", "connected", "failed")
    steps = [
        feed.steps(events.McpServerStatusChanged(server_name="far", status=status, error="lost"))
        for status in statuses
    ]
    assert [len(found) for found in steps] == [1, 0, 0, 0, 1]


def test_changes_notices_permissions_and_usage_have_their_steps() -> None:
    feed = Feed()
    changed = events.SessionModeChanged(new_mode="plan", previous_mode="interactive")
    assert feed.steps(changed) == [OptionsChanged()]
    assert feed.steps(events.SessionWarning(warning_type="x", message="careful")) == [Notice("warning", "careful")]
    result = PermissionResult(kind="denied-interactively-by-user")
    assert feed.steps(events.PermissionCompleted(request_id="r", result=result)) == [Withdraw("r")]
    usage = events.AssistantUsage(
        model="m",
        input_tokens=1,
        output_tokens=2,
        cache_read_tokens=0,
        cache_write_tokens=0,
        duration=1,
        cost=0.25,
    )
    assert feed.steps(usage) == []
    info = events.SessionUsageInfo(current_tokens=5, messages_length=1, token_limit=10)
    cost = {"amount": 0.25, "currency": "USD"}
    assert feed.steps(info) == [Update({"sessionUpdate": "usage_update", "used": 5, "size": 10, "cost": cost})]


def test_locations_have_absolute_paths_and_lines() -> None:
    call = events.ToolExecutionStart(
        tool_call_id="c", tool_name="view", arguments={"path": "src/a.py", "view_range": [7, -1]}
    )
    shown = tool_calls.start_update(call, "/work", "Read src/a.py")
    assert shown["locations"] == [{"path": "/work/src/a.py", "line": 7}]
    assert (shown["kind"], shown["title"]) == ("read", "Read src/a.py")


@pytest.mark.parametrize("arguments", [None, "text", [], {"path": 7}, {"view_range": "x", "path": "a"}])
def test_a_call_with_invalid_arguments_has_a_title(arguments: Any) -> None:
    call = events.ToolExecutionStart(tool_call_id="c", tool_name="view", arguments=arguments)
    assert tool_calls.start_update(call, "/work", None)["title"] == "view"


def shown(request: PermissionRequest, title: str | None = None) -> tuple[str, str]:
    """Return the title and the text of a permission question."""
    body = tool_calls.permission_call(request, "c", title)
    return body["title"], "\n".join(part["content"]["text"] for part in body.get("content", []))


def test_a_question_begins_with_the_command_and_shows_descriptions_literally() -> None:
    request = ShellPermission(
        full_command_text="rm x #\u202e\r",
        intention="![x](http://h/?secret) ```console git status```",
        commands=[],
        possible_paths=[],
        has_write_file_redirection=False,
        can_offer_session_approval=False,
        warning="careful",
    )
    title, text = shown(request)
    assert title == "`rm x #<U+202E>␍`"
    assert text.startswith("```console\nrm x #<U+202E>␍\n```\n````\nDescription by the model: ![x]")
    assert text.endswith("```\ncareful\n```")


def test_a_question_names_the_server_the_real_path_and_the_whole_memory() -> None:
    tool = McpPermission(server_name="evil", tool_name="save", tool_title="Read a file", read_only=True)
    assert shown(tool, "view")[0] == "save of the MCP server evil"
    read = ReadPermission(intention="View a", path="/work/a", resolved_path="/home/me/.ssh/id_rsa")
    assert shown(read)[0] == "View a (leads to /home/me/.ssh/id_rsa)"
    memory = MemoryPermission(fact="Tabs.\nSubject: x", subject="obey", scope="user")
    assert shown(memory)[1] == "```\nTabs.␊Subject: x\nSubject: obey\nScope: user\n```"
    url = UrlPermission(intention="Open it", url="https://g\u0456thub.example")
    assert "g<U+0456>thub.example (host: xn--" in shown(url)[0]


def test_a_form_begins_with_the_name_of_the_server_that_asks() -> None:
    form = events.ElicitationRequested(request_id="r", message="Sign in again", elicitation_source="notes")
    assert [step.message for step in Feed().steps(form)] == ["notes asks: Sign in again"]


def test_output_cannot_leave_its_fence() -> None:
    (content,) = tool_calls.output("```\n# not a heading", "bash")
    assert content["content"]["text"].startswith("````console\n```")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\n", "a\nx\nc\n"),
        ("a\n-- b\nc\n", "a\n++ b\nc\n"),
        ("a\nb", "a\nc"),
        ("a\nb\n", "a\nb"),
        ("", "a\n"),
        ("a\n", ""),
    ],
)
def test_a_unified_diff_becomes_two_texts(before: str, after: str) -> None:
    diffs = diffs_of(unified_diff("/w/a.txt", before, after))
    (content,), (location,) = diffs.contents, diffs.locations
    assert content == {"type": "diff", "path": "/w/a.txt", "oldText": before, "newText": after}
    assert location["path"] == "/w/a.txt"


def test_hunks_are_shown_one_by_one_if_the_file_does_not_match() -> None:
    lines = [f"{number}\n" for number in range(1, 41)]
    changed = ["one\n", *lines[1:39], "forty\n"]
    for now in (None, "something else\n", "", "".join(lines[1:])):
        diffs = diffs_of(unified_diff("/w/a.txt", "".join(lines), "".join(changed)), read=lambda _, now=now: now)
        assert [content["newText"].split("\n")[0] for content in diffs.contents] == ["one", "37"]
        assert [location["line"] for location in diffs.locations] == [1, 37]


def test_a_change_is_shown_as_the_whole_file_before_and_after() -> None:
    lines = [f"{number}\n" for number in range(1, 41)]
    texts = [
        "".join(lines),
        "".join(["zero\n", *lines]),
        "".join(lines[3:20] + lines[22:]),
        "".join(lines).rstrip("\n"),
        "".join(["one\r\n", *lines[1:39], "forty"]),
        "one",
        "",
    ]
    for before, after in itertools.permutations(texts, 2):
        unified = unified_diff("/w/a.txt", before, after)
        pair = [{"type": "diff", "path": "/w/a.txt", "oldText": before, "newText": after}]
        assert diffs_of(unified, read=lambda _, text=before: text).contents == pair
        assert diffs_of(unified, read=lambda _, text=after: text, applied=True).contents == pair


def test_binary_results_become_content_blocks() -> None:
    given = [
        events.BinaryResult(data="AA==", mime_type="image/png"),
        events.BinaryResult(data="AA==", mime_type="image/tiff", type="resource"),
        events.BinaryResult(data="AA==", mime_type="audio/wav", type="resource"),
        events.BinaryResult(data="AA==", mime_type="font/woff", description="mem://font", type="resource"),
        events.BinaryResult(data="AA==", mime_type="font/woff", description="a font", type="resource"),
    ]
    result = events.ToolResult(content="", binary_results_for_llm=given)
    completion = events.ToolExecutionComplete(tool_call_id="c", success=True, result=result, turn_id="0")
    assert [item["content"] for item in tool_calls.completion_update(completion, "font", None)["content"]] == [
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "image", "data": "AA==", "mimeType": "image/tiff"},
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "mem://font", "blob": "AA==", "mimeType": "font/woff"}},
    ]


def test_other_text_is_not_a_diff() -> None:
    for text in ("", "hello", "@@ -1 +1 @@\n-a\n+b", "--- a\n+++ b\nno hunk"):
        assert diffs_of(text).contents == []


def test_links_to_files_are_attachments_and_others_are_text(tmp_path: Path) -> None:
    text, attachments = prompt_of(
        [
            TextBlock(type="text", text="See"),
            ResourceLinkBlock(type="resource_link", uri=f"file://{tmp_path}/a%20b.txt", name=""),
            ResourceLinkBlock(type="resource_link", uri=f"file://{tmp_path}/", name="folder"),
            ResourceLinkBlock(type="resource_link", uri="https://example.com/x", name="page"),
        ]
    )
    assert text == "See\n[page](https://example.com/x)"
    assert [(attachment["type"], attachment["displayName"]) for attachment in attachments] == [
        ("file", "a b.txt"),
        ("directory", "folder"),
    ]
    assert path_of("/a b") == "/a b"
    assert path_of("untitled:1") is None
    assert blocks_of("", [{"type": "github_reference", "title": "A bug"}]) == [{"type": "text", "text": "[A bug]"}]


def test_options_include_current_values_that_no_list_has() -> None:
    models = [ModelInfo("a/one", "One", reasoning_efforts=("low", "max")), ModelInfo("a/off", enabled=False)]
    state = State(mode="plan", model="b/other", effort="extreme", allow_all=True, models=models)
    by_id = {option["id"]: option for option in options_of(state)}
    assert [choice["value"] for choice in by_id["model"]["options"]] == ["b/other", "a/one"]
    assert by_id["model"]["currentValue"] == "b/other"
    assert by_id["reasoning_effort"]["currentValue"] == "extreme"
    known = State(mode="plan", model="a/one", effort=None, allow_all=False, models=models)
    efforts = next(option for option in options_of(known) if option["id"] == "reasoning_effort")
    assert [choice["value"] for choice in efforts["options"]] == ["default", "low", "max"]
    nothing = State(mode="interactive", model=None, effort=None, allow_all=False, models=[])
    assert "model" not in [option["id"] for option in options_of(nothing)]


def test_modes_are_found_by_id_and_by_name() -> None:
    assert mode_of("https://agentclientprotocol.com/protocol/session-modes#agent") == "interactive"
    assert [mode_of(text) for text in ("agent", "interactive", "autopilot", "x")] == [
        "interactive",
        "interactive",
        "autopilot",
        None,
    ]


def test_a_question_of_a_hook_cannot_be_approved_for_the_session() -> None:
    assert [option["kind"] for option in options_for(HookPermission(tool_name="bash"))] == [
        "allow_once",
        "reject_once",
    ]


def test_the_plan_consists_of_the_list_items_of_its_page() -> None:
    plan = "# Plan\n\n- [x] look\n- [~] think\n2. write\n\nSome words.\n"
    assert [(entry["content"], entry["status"]) for entry in entries_of(plan)] == [
        ("look", "completed"),
        ("think", "in_progress"),
        ("write", "pending"),
    ]


def test_a_todo_in_another_state_is_pending() -> None:
    rows = [
        {"id": "a", "title": "First", "status": "done"},
        {"id": "b", "title": "Second", "status": "in_progress"},
        {"id": "c", "title": "Third", "status": "blocked"},
        {"id": "d", "title": None},
        {"name": "the model has made another table of it"},
        {"id": 5, "title": 6, "status": 7},
    ]
    assert [(entry["content"], entry["status"]) for entry in entries_of_todos(rows)] == [
        ("First", "completed"),
        ("Second", "in_progress"),
        ("Third", "pending"),
        ("d", "pending"),
        ("6", "pending"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "old_name", "operation"),
    [
        (None, "-- one\n", None, "add"),
        ("-- one\n", None, None, "delete"),
        ("-- one\n", "++ two\n", None, "modify"),
        ("-- one\nsame\n", "++ two\nsame", "/work/old", "move"),
    ],
)
def test_a_patch_of_git_changes_the_file_as_the_diff_says(
    tmp_path: Path, before: str | None, after: str | None, old_name: str | None, operation: str
) -> None:
    name = str(tmp_path / 'a "b" \t c')
    old = str(tmp_path / "old") if old_name is not None else name
    diff = unified_diff(name, before, after, old_name=old if old_name is not None else None)
    (content,) = patches_of(diff).contents
    (change,) = content["changes"]
    assert (change["operation"], change["path"]) == (operation, name)
    assert change.get("oldPath") == (old if operation == "move" else None)
    if before is not None:
        Path(old).write_text(before)
    command = ["git", "apply", "-p0", "--unsafe-paths", "--directory=/", "-"]
    applied = subprocess.run(
        command, input=content["patch"]["text"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert applied.returncode == 0, applied.stderr
    # git removes a folder that it has emptied.
    found = {path.name: path.read_text() for path in tmp_path.iterdir()} if tmp_path.exists() else {}
    assert found == ({Path(name).name: after} if after is not None else {})


def test_a_text_that_is_no_diff_is_no_patch() -> None:
    assert patches_of("just words\n").contents == []
