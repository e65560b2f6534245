"""No approval, rule or mode lets through more than it says: a corpus of hostile lines and paths."""

from __future__ import annotations

import time
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from jumpseat.agent.permissions.approvals import ApprovalRecord, approval_record, narrowest_approval
from jumpseat.agent.permissions.facts import PathScope, gather_facts
from jumpseat.agent.permissions.permissions import Permissions, Policy
from jumpseat.agent.permissions.questions import Verdict
from jumpseat.agent.permissions.rules import Rules, parse_rule
from jumpseat.agent.shell.syntax import parse_shell
from jumpseat.tools.builtin.bash import TOOL as BASH
from jumpseat.tools.builtin.bash import BashArgs
from jumpseat_protocol.permissions import (
    PermissionRequest,
    ReadPermission,
    SessionApproval,
    ShellPermission,
    UrlPermission,
    WritePermission,
)
from tests.agent.permissions import hostile
from tests.tools.session import permission, tool_session

pytestmark = pytest.mark.anyio

T = TypeVar("T")

COULD_NOT_ASK = "Permission denied and could not request permission from user"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "all" / "project"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for secret in (tmp_path / "outside" / "secret", folder.parent / "secret", folder / "f", folder / "run.sh"):
        secret.write_text("x")
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "out.txt").symlink_to(tmp_path / "outside" / "secret")
    (folder / "sub" / "up").symlink_to(folder.parent)
    return folder


def permissions(
    project: Path,
    *,
    rules: Mapping[str, Sequence[str]] | None = None,
    approvals: Sequence[ApprovalRecord] = (),
    allow_unasked: bool = False,
) -> Permissions:
    """The permissions of a session whose clients cannot be asked: what is not allowed beforehand is denied."""
    parsed = Rules(**{name: tuple(map(parse_rule, texts)) for name, texts in (rules or {}).items()})
    path_scope = PathScope(lambda: project, guarded=(project / "HOME",))
    policy = Policy(rules=lambda _cwd: (parsed, []))
    made = Permissions(lambda _event: None, lambda: False, lambda: allow_unasked, path_scope, policy)
    for one in approvals:
        run_alone(made.add_location_approval("/", one))
    return made


