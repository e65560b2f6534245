"""Git runs nothing that a repository names, unless a person was asked or trusts the folder: real repositories."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from jumpseat.agent.permissions.facts import gather_facts
from jumpseat.agent.permissions.permissions import Permissions
from jumpseat.tools.shell.process import git_settings
from tests.agent.permissions.test_everyday_commands import approve
from tests.agent.permissions.test_git_writes import environ, git, run
from tests.agent.permissions.test_hostile_calls import decide, permissions, run_without_event_loop, shell
from tests.support.cases import all_cases

SETTINGS: Final[tuple[tuple[str, str], ...]] = (
    # What a repository comes with (settings, hooks, other files), and a command that runs it.
    ("filter.x.clean=EVIL", "git add a.txt"), ("filter.x.clean=EVIL", "git diff"),
    ("filter.x.smudge=EVIL", "git checkout ."), ("filter.x.process=EVIL", "git stash"),
    ("diff.x.textconv=EVIL", "git diff"), ("diff.x.textconv=EVIL", "git log -p"),
    ("diff.external=EVIL", "git diff"), ("diff.x.command=EVIL", "git diff"),
    ("core.hooksPath=hooks", "git commit -aqm x"),
    ("core.editor=EVIL", "git commit -a"), ("sequence.editor=EVIL", "git rebase -i HEAD~1"),
    ("gpg.program=../evil.sh commit.gpgSign=true", "git commit -aqm x"),
    ("gpg.ssh.program=../evil.sh gpg.format=ssh user.signingKey=x commit.gpgSign=1", "git commit -aqm x"),
    ("core.sshCommand=EVIL remote.o.url=ssh://h.invalid/x", "git fetch o"),
    ("credential.helper=!EVIL", "git credential fill"),
    ("protocol.ext.allow=always remote.o.url=ext::../evil.sh", "git fetch o"),
    ("protocol.ext.allow=always branch.main.remote=ext::../evil.sh branch.main.merge=x", "git fetch"),
    ("remote.o.uploadpack=EVIL remote.o.url=..", "git fetch o"), ("alias.st=!EVIL", "git st"),
    ("merge.x.driver=EVIL", "git merge other"), ("include.path=more", "git st"),
    ("includeIf.gitdir:/**.path=more", "git st"), ("pager.log=EVIL core.pager=EVIL", "git -p log"),
    ("uploadpack.packObjectsHook=EVIL", "git log"),
    ("hook:post-index-change", "git reset -q"), ("hook:pre-commit", "git commit -aqm x"),
    ("hook:post-checkout", "git checkout -q -b x"), ("submodule:core.fsmonitor=EVIL", "git status"),
    ("submodule:filter.x.clean=EVIL", "git status"), ("core.worktree=../..", "git checkout :/"),
)  # fmt: skip

ORDINARY: Final = (
    "user.name=x user.email=y@z.example user.signingKey=k commit.gpgSign=false",
    "branch.x.remote=origin branch.x.merge=refs/heads/x remote.origin.url=git@host.example:a/b.git",
    "remote.o.url=https://host.example/x remote.o.fetch=+refs/heads/*:refs/remotes/o/* remote.o.prune=true",
    "core.autocrlf=input core.ignoreCase=true core.fsmonitor=true core.untrackedCache=true",
    "core.whitespace=cr-at-eol pull.rebase=true push.default=current rerere.enabled=1",
    "merge.conflictStyle=zdiff3 diff.algorithm=histogram",
    "submodule.x.url=../x submodule.x.active=true submodule.x.update=merge color.ui=auto gc.auto=0",
    # Outside of a sandbox, these are switched off.
    "core.fsmonitor=EVIL log.showSignature=true",
    "lfs.repositoryFormatVersion=0 lfs.https://h.example/x.access=basic",
    "http.proxy=http://p.example:1",
)


def build(folder: Path, what: str) -> Path:
    """Build a project whose repository has settings, a hook, or a submodule with settings."""
    project = folder / "project"
    project.mkdir(parents=True)
    evil = f"#!/bin/sh\ntouch '{folder}/ran'\nexit 1\n"
    for path in (folder / "evil.sh", project / "hooks" / "pre-commit"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(evil)
        path.chmod(0o755)
    git(project, "init", "-q", "-b", "main")
    (project / "a.txt").write_text("one\n")
    (project / ".gitattributes").write_text("*.txt filter=x diff=x merge=x\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "one")
    git(project, "checkout", "-qb", "other")
    (project / "a.txt").write_text("other\n")
    git(project, "commit", "-qam", "two")
    git(project, "checkout", "-q", "main")
    (project / "a.txt").write_text("main\n")
    git(project, "commit", "-qam", "three")
    kind, _, rest = what.partition(":") if what.startswith(("hook:", "submodule:")) else ("", "", what)
    if kind == "hook":
        hook = project / ".git" / "hooks" / rest
        hook.write_text(evil)
        hook.chmod(0o755)
        rest = ""
    place = project
    if kind == "submodule":
        place = project / "sub"
        git(project, "clone", "-q", ".", "sub")
        git(project, "-c", "advice.addEmbeddedRepo=false", "add", "sub")
        git(project, "commit", "-qm", "sub")
    (place / ".git" / "more").write_text('[alias]\n\tst = "!touch ../ran"\n')
    for setting in rest.split():
        name, _, value = setting.partition("=")
        git(place, "config", name, value.replace("EVIL", str(folder / "evil.sh")))
    if "merge" not in what and "worktree" not in what:
        # Of the same size: only the contents differ.
        (place / "a.txt").write_text("evil\n")
    return project


@pytest.mark.thorough
def test_git_runs_no_program_of_an_untrusted_repository_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ().items():
        monkeypatch.setenv(name, value)
    ran: list[str] = []
    with all_cases() as case:
        for number, (what, line) in enumerate(SETTINGS):
            with case(f"{what} | {line}"):
                project = build(tmp_path / str(number), what)
                made = permissions(project, rules={"allow": ["shell"]})
                request = shell(line)
                assert decide(made, request).status == "denied"
                name = "hook " + what[5:] if what.startswith("hook:") else what.partition("=")[0].rpartition(":")[2]
                assert name.casefold() in (request.warning or "").casefold()
                monkeypatch.setattr("tests.agent.permissions.test_git_writes.git_settings", outside)
                run(project, line)
                ran += [what] if (project.parent / "ran").exists() else []
    # Otherwise the cases would prove nothing.
    assert len(ran) >= len(SETTINGS) - 8, ran


def outside(environ: dict[str, str]) -> dict[str, str]:
    return git_settings(environ, outside=True)


@pytest.mark.thorough
def test_settings_that_only_describe_a_repository_need_no_question(tmp_path: Path) -> None:
    with all_cases() as case:
        for number, what in enumerate(ORDINARY):
            with case(what):
                made = permissions(build(tmp_path / str(number), what), rules={"allow": ["shell"]})
                assert decide(made, shell("git status")).status == "allowed"


def test_an_approval_covers_the_programs_that_its_question_named(tmp_path: Path) -> None:
    project = build(tmp_path, "core.hooksPath=hooks")
    made = permissions(project, rules={"allow": ["shell"]})
    assert decide(made, shell("git status")).status == "denied"
    allow(made, "git log")
    assert decide(made, shell("git status")).status == "allowed"
    git(project, "config", "core.sshCommand", "./evil.sh")
    assert decide(made, shell("git status")).status == "denied"
    allow(made, "git log")
    assert decide(made, shell("git -C hooks status")).status == "allowed"
    (project / "hooks" / "pre-commit").write_text("#!/bin/sh\n# another\n")
    assert decide(made, shell("git status")).status == "denied"


def allow(made: Permissions, line: str) -> None:
    record = approve(shell(line), made.path_scope)
    assert record is not None
    run_without_event_loop(made.approvals.add_for_location("/", record))


def test_a_trusted_folder_and_a_sandbox_need_no_question(tmp_path: Path) -> None:
    project = build(tmp_path, "diff.external=EVIL")
    made = permissions(project, rules={"allow": ["shell"]})
    confined = shell("git status")
    confined.sandboxed = True
    assert not gather_facts(confined, "bash", made.path_scope).git_programs
    made.path_scope.trusts = lambda folder: folder == project
    assert decide(made, shell("git status")).status == "allowed"
