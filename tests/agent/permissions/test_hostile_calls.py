"""No approval, rule or mode allows more than it names: tests with a corpus of hostile lines and paths."""

from __future__ import annotations

import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from jumpseat.agent.permissions.approvals import ApprovalRecord, approval_record, narrowest_approval, parse_approval
from jumpseat.agent.permissions.facts import gather_facts
from jumpseat.agent.permissions.paths import PathScope
from jumpseat.agent.permissions.permissions import Permissions, Policy
from jumpseat.agent.permissions.questions import Verdict
from jumpseat.agent.permissions.rules import Rules, parse_rule
from jumpseat.agent.shell.syntax import parse_shell
from jumpseat.sandbox.obeyed_files import INSIDE, NAMES
from jumpseat.tools.shell.sandbox_needs import shell_permission
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

pytestmark = [pytest.mark.anyio, pytest.mark.thorough]

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
    (folder / "linked-rm").symlink_to("/bin/rm")
    (folder / "sub" / "up").symlink_to(folder.parent)
    return folder


def permissions(
    project: Path,
    *,
    rules: Mapping[str, Sequence[str]] | None = None,
    approvals: Sequence[ApprovalRecord] = (),
    allow_unasked: bool = False,
) -> Permissions:
    """Return the permissions of a session without clients to ask, which denies calls that are not allowed."""
    parsed = Rules(**{name: tuple(map(parse_rule, texts)) for name, texts in (rules or {}).items()})
    path_scope = PathScope(lambda: project, guarded=(project / "HOME",))
    policy = Policy(rules=lambda _cwd: (parsed, []))
    made = Permissions(lambda _event: None, lambda: False, lambda _request: allow_unasked, path_scope, policy)
    for approval in approvals:
        run_without_event_loop(made.approvals.add_for_location("/", approval))
    return made


def run_without_event_loop(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never has to wait."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the coroutine waits for something")


def decide(made: Permissions, request: PermissionRequest, tool: str = "bash") -> Verdict:
    """Return the verdict on a call in a session without clients to ask."""
    return run_without_event_loop(made.decide(request, tool))


def verdicts_except(expected: str, made: Permissions, lines: Iterable[str]) -> dict[str, Verdict]:
    """Return the verdicts on command lines with neither the expected status nor the expected message, by line."""
    verdicts = {line: decide(made, shell(line)) for line in lines}
    return {
        line: verdict for line, verdict in verdicts.items() if expected not in (verdict.status, verdict.message)
    }


def shell(line: str) -> ShellPermission:
    """Return the permission request of the built-in tool for a line."""
    return shell_permission(line, line)


APPROVED = ApprovalRecord(
    SessionApproval(kind="commands", command_identifiers=list(hostile.APPROVED)), hosts=frozenset(["ok.example"])
)
RULES = {"allow": [*(f"shell({command})" for command in hostile.APPROVED), "url(ok.example)"]}


def test_the_corpus_is_large() -> None:
    assert len(set(hostile.LINES)) > 450


@pytest.mark.thorough
def test_approved_commands_do_not_cover_a_hostile_line(project: Path) -> None:
    made = permissions(project, approvals=[APPROVED])
    assert verdicts_except(COULD_NOT_ASK, made, hostile.LINES) == {}


@pytest.mark.thorough
def test_allow_rules_do_not_cover_a_hostile_line(project: Path) -> None:
    assert verdicts_except(COULD_NOT_ASK, permissions(project, rules=RULES), hostile.LINES) == {}


def test_approvals_and_allow_rules_cover_harmless_lines(project: Path) -> None:
    for made in (permissions(project, approvals=[APPROVED]), permissions(project, rules=RULES)):
        assert verdicts_except("allowed", made, hostile.HARMLESS) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("action", ["deny", "ask"])
def test_a_denied_command_never_runs_unasked_even_if_everything_is_allowed(project: Path, action: str) -> None:
    lines = (*hostile.RUNS_RM, *hostile.MAY_RUN_ANYTHING)
    rules = {action: ["shell(rm)"]}
    unasked = permissions(project, rules=rules, allow_unasked=True)
    assert verdicts_except("denied", unasked, lines) == {}
    unasked.mode = "allow-all"
    assert verdicts_except("denied", unasked, lines) == {}
    ruled = permissions(project, rules={**rules, "allow": ["shell", "tool(bash)"]})
    assert verdicts_except("denied", ruled, lines) == {}


