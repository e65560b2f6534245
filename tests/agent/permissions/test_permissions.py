"""Permission decisions: their verdicts, lasting approvals, and calls that nobody can be asked about."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from jumpseat.agent.permissions.paths import PathScope
from jumpseat.agent.permissions.permissions import ApprovalLimits, Permissions
from jumpseat.agent.permissions.questions import (
    ALLOWED,
    ALLOWED_INSIDE,
    CANCELLED,
    COULD_NOT_ASK,
    Verdict,
    verdict_of,
)
from jumpseat_protocol import events
from jumpseat_protocol.limits import MAX_PATH_CHARS
from jumpseat_protocol.permissions import (
    CustomToolPermission,
    McpPermission,
    PermissionDecision,
    PermissionRequest,
    PermissionResult,
    ReadPermission,
    ShellCommand,
    ShellPermission,
    UrlPermission,
    WritePermission,
)
from jumpseat_protocol.wire import to_wire
from tests.support.limits import WAIT_S
from tests.tools.session import permission, tool_session

pytestmark = pytest.mark.anyio

READ = ReadPermission(intention="Read", path="/a", tool_call_id="c1")
WRITE = WritePermission(intention="Write", file_name="/a", diff="")
ASK = CustomToolPermission(tool_name="ask", tool_description="Ask", args={"q": 1})
REJECTED = "The user rejected this tool call."
BY_RULE = "Permission denied by a rule"


class Scene:
    """The permissions of a session with a client that can be asked; ``published`` are the events."""

    def __init__(self, *, asks: bool = True, allow_unasked: bool = False) -> None:
        self.published: list[events.EventPayload] = []
        self.permissions = Permissions(self.published.append, lambda: asks, lambda _request: allow_unasked)

    async def judge(self, request: PermissionRequest, decision: dict[str, Any] | None = None) -> Verdict:
        """Return the verdict on ``request``; if a question is expected, answer it with ``decision``."""
        with anyio.fail_after(WAIT_S):
            if decision is None:
                return await self.permissions.decide(request)
            async with self.ask(request) as (asked, verdicts):
                self.answer(asked, decision)
        return verdicts[0]

    @asynccontextmanager
    async def ask(
        self, request: PermissionRequest
    ) -> AsyncGenerator[tuple[events.PermissionRequested, list[Verdict]], None]:
        """Ask about ``request``. The list contains the verdict after the block."""
        verdicts: list[Verdict] = []

        async def decide() -> None:
            verdicts.append(await self.permissions.decide(request))

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(decide)
                await anyio.wait_all_tasks_blocked()
                asked = self.published[-1]
                assert isinstance(asked, events.PermissionRequested)
                yield asked, verdicts

    def answer(self, request: events.PermissionRequested, decision: dict[str, Any]) -> bool:
        return self.permissions.questions.pending.answer(
            request.request_id, PermissionDecision.model_validate(decision)
        )


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def shell(cwd: Path, command: str) -> ShellPermission:
    """Return the permission request of the built-in tool for a command line."""
    async with tool_session(cwd) as ctx:
        return cast("ShellPermission", permission(ctx, "bash", command=command, description="x"))


@pytest.mark.parametrize(
    ("kind", "completed", "verdict"),
    [
        ("approve-once", "approved", ALLOWED),
        ("approve-for-session", "approved-for-session", ALLOWED),
        ("approve-for-location", "approved-for-location", ALLOWED),
        ("approve-permanently", "approved", ALLOWED),
        ("approved", "approved", ALLOWED),
        ("approved-for-session", "approved-for-session", ALLOWED),
        ("approved-for-location", "approved-for-location", ALLOWED),
        ("reject", "denied-interactively-by-user", Verdict("rejected", REJECTED)),
        ("denied-interactively-by-user", "denied-interactively-by-user", Verdict("rejected", REJECTED)),
        (
            "user-not-available",
            "denied-no-approval-rule-and-could-not-request-from-user",
            Verdict("denied", COULD_NOT_ASK),
        ),
        (
            "denied-no-approval-rule-and-could-not-request-from-user",
            "denied-no-approval-rule-and-could-not-request-from-user",
            Verdict("denied", COULD_NOT_ASK),
        ),
        ("denied-by-permission-request-hook", "denied-by-permission-request-hook", Verdict("denied", BY_RULE)),
        ("cancelled", "cancelled", Verdict("denied", "Permission request cancelled", cancelled=True)),
    ],
)
async def test_each_decision_has_a_completed_kind_and_a_verdict(
    scene: Scene, kind: str, completed: str, verdict: Verdict
) -> None:
    assert await scene.judge(READ, {"kind": kind}) == verdict

    (asked, answered) = scene.published
    assert isinstance(asked, events.PermissionRequested)
    assert asked == events.PermissionRequested(request_id=asked.request_id, permission_request=READ)
    # The SDKs require an approval for the session to say what it approves.
    approval = {"kind": "read"} if completed in ("approved-for-session", "approved-for-location") else None
    location = str(Path.cwd()) if completed == "approved-for-location" else None
    assert answered == events.PermissionCompleted(
        request_id=asked.request_id,
        tool_call_id="c1",
        result=PermissionResult(kind=completed, approval=approval, location_key=location),
    )


@pytest.mark.parametrize(
    ("decision", "published", "verdict"),
    [
        (
            {"kind": "denied-by-rules", "rules": [{"kind": "shell", "argument": "rm"}, {"kind": "write"}]},
            {"rules": [{"kind": "shell", "argument": "rm"}, {"kind": "write", "argument": None}]},
            Verdict("denied", f"{BY_RULE}: shell(rm)"),
        ),
        ({"kind": "denied-by-rules"}, {"rules": []}, Verdict("denied", BY_RULE)),
        (
            {"kind": "denied-by-content-exclusion-policy", "path": "/a", "message": "It is excluded."},
            {"path": "/a", "message": "It is excluded."},
            Verdict("denied", f"{BY_RULE}: It is excluded."),
        ),
        (
            {"kind": "denied-by-content-exclusion-policy"},
            {"path": "", "message": ""},
            Verdict("denied", BY_RULE),
        ),
        (
            {"kind": "denied-by-permission-request-hook", "message": "No.", "interrupt": True},
            {"message": "No.", "interrupt": True},
            Verdict("rejected", f"{BY_RULE}: No."),
        ),
        ({"kind": "cancelled", "reason": "gone"}, {"reason": "gone"}, None),
        (
            {"kind": "denied-interactively-by-user", "feedback": "no", "forceReject": True},
            {"feedback": "no", "forceReject": True},
            Verdict("denied", f"{REJECTED} User feedback: no"),
        ),
    ],
)
async def test_a_denial_keeps_the_fields_of_its_kind(
    scene: Scene, decision: dict[str, Any], published: dict[str, Any], verdict: Verdict | None
) -> None:
    assert await scene.judge(READ, decision) == (verdict or verdict_of(CANCELLED))
    assert to_wire(cast("events.PermissionCompleted", scene.published[-1]).result) == {
        "kind": decision["kind"],
        **published,
    }


async def test_a_sandbox_replaces_no_person_that_a_tool_requires(scene: Scene, tmp_path: Path) -> None:
    confined = replace(await shell(tmp_path, "make"), sandboxed=True)
    scene.permissions.set_mode("sandboxed")
    assert await scene.judge(confined) == ALLOWED_INSIDE

    alone = Scene(asks=False)
    alone.permissions.set_mode("sandboxed")
    verdict = await alone.permissions.decide(confined, "deploy", ApprovalLimits(needs_person=True))
    assert verdict.status == "denied"


async def test_a_read_approval_for_a_folder_covers_file_tools_only(scene: Scene, tmp_path: Path) -> None:
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
    (tmp_path / "open" / "out").symlink_to(tmp_path / "closed")
    decision = {"kind": "approve-read-only-for-session", "directories": [str(tmp_path / "open")]}

    def read(path: str) -> ReadPermission:
        return ReadPermission(intention="Read", path=str(tmp_path / path))

    assert await scene.judge(read("open/a"), decision) == ALLOWED
    assert to_wire(cast("events.PermissionCompleted", scene.published[-1]).result) == {
        "kind": "approved-read-only-for-session",
        "directories": [str(tmp_path / "open")],
    }
    assert await scene.judge(read("open/sub/b")) == ALLOWED
    for other in (
        read("closed/a"),
        read("open/out/a"),
        read("opened"),
        WritePermission(intention="Write", file_name=str(tmp_path / "open" / "a"), diff=""),
        await shell(tmp_path, f"cat {tmp_path}/open/a"),
    ):
        assert (await scene.judge(other, {"kind": "reject"})).status == "rejected"
    scene.permissions.approvals.reset()
    assert (await scene.judge(read("open/a"), {"kind": "reject"})).status == "rejected"


async def test_the_request_shows_the_resolved_path(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    for request in (
        ReadPermission(intention="Read", path=str(tmp_path / "link" / "passwd")),
        WritePermission(intention="Write", file_name=str(tmp_path / "link" / "passwd"), diff=""),
        ReadPermission(intention="Read", path=f"{tmp_path}/../../../../../../../../etc/passwd"),
        ReadPermission(intention="Read", path=str(tmp_path / "plain")),
    ):
        async with scene.ask(request) as (asked, _):
            shown = to_wire(asked.permission_request)
            scene.answer(asked, {"kind": "reject"})
        assert shown.get("resolvedPath") == (None if "plain" in str(shown) else "/etc/passwd")


async def test_the_request_for_a_command_warns_of_targets_outside(scene: Scene, tmp_path: Path) -> None:
    scene.permissions.path_scope.primary = tmp_path
    (tmp_path / "link").symlink_to("/etc")
    for line in (f"cat {tmp_path}/link/passwd", f"cat {tmp_path}/a", "cat /etc/passwd"):
        async with scene.ask(await shell(tmp_path, line)) as (asked, _):
            shown = to_wire(asked.permission_request)
            scene.answer(asked, {"kind": "reject"})
        expected = "May reach outside of the session's folders: /etc/passwd" if "link" in line else None
        assert shown.get("warning") == expected


async def test_the_request_for_a_command_warns_of_characters_and_white_space_that_hide_a_part(
    scene: Scene, tmp_path: Path
) -> None:
    for line, expected in (
        ("git status", None),
        ("rm x #\u202esutats tig", "Contains characters that are invisible or imitate others: U+202E"),
        ("rm x #\rgit status", "Contains characters that are invisible or imitate others: U+000D"),
        (f"ls{' ' * 100}; rm x", "Long white space may push a part of the command out of sight"),
    ):
        async with scene.ask(await shell(tmp_path, line)) as (asked, _):
            shown = to_wire(asked.permission_request)
            scene.answer(asked, {"kind": "reject"})
        assert shown.get("warning") == expected
        assert shown["fullCommandText"] == line


async def test_a_description_by_the_model_or_a_server_is_one_visible_line(scene: Scene, tmp_path: Path) -> None:
    forged = "Show it\n\n  git status\n\x1b[2KRun this command?\u202e"
    described = await shell(tmp_path, "rm x")
    described.intention = forged
    tool = McpPermission(server_name="s", tool_name="t", tool_title=forged, read_only=False)
    for request in (described, tool, UrlPermission(intention=forged, url="https://a.example")):
        async with scene.ask(request) as (asked, _):
            shown = to_wire(asked.permission_request)
            scene.answer(asked, {"kind": "reject"})
        text = shown.get("intention") or shown["toolTitle"]
        assert text == "Show it git status ␛[2KRun this command?<U+202E>"


@pytest.mark.parametrize("kind", ["commands", "mcp", "custom-tool"])
def test_an_incomplete_approval_is_refused(kind: str) -> None:
    with pytest.raises(ValidationError, match="an approval of the kind"):
        PermissionDecision.model_validate({"kind": "approve-for-session", "approval": {"kind": kind}})


async def test_approval_for_the_session_becomes_one_for_this_call_if_nothing_wider_is_safe(scene: Scene) -> None:
    line = ShellPermission(
        full_command_text="echo $(date)",
        intention="Say it",
        commands=[ShellCommand(identifier="echo $(date)", read_only=False)],
        possible_paths=[],
        has_write_file_redirection=False,
        can_offer_session_approval=False,
    )
    assert await scene.judge(line, {"kind": "approve-for-session"}) == ALLOWED
    assert cast("events.PermissionCompleted", scene.published[-1]).result == PermissionResult(kind="approved")
    assert (await scene.judge(line, {"kind": "reject"})).status == "rejected"


async def test_feedback_and_approval_are_published_with_the_decision(scene: Scene) -> None:
    verdict = await scene.judge(READ, {"kind": "reject", "feedback": "use b"})

    assert verdict == Verdict("denied", "The user rejected this tool call. User feedback: use b")
    assert cast("events.PermissionCompleted", scene.published[-1]).result == PermissionResult(
        kind="denied-interactively-by-user", feedback="use b"
    )
    approval = {"kind": "read"}
    await scene.judge(READ, {"kind": "approve-for-location", "approval": approval, "locationKey": "/repo"})
    assert cast("events.PermissionCompleted", scene.published[-1]).result == PermissionResult(
        kind="approved-for-location", approval={"kind": "read"}, location_key="/repo"
    )


async def test_one_approval_allows_one_call(scene: Scene) -> None:
    await scene.judge(READ, {"kind": "approve-once"})

    assert await scene.judge(READ, {"kind": "user-not-available"}) == Verdict("denied", COULD_NOT_ASK)


@pytest.mark.parametrize(
    "kind", ["approve-for-session", "approve-for-location", "approved-for-session", "approved-for-location"]
)
@pytest.mark.parametrize("server_request", [READ, WRITE, ASK], ids=["read", "write", "custom-tool"])
async def test_an_approval_for_the_session_covers_later_calls_of_its_kind(
    scene: Scene, kind: str, server_request: PermissionRequest
) -> None:
    await scene.judge(server_request, {"kind": kind})
    published = len(scene.published)

    assert await scene.judge(server_request) == ALLOWED
    assert len(scene.published) == published
    for other in (READ, WRITE, ASK):
        if other is not server_request:
            assert (await scene.judge(other, {"kind": "reject"})).status == "rejected"


async def test_an_approved_client_tool_covers_no_other_client_tool(scene: Scene) -> None:
    await scene.judge(ASK, {"kind": "approve-for-session", "approval": {"kind": "custom-tool", "toolName": "ask"}})

    assert await scene.judge(CustomToolPermission(tool_name="ask", tool_description="other")) == ALLOWED
    other = CustomToolPermission(tool_name="asks", tool_description="Ask")
    assert (await scene.judge(other, {"kind": "reject"})).status == "rejected"


async def test_an_approved_command_covers_the_same_command_with_other_arguments_only(
    scene: Scene, tmp_path: Path
) -> None:
    first = await shell(tmp_path, "git status")
    await scene.judge(first, {"kind": "approve-for-session"})

    assert await scene.judge(await shell(tmp_path, "git status --short")) == ALLOWED
    for line in ("git push", "git", "gitstatus", "status"):
        assert (await scene.judge(await shell(tmp_path, line), {"kind": "reject"})).status == "rejected"


async def test_the_approval_that_the_client_sends_applies(scene: Scene, tmp_path: Path) -> None:
    approval = {"kind": "commands", "commandIdentifiers": ["git status", "git log"]}
    await scene.judge(await shell(tmp_path, "git diff"), {"kind": "approve-for-session", "approval": approval})

    assert await scene.judge(await shell(tmp_path, "git log -1")) == ALLOWED
    assert (await scene.judge(await shell(tmp_path, "git diff"), {"kind": "reject"})).status == "rejected"


@pytest.mark.parametrize(
    "line",
    [
        "git status && git status --short",
        "git status; git status",
        "git status | git status",
        "(git status)",
        "git status\ngit status",
        "if git status; then git status; fi",
    ],
)
async def test_a_compound_line_of_approved_commands_is_approved(scene: Scene, tmp_path: Path, line: str) -> None:
    scene.permissions.path_scope.primary = tmp_path
    await scene.judge(await shell(tmp_path, "git status"), {"kind": "approve-for-session"})

    assert await scene.judge(await shell(tmp_path, line)) == ALLOWED


@pytest.mark.parametrize(
    ("line", "wider"),
    [
        ("git add a && git commit -m x", "git add a"),
        ("git add a && git commit -m x", "git commit -m x"),
        ("git add a && git commit -m x", "git add a && git commit -m y"),
        ("git status $(git push)", "git push"),
        ("cd sub && make test", "make test"),
        ("cd sub && make test", "cd other && make test"),
        ("cat x | python3 -", "python3 -"),
        ("cat x | python3 -", "cat y | python3 -"),
    ],
)
async def test_an_approved_line_of_several_commands_covers_these_together_only(
    scene: Scene, tmp_path: Path, line: str, wider: str
) -> None:
    scene.permissions.path_scope.primary = tmp_path
    await scene.judge(await shell(tmp_path, line), {"kind": "approve-for-session"})

    assert await scene.judge(await shell(tmp_path, line)) == ALLOWED
    assert (await scene.judge(await shell(tmp_path, wider), {"kind": "reject"})).status == "rejected"


async def test_an_approved_pipe_to_commands_that_read_covers_other_arguments_of_each(
    scene: Scene, tmp_path: Path
) -> None:
    scene.permissions.path_scope.primary = tmp_path
    await scene.judge(await shell(tmp_path, "npm test 2>&1 | tail -20"), {"kind": "approve-for-session"})

    assert await scene.judge(await shell(tmp_path, "npm test | tail -5")) == ALLOWED
    assert await scene.judge(await shell(tmp_path, "npm test")) == ALLOWED


@pytest.mark.parametrize(
    "line",
    [
        "git status > out.txt",
        "(git status) > out.txt",
        "git status <<E\nx\nE",
        "for x in $(ls); do git status; done",
        "git status &&",
    ],
)
async def test_a_line_with_more_than_approved_commands_is_asked_about_each_time(
    scene: Scene, tmp_path: Path, line: str
) -> None:
    request = await shell(tmp_path, line)
    approval = {"kind": "commands", "commandIdentifiers": ["git status"]}
    await scene.judge(await shell(tmp_path, "git status"), {"kind": "approve-for-session"})
    await scene.judge(request, {"kind": "approve-for-session"})
    await scene.judge(request, {"kind": "approve-for-session", "approval": approval})

    assert (await scene.judge(request, {"kind": "reject"})).status == "rejected"


@pytest.mark.parametrize(
    "decision",
    [
        {"kind": "approve-for-session"},
        {"kind": "approve-for-session", "domain": "Site.Example"},
        {"kind": "approve-permanently", "domain": "site.example"},
        {"kind": "approve-for-location"},
    ],
)
async def test_an_approved_url_covers_its_host_only(scene: Scene, decision: dict[str, Any]) -> None:
    def fetch(url: str) -> UrlPermission:
        return UrlPermission(intention="Fetch", url=url)

    assert await scene.judge(fetch("https://SITE.example:8443/a"), decision) == ALLOWED
    results = [event.result.kind for event in scene.published if isinstance(event, events.PermissionCompleted)]
    # The protocol has no kind of approval for hosts.
    assert results == ["approved"]
    assert await scene.judge(fetch("http://site.example/b?c")) == ALLOWED
    for other in ("https://sub.site.example/", "https://site.example.evil/", "https://other.example/site.example"):
        assert (await scene.judge(fetch(other), {"kind": "reject"})).status == "rejected"
    scene.permissions.approvals.reset()
    assert (await scene.judge(fetch("https://site.example/"), {"kind": "reject"})).status == "rejected"


async def test_a_url_that_was_approved_once_is_asked_about_again(scene: Scene) -> None:
    request = UrlPermission(intention="Fetch", url="https://site.example/")
    assert await scene.judge(request, {"kind": "approve-once"}) == ALLOWED
    assert (await scene.judge(request, {"kind": "reject"})).status == "rejected"


async def test_an_approval_of_another_kind_does_not_cover_the_call(scene: Scene) -> None:
    await scene.judge(READ, {"kind": "approve-for-session", "approval": {"kind": "mcp", "serverName": "s"}})

    assert (await scene.judge(READ, {"kind": "reject"})).status == "rejected"


async def test_reset_drops_approvals(scene: Scene) -> None:
    await scene.judge(WRITE, {"kind": "approve-for-session"})
    scene.permissions.approvals.reset()

    assert (await scene.judge(WRITE, {"kind": "reject"})).status == "rejected"


async def test_allow_all_asks_nothing_until_it_is_switched_off(scene: Scene) -> None:
    scene.permissions.mode = "allow-all"

    assert [await scene.judge(request) for request in (READ, WRITE, ASK)] == [ALLOWED] * 3
    assert scene.published == []
    scene.permissions.mode = "manual"
    assert (await scene.judge(READ, {"kind": "reject"})).status == "rejected"


async def test_requests_in_flight_are_answered_in_any_order(scene: Scene) -> None:
    async with (
        scene.ask(READ) as (first, read),
        scene.ask(WRITE) as (second, wrote),
        scene.ask(ASK) as (third, ran),
    ):
        assert [request.question for request in scene.permissions.questions.pending.open()] == [READ, WRITE, ASK]
        assert scene.answer(third, {"kind": "reject"})
        assert scene.answer(first, {"kind": "approve-once"})
        assert scene.answer(second, {"kind": "user-not-available"})

    assert (read, wrote, ran) == ([ALLOWED], [Verdict("denied", COULD_NOT_ASK)], [Verdict("rejected", REJECTED)])
    assert scene.permissions.questions.pending.open() == []


async def test_the_first_answer_wins(scene: Scene) -> None:
    async with scene.ask(READ) as (asked, verdicts):
        assert scene.answer(asked, {"kind": "approve-once"})
        assert not scene.answer(asked, {"kind": "reject"})

    assert verdicts == [ALLOWED]
    assert not scene.answer(asked, {"kind": "reject"})
    assert [event.type for event in scene.published] == ["permission.requested", "permission.completed"]


async def test_an_answer_to_an_unknown_question_is_refused(scene: Scene) -> None:
    assert not scene.permissions.questions.pending.answer("nobody", CANCELLED)


async def test_without_a_handler_calls_are_denied_with_one_warning() -> None:
    scene = Scene(asks=False)

    assert [await scene.judge(request) for request in (READ, WRITE, ASK)] == [Verdict("denied", COULD_NOT_ASK)] * 3
    (warning,) = scene.published
    assert isinstance(warning, events.SessionWarning)
    assert warning.warning_type == "permission"
    assert "--yolo" in warning.message
    assert "permissions.allow_unasked" in warning.message


async def test_allow_unasked_applies_only_if_nobody_can_be_asked() -> None:
    unattended = Scene(asks=False, allow_unasked=True)
    attended = Scene(allow_unasked=True)

    assert await unattended.judge(READ) == ALLOWED
    assert unattended.published == []
    assert (await attended.judge(READ, {"kind": "reject"})).status == "rejected"


async def test_cancellation_closes_the_question(scene: Scene) -> None:
    with anyio.CancelScope() as scope:
        async with scene.ask(READ):
            scope.cancel()

    asked, completed = scene.published
    assert isinstance(asked, events.PermissionRequested)
    assert isinstance(completed, events.PermissionCompleted)
    assert (completed.request_id, completed.result.kind) == (asked.request_id, "cancelled")
    assert scene.permissions.questions.pending.open() == []
    assert not scene.answer(asked, {"kind": "approve-for-session"})


async def test_closing_all_questions_denies_their_calls(scene: Scene) -> None:
    async with scene.ask(READ) as (_, read), scene.ask(WRITE) as (_, wrote):
        scene.permissions.questions.pending.close_all(CANCELLED)

    assert read == wrote == [Verdict("denied", "Permission request cancelled", cancelled=True)]


async def test_a_question_that_cannot_be_published_does_not_stay_open() -> None:
    def refuse(_payload: events.EventPayload) -> None:
        raise OSError("disk full")

    permissions = Permissions(refuse, lambda: True, lambda _request: False)
    with pytest.raises(OSError, match="disk full"):
        await permissions.decide(READ)

    assert permissions.questions.pending.open() == []


def test_a_path_that_no_system_opens_is_not_resolved(tmp_path: Path) -> None:
    scope = PathScope(lambda: tmp_path)
    assert scope.resolve("/x" * MAX_PATH_CHARS) is None
    assert scope.resolve("x") is not None