def run_alone(work: Coroutine[Any, Any, T]) -> T:
    """What comes of work that needs nobody's answer, and so no event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("somebody was waited for")


def decide(made: Permissions, request: PermissionRequest, tool: str = "bash") -> Verdict:
    """The verdict of a session that nobody is asked in."""
    return run_alone(made.decide(request, tool))


def shell(line: str) -> ShellPermission:
    """The request of the real tool."""
    request = BASH.permission(cast("Any", None), BashArgs.model_validate({"command": line}))
    assert isinstance(request, ShellPermission)
    return request


APPROVED = ApprovalRecord(
    SessionApproval(kind="commands", command_identifiers=list(hostile.APPROVED)), hosts=frozenset(["ok.example"])
)
RULES = {"allow": [*(f"shell({one})" for one in hostile.APPROVED), "url(ok.example)"]}


def test_the_corpus_is_large() -> None:
    assert len(set(hostile.LINES)) > 450


@pytest.mark.parametrize("line", hostile.LINES)
def test_no_hostile_line_passes_for_the_commands_that_were_approved(project: Path, line: str) -> None:
    assert decide(permissions(project, approvals=[APPROVED]), shell(line)).message == COULD_NOT_ASK


@pytest.mark.parametrize("line", hostile.LINES)
def test_no_hostile_line_passes_for_the_commands_that_rules_allow(project: Path, line: str) -> None:
    assert decide(permissions(project, rules=RULES), shell(line)).message == COULD_NOT_ASK


@pytest.mark.parametrize("line", hostile.HARMLESS)
def test_what_was_approved_is_not_asked_about_again(project: Path, line: str) -> None:
    assert decide(permissions(project, approvals=[APPROVED]), shell(line)).status == "allowed"
    assert decide(permissions(project, rules=RULES), shell(line)).status == "allowed"


@pytest.mark.parametrize("line", [*hostile.MENTIONS_RM, *hostile.HIDES_ITS_NAME])
def test_with_everything_allowed_a_forbidden_command_does_not_run(project: Path, line: str) -> None:
    for rules in ({"deny": ["shell(rm)"]}, {"ask": ["shell(rm)"]}):
        made = permissions(project, rules=rules, allow_unasked=True)
        assert decide(made, shell(line)).status == "denied"
        made.mode = "allow-all"
        assert decide(made, shell(line)).status == "denied"
        made = permissions(project, rules={**rules, "allow": ["shell", "tool(bash)"]})
        assert decide(made, shell(line)).status == "denied"


@pytest.mark.parametrize("line", hostile.MENTIONS_PUSH)
def test_a_word_that_only_the_shell_knows_may_be_the_forbidden_one(project: Path, line: str) -> None:
    made = permissions(project, rules={"deny": ["shell(git push)"]}, allow_unasked=True)
    made.mode = "allow-all"
    assert decide(made, shell(line)).status == "denied"


@pytest.mark.parametrize("line", ['git commit -m "$MSG"', "git log $X", 'git add "$f"', "git pull", "npm run push"])
def test_a_word_that_only_the_shell_knows_decides_nothing_behind_the_command(project: Path, line: str) -> None:
    made = permissions(project, rules={"deny": ["shell(git push)"]}, allow_unasked=True)
    assert decide(made, shell(line)).status == "allowed"


@pytest.mark.parametrize("line", hostile.OPENS_SECRET)
def test_with_everything_allowed_a_denied_file_is_not_read_by_a_command(tmp_path: Path, line: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "secret.txt").write_text("x")
    (tmp_path / "l").symlink_to("secret.txt")
    (tmp_path / "sub" / "d").symlink_to("..")
    made = permissions(tmp_path, rules={"deny": ["read(secret.txt)"]}, allow_unasked=True)
    made.mode = "allow-all"
    assert decide(made, shell(line)).status == "denied"


@pytest.mark.parametrize("line", hostile.NAMES_HOST)
def test_with_everything_allowed_a_denied_host_is_not_reached_by_a_command(project: Path, line: str) -> None:
    made = permissions(project, rules={"deny": ["url(evil.example)"]}, allow_unasked=True)
    made.mode = "allow-all"
    assert decide(made, shell(line)).status == "denied"


@pytest.mark.parametrize(("approved", "wider"), hostile.WIDER)
def test_an_approved_line_covers_itself_and_nothing_wider(tmp_path: Path, approved: str, wider: str) -> None:
    made, request = permissions(tmp_path), shell(approved)
    approval = narrowest_approval(request)
    kept = approval_record(approval, request, gather_facts(request, "bash", made.path_scope), None)
    assert kept is not None
    run_alone(made.add_location_approval("/", kept))
    assert decide(made, request).status == "allowed"
    assert decide(made, shell(wider)).message == COULD_NOT_ASK


@pytest.mark.parametrize("name", ["-L", "--files0-from=x", "+x", "@x"])
def test_a_file_that_is_named_like_an_option_makes_a_pattern_doubtful(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_text("")
    made = permissions(tmp_path, approvals=[APPROVED])
    assert decide(made, shell("sort *")).status == "allowed"
    (tmp_path / name).write_text("")
    assert decide(made, shell("sort *")).message == COULD_NOT_ASK
    assert decide(made, shell("sort ./*")).status == "allowed"


@pytest.mark.parametrize("line", [*hostile.HARMLESS, "python3 x.py", "sudo ls", "echo rm", "git rm x"])
def test_a_rule_against_one_command_does_not_stop_others(project: Path, line: str) -> None:
    made = permissions(project, rules={"deny": ["shell(rm)"]}, allow_unasked=True)
    assert decide(made, shell(line)).status == "allowed"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "../secret", "link/secret", "link", "out.txt", "sub/up/secret", "sub/up", "sub/../../secret",
        "link/../secret", "~/x", "/", "..", "sub/up/project/../secret", "/proc/self/root/etc/passwd",
        "/etc/../etc/passwd", "//etc/passwd", "x\0y", "\ud800",
    ],
)  # fmt: skip
def test_no_path_that_leads_out_passes_for_an_approval_of_its_kind(project: Path, path: str) -> None:
    given = str(project / Path(path)) if not path.startswith("~") else path
    for request in (
        ReadPermission(intention="", path=given),
        WritePermission(intention="", file_name=given, diff=""),
    ):
        kind = request.kind
        approval = ApprovalRecord(SessionApproval(kind=kind))
        assert decide(permissions(project, approvals=[approval]), request).status == "denied"
        assert decide(permissions(project, rules={"allow": [kind]}), request).status == "denied"
        assert decide(permissions(project, rules={"allow": [f"{kind}(sub)"]}), request).status == "denied"
        assert decide(permissions(project, rules={"allow": [f"{kind}(**)"]}), request).status == "denied"


@pytest.mark.parametrize(
    "path", [".git/config", ".git/hooks/pre-commit", ".jumpseat/config.toml", "sub/.git/x", ".GIT/config", "HOME/x"]
)
def test_what_decides_about_other_calls_is_written_by_nobody_unasked(project: Path, path: str) -> None:
    request = WritePermission(intention="", file_name=str(project / path), diff="")
    approval = ApprovalRecord(SessionApproval(kind="write"))
    assert decide(permissions(project, approvals=[approval]), request).status == "denied"
    assert decide(permissions(project, rules={"allow": ["write", "write(/**)"]}), request).status == "denied"


def test_a_link_that_is_made_later_is_followed_then(project: Path) -> None:
    made = permissions(project, approvals=[ApprovalRecord(SessionApproval(kind="write"))])
    request = WritePermission(intention="", file_name=str(project / "new" / "x"), diff="")
    assert decide(made, request).status == "allowed"
    (project / "new").symlink_to("/etc")
    assert decide(made, request).status == "denied"


@pytest.mark.parametrize(
    "path", ["secret", "./secret", "sub/../secret", "other", "SECRET", "secret/deep/x", "sub/link/x"]
)
def test_a_denied_path_is_denied_by_every_name(tmp_path: Path, path: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "other").symlink_to(tmp_path / "secret")
    (tmp_path / "sub" / "link").symlink_to(tmp_path / "secret")
    rules = {"deny": ["read(secret)"], "allow": ["read", "shell"]}
    made = permissions(tmp_path, rules=rules, allow_unasked=True)
    assert "denied by a rule" in decide(made, ReadPermission(intention="", path=str(tmp_path / path))).message
    assert "denied by a rule" in decide(made, shell(f"cat '{path}'")).message


@pytest.mark.parametrize(
    "line", ["grep -r x .", "cat *", "ls $X", "cat secr*", 'python3 -c "$X"', "cd $X && cat x"]
)
def test_who_may_come_by_a_denied_path_asks_first(tmp_path: Path, line: str) -> None:
    (tmp_path / "secret").mkdir()
    made = permissions(tmp_path, rules={"deny": ["read(secret/**)"], "allow": ["shell"]}, allow_unasked=True)
    assert decide(made, shell(line)).status == "denied"
    assert decide(made, ReadPermission(intention="", path=str(tmp_path)), "grep").message == COULD_NOT_ASK


@pytest.mark.parametrize(
    "url",
    [
        "http://evil.example", "http://ok.example.evil.example", "http://ok.example@evil.example",
        "http://evil.example#ok.example",
        "http://evil.example\\@ok.example", "http://okexample", "http://x.ok.example", "http://[::1]", "http://",
        "ok.example\n.evil",
        "http://ok.example:80@evil.example/", "//evil.example",
    ],
)  # fmt: skip
def test_no_url_passes_for_a_host_that_is_allowed(project: Path, url: str) -> None:
    request = UrlPermission(intention="", url=url)
    assert decide(permissions(project, rules={"allow": ["url(ok.example)"]}), request).status == "denied"
    assert decide(
        permissions(project, approvals=[ApprovalRecord(hosts=frozenset(["ok.example"]))]), request
    ).status == ("denied")


@pytest.mark.parametrize(
    "url", ["http://ok.example", "https://OK.example./x", "ok.example", "http://ok.example:8080/"]
)
def test_a_host_is_known_by_every_spelling(project: Path, url: str) -> None:
    request = UrlPermission(intention="", url=url)
    assert decide(permissions(project, rules={"allow": ["url(ok.example)"]}), request).status == "allowed"
    made = permissions(project, rules={"deny": ["url(ok.example)"]}, allow_unasked=True)
    assert decide(made, request).status == "denied"
    assert decide(made, UrlPermission(intention="", url="http://sub.ok.example")).status == "denied"
    assert decide(made, shell("curl -s http://a.OK.example")).status == "denied"


async def test_input_for_a_running_program_is_never_a_command_that_was_approved(project: Path) -> None:
    async with tool_session(project) as ctx:
        request = permission(ctx, "write_bash", shellId="0", input="ls")
    assert request is not None
    made = permissions(project, approvals=[APPROVED], rules=RULES)
    assert (await made.decide(request, "write_bash")).message == COULD_NOT_ASK


@pytest.mark.parametrize(
    "line",
    ["(", '"$(', "$", "<<a ", "`", "a|", "$(a ", "a ) ", "if a; ", "$((", "<", ">", "${a:-", "xargs ", "a() ",
     "\0", "[[ "],
)  # fmt: skip
def test_no_line_keeps_the_parser_busy(line: str) -> None:
    begun = time.process_time()
    assert not parse_shell(line * (1_000_000 // len(line))).certain
    parse_shell(line * (4096 // len(line)))
    # Without its bounds the parser takes many seconds of each.
    assert time.process_time() - begun < 3