def test_a_word_that_the_shell_expands_may_be_the_denied_subcommand(project: Path) -> None:
    made = permissions(project, rules={"deny": ["shell(git push)"]}, allow_unasked=True)
    made.mode = "allow-all"
    assert verdicts_except("denied", made, hostile.MAY_PUSH) == {}


@pytest.mark.parametrize("line", ['git commit -m "$MSG"', "git log $X", 'git add "$f"', "git pull", "npm run push"])
def test_a_word_that_the_shell_expands_after_another_subcommand_does_not_matter(project: Path, line: str) -> None:
    made = permissions(project, rules={"deny": ["shell(git push)"]}, allow_unasked=True)
    assert decide(made, shell(line)).status == "allowed"


@pytest.mark.parametrize(
    ("denied", "line"),
    [
        ("eslint", "npx eslint ."), ("eslint", "yarn eslint --fix ."), ("eslint", "pnpm exec eslint ."),
        ("tsc", "pnpm tsc"), ("pytest", "python3 -m pytest -q"), ("pytest", "uv run pytest"),
        ("pytest", ".venv/bin/pytest"), ("gradlew", "./gradlew test"), ("git log", "git --no-pager log"),
        ("make", "make -j4 test"),
    ],
)  # fmt: skip
def test_a_denied_tool_is_denied_behind_programs_that_run_it(project: Path, denied: str, line: str) -> None:
    made = permissions(project, rules={"deny": [f"shell({denied})"]}, allow_unasked=True)
    made.mode = "allow-all"
    assert "denied by a rule" in decide(made, shell(line)).message


def test_no_command_reads_a_denied_file_even_if_everything_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "secret.txt").write_text("x")
    (tmp_path / "l").symlink_to("secret.txt")
    (tmp_path / "sub" / "d").symlink_to("..")
    made = permissions(tmp_path, rules={"deny": ["read(secret.txt)"]}, allow_unasked=True)
    made.mode = "allow-all"
    assert verdicts_except("denied", made, hostile.MAY_OPEN_SECRET) == {}


def test_no_command_reaches_a_denied_host_even_if_everything_is_allowed(project: Path) -> None:
    made = permissions(project, rules={"deny": ["url(evil.example)"]}, allow_unasked=True)
    made.mode = "allow-all"
    assert verdicts_except("denied", made, hostile.MAY_LOAD_FROM_HOST) == {}


@pytest.mark.thorough
def test_an_approved_line_covers_itself_and_nothing_wider(tmp_path: Path) -> None:
    wrong: dict[tuple[str, str], dict[str, Verdict]] = {}
    for approved, wider in hostile.WIDER:
        made, request = permissions(tmp_path), shell(approved)
        record = approval_record(
            narrowest_approval(request), request, gather_facts(request, "bash", made.path_scope), None
        )
        assert record is not None, approved
        run_without_event_loop(made.approvals.add_for_location("/", record))
        wrong[approved, wider] = verdicts_except("allowed", made, [approved]) | verdicts_except(
            COULD_NOT_ASK, made, [wider]
        )
    assert {case: verdicts for case, verdicts in wrong.items() if verdicts} == {}


@pytest.mark.parametrize(
    "line", ["./gradlew test", "./run.sh x", "bash run.sh", ".venv/bin/pytest -q", "cd sub && make test"]
)
def test_what_depends_on_the_folder_is_approved_for_that_folder(tmp_path: Path, line: str) -> None:
    request = shell(line)
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        (folder / ".venv" / "bin").mkdir(parents=True)
    scope = permissions(here).path_scope
    record = approval_record(narrowest_approval(request), request, gather_facts(request, "bash", scope), None)
    assert record is not None
    assert decide(permissions(here, approvals=[record]), request).status == "allowed"
    assert decide(permissions(there, approvals=[record]), request).message == COULD_NOT_ASK
    # The approval survives being stored, and a program that is replaced by a link is another one.
    stored = parse_approval(record.to_json())
    assert stored == record
    if not line.startswith("./gradlew"):
        return
    (here / "gradlew").symlink_to(there / "gradlew")
    assert decide(permissions(here, approvals=[record]), request).message == COULD_NOT_ASK


def test_an_allow_rule_for_a_relative_program_names_the_program_of_that_folder(project: Path) -> None:
    made = permissions(project, rules={"allow": ["shell(./gradlew test)", "shell(./run.sh *)"]})
    assert verdicts_except("allowed", made, ["./gradlew test --info", "./run.sh a b"]) == {}
    assert (
        verdicts_except(COULD_NOT_ASK, made, ["sub/gradlew test", "./sub/run.sh a", "cd sub && ./run.sh a"]) == {}
    )


def test_git_is_asked_about_where_files_of_the_project_are_a_repository(tmp_path: Path) -> None:
    made = permissions(tmp_path, rules={"allow": ["shell(git status)", "shell(ls)", "shell(git log)"]})
    assert decide(made, shell("git status")).status == "allowed"
    for name in ("objects", "refs", "sub"):
        (tmp_path / name).mkdir()
    (tmp_path / "HEAD").write_text("ref: refs/heads/main")
    assert verdicts_except(COULD_NOT_ASK, made, ["git status", "ls && git log"]) == {}
    inner = permissions(tmp_path / "sub", rules={"allow": ["shell(git status)"]})
    assert decide(inner, shell("git status")).message == COULD_NOT_ASK
    for name in ("objects", "refs"):
        (tmp_path / name).rmdir()
    assert decide(made, shell("git status")).status == "allowed"
    (tmp_path / "commondir").write_text("sub")
    assert decide(made, shell("git status")).message == COULD_NOT_ASK
    (tmp_path / ".git").mkdir()
    assert decide(made, shell("git status")).status == "allowed"


@pytest.mark.parametrize("name", ["-L", "--files0-from=x", "+x", "@x"])
def test_a_glob_that_may_expand_to_an_option_is_not_covered(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_text("")
    made = permissions(tmp_path, approvals=[APPROVED])
    assert decide(made, shell("sort *")).status == "allowed"
    (tmp_path / name).write_text("")
    assert decide(made, shell("sort *")).message == COULD_NOT_ASK
    assert decide(made, shell("sort ./*")).status == "allowed"


def test_a_deny_rule_for_one_command_does_not_affect_others(project: Path) -> None:
    made = permissions(project, rules={"deny": ["shell(rm)"]}, allow_unasked=True)
    others = ("python3 x.py", "sudo ls", "echo rm", "git rm x")
    assert verdicts_except("allowed", made, [*hostile.HARMLESS, *others]) == {}


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "../secret", "link/secret", "link", "out.txt", "sub/up/secret", "sub/up", "sub/../../secret",
        "link/../secret", "~/x", "/", "..", "sub/up/project/../secret", "/proc/self/root/etc/passwd",
        "/etc/../etc/passwd", "//etc/passwd", "x\0y", "\ud800",
    ],
)  # fmt: skip
def test_approvals_and_rules_of_a_kind_do_not_cover_paths_outside(project: Path, path: str) -> None:
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
    "path",
    [
        ".git/config", ".git/hooks/pre-commit", ".jumpseat/config.toml", "sub/.git/x", ".GIT/config", "HOME/x",
        ".mcp.json", "sub/.mcp.json", ".github/mcp.json", ".github/agents/a.md", ".claude/agents/a.md",
        ".github/skills/a/run.sh", ".agents/skills/a/SKILL.md", "tools/skill/SKILL.md", ".claude/settings.json",
        ".github/hooks/a.json", ".github/plugin/plugin.json", ".Claude-Plugin/plugin.json", ".vscode/tasks.json",
        "packages/a/.vscode/settings.json", ".idea/workspace.xml", "all.code-workspace", ".zed/tasks.json",
        ".nvim.lua", ".devcontainer/devcontainer.json", ".cursor/mcp.json", ".codex/config.toml",
        ".gemini/settings.json", ".husky/pre-commit", ".pre-commit-config.yaml", ".envrc",
    ],
)  # fmt: skip
def test_protected_paths_are_never_written_unasked(project: Path, path: str) -> None:
    request = WritePermission(intention="", file_name=str(project / path), diff="")
    approval = ApprovalRecord(SessionApproval(kind="write"))
    assert decide(permissions(project, approvals=[approval]), request).status == "denied"
    assert decide(permissions(project, rules={"allow": ["write", "write(/**)"]}), request).status == "denied"
    assert decide(permissions(project, approvals=[APPROVED]), shell(f"touch {path}")).status == "denied"


@pytest.mark.parametrize("path", [".github/workflows/test.yml", "AGENTS.md", "agents/a.md", "skills.md"])
def test_files_that_configure_nothing_are_written_with_an_approval(project: Path, path: str) -> None:
    request = WritePermission(intention="", file_name=str(project / path), diff="")
    approval = ApprovalRecord(SessionApproval(kind="write"))
    assert decide(permissions(project, approvals=[approval]), request).status == "allowed"


def test_file_tools_ask_about_everything_that_the_sandbox_keeps_commands_from_changing(project: Path) -> None:
    approval = ApprovalRecord(SessionApproval(kind="write"))
    for name in (*NAMES, *("/".join((*folder, name)) for folder, names in INSIDE.items() for name in names)):
        request = WritePermission(intention="", file_name=str(project / "sub" / name), diff="")
        assert decide(permissions(project, approvals=[approval]), request).status == "denied", name


def test_start_files_are_protected_in_a_session_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    approval = ApprovalRecord(SessionApproval(kind="write"))
    projects = [tmp_path, tmp_path / ".worktrees" / "fix"]
    for folder, path, status in (
        (projects[0], ".bashrc", "denied"),
        (projects[0], ".config/autostart/a.desktop", "denied"),
        (projects[0], "bin/git", "denied"),
        (projects[0], "notes.txt", "allowed"),
        (projects[0], "src/.eslintrc", "allowed"),
        (projects[1], ".eslintrc", "allowed"),
        (projects[1], "bin/tool", "allowed"),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        request = WritePermission(intention="", file_name=str(folder / path), diff="")
        assert decide(permissions(folder, approvals=[approval]), request).status == status, path


def test_a_project_inside_of_a_protected_folder_can_be_edited(tmp_path: Path) -> None:
    project = tmp_path / ".claude" / "worktrees" / "fix"
    project.mkdir(parents=True)
    made = permissions(project, rules={"allow": ["write"]})
    request = WritePermission(intention="", file_name=str(project / "a.py"), diff="")
    assert decide(made, request).status == "allowed"
    request = WritePermission(intention="", file_name=str(project / ".claude" / "settings.json"), diff="")
    assert decide(made, request).status == "denied"


def test_a_link_that_is_created_later_is_resolved_then(project: Path) -> None:
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
def test_a_call_that_may_touch_a_denied_path_is_asked_about(tmp_path: Path, line: str) -> None:
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
def test_an_allowed_host_does_not_cover_urls_that_resemble_it(project: Path, url: str) -> None:
    request = UrlPermission(intention="", url=url)
    assert decide(permissions(project, rules={"allow": ["url(ok.example)"]}), request).status == "denied"
    assert decide(
        permissions(project, approvals=[ApprovalRecord(hosts=frozenset(["ok.example"]))]), request
    ).status == ("denied")


@pytest.mark.parametrize(
    "url", ["http://ok.example", "https://OK.example./x", "ok.example", "http://ok.example:8080/"]
)
def test_a_host_is_recognized_in_every_spelling(project: Path, url: str) -> None:
    request = UrlPermission(intention="", url=url)
    assert decide(permissions(project, rules={"allow": ["url(ok.example)"]}), request).status == "allowed"
    made = permissions(project, rules={"deny": ["url(ok.example)"]}, allow_unasked=True)
    assert decide(made, request).status == "denied"
    assert decide(made, UrlPermission(intention="", url="http://sub.ok.example")).status == "denied"
    assert decide(made, shell("curl -s http://a.OK.example")).status == "denied"


async def test_approved_commands_do_not_cover_input_for_a_running_program(project: Path) -> None:
    async with tool_session(project) as ctx:
        request = permission(ctx, "write_bash", shellId="0", input="ls")
        same = permission(ctx, "write_bash", shellId="0", input="touch proof")
    assert request is not None
    made = permissions(project, approvals=[APPROVED], rules=RULES)
    assert (await made.decide(request, "write_bash")).message == COULD_NOT_ASK
    # Nor does the approval of a line cover the same line, typed into a program that may be anywhere.
    line = shell("touch proof")
    record = approval_record(narrowest_approval(line), line, gather_facts(line, "bash", made.path_scope), None)
    assert record is not None
    assert same is not None
    await made.approvals.add_for_location("/", record)
    assert (await made.decide(line, "bash")).status == "allowed"
    assert (await made.decide(same, "write_bash")).message == COULD_NOT_ASK


@pytest.mark.parametrize(
    "line",
    ["(", '"$(', "$", "<<a ", "`", "a|", "$(a ", "a ) ", "if a; ", "$((", "<", ">", "${a:-", "xargs ", "a() ",
     "\0", "[[ "],
)  # fmt: skip
def test_parsing_takes_bounded_time(line: str) -> None:
    started = time.process_time()
    assert not parse_shell(line * (100_000 // len(line))).certain
    parse_shell(line * (4096 // len(line)))
    # Without its limits, the parser takes many seconds for each line.
    assert time.process_time() - started < 3
