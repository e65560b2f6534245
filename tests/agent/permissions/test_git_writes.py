"""No rule and no approval covers a ``git`` command that writes protected files: tests with real repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from jumpseat.agent.permissions.facts import gather_facts
from jumpseat.agent.permissions.permissions import Permissions
from jumpseat.tools.shell.process import git_settings
from tests.agent.permissions.test_hostile_calls import decide, permissions, shell
from tests.support.cases import all_cases

PROTECTED: Final = (".mcp.json", ".vscode", ".jumpseat", ".github", "sub/.claude", "new/.vscode", "deep")

WRITING: Final[tuple[tuple[str, str], ...]] = (
    # Commands that went before, and one that writes protected files.
    ("", "git checkout evil"), ("", "git checkout -q --detach evil"), ("", "git checkout -b x evil"),
    ("", "git checkout evil -- ."), ("", "git checkout evil .mcp.json"), ("", "git checkout -fB x evil"),
    ("", "git checkout -b x -t origin/far"), ("", "git checkout far"), ("", "git switch far"),
    ("", "git switch evil"), ("", "git switch -c x evil"), ("", "git switch -d evil~0"), ("", "git switch deleted"),
    ("git checkout -q evil && git checkout -q main", "git checkout -"),
    ("", "git merge evil"), ("", "git merge --no-ff -m x plain evil"), ("", "git merge -m --abort evil"),
    ("", "git merge --squash evil"), ("", "git restore -s evil ."), ("", "git restore -SWs evil -- .vscode"),
    ("", "git restore --source=evil '*.json'"), ("", "git restore -sevil -SW ."), ("", "git rebase evil"),
    ("", "git rebase --onto evil plain main"), ("", "git rebase plain evil"), ("", "git cherry-pick evil^"),
    ("", "git cherry-pick plain..evil"), ("", "git cherry-pick evil~1 --no-commit"),
    ("", "git revert --no-edit HEAD~1"), ("", "git reset --hard evil"), ("", "git reset --har evil"),
    ("", "git reset --keep evil"), ("", "git read-tree -m -u HEAD evil"), ("", "git stash pop 1"),
    ("", "git stash apply stash@{1}"), ("", "git stash branch x stash@{1}"),
    ("", "git worktree add new evil"), ("", "git checkout-index -a --prefix=new/"), ("", "git clean -fdx"),
    ("", "git stash -u"), ("", "git stash push --all"), ("", "git rm -rq --force ."), ("", "git rm -q '.v*/*'"),
    ("", "git apply ../evil.patch"), ("", "git am -q ../evil.patch"),
    ("", "git pull -q --no-rebase . evil"), ("", "git co evil"),
    ("", "git -C sub checkout evil"), ("", "git -c a.b=c checkout evil"), ("", "git --git-dir=.git switch evil"),
    ("", "GIT_DIR=.git git switch evil"), ("", "env GIT_DIR=.git git switch evil"),
    ("", "cd sub && git switch evil"), ("", "B=evil; git switch $B"), ("", "git branch x evil && git switch x"),
    ("", "echo | git switch evil"),
    # The same with an index or a HEAD that other commands have moved.
    ("git reset -q evil", "git restore ."), ("git reset -q evil", "git checkout -- .mcp.json"),
    ("git reset -q evil", "git checkout ."), ("git reset -q --soft evil", "git stash"),
    ("git reset -q --soft evil", "git reset --hard"),
    ("git symbolic-ref HEAD refs/heads/evil", "git checkout HEAD ."),
    ("git reset -q evil && git commit -qm x", "git restore -s HEAD ."),
    ("git merge -q stops", "git merge --abort"), ("git rebase -q stops", "git rebase --abort"),
    ("git rebase -q main stops", "git rebase --skip"),
    ("git cherry-pick clash stops", "git cherry-pick --skip"),
    # The name of a branch that is also that of another commit.
    ("git tag evil plain", "git switch evil"), ("git tag evil plain", "git checkout evil"),
    ("git tag evil plain && git config core.warnAmbiguousRefs false", "git checkout evil"),
    # A link at a place whose contents are obeyed, and a file that the other side has moved to one.
    ("", "git switch linked"), ("git switch -q moved", "git merge -m x unmoved"),
    ("git switch -q moved", "git cherry-pick unmoved"),
)  # fmt: skip

ORDINARY: Final[tuple[str, ...]] = (
    "git checkout -b x", "git switch -c x", "git checkout plain", "git switch plain", "git switch -c x plain",
    "git checkout plain -- src/c.txt", "git checkout a.txt", "git checkout -- a.txt src", "git checkout .",
    "git restore a.txt", "git restore --staged .", "git restore -s plain src", "git restore -S a.txt",
    "git merge plain", "git merge --no-ff -m x plain", "git merge --ff-only plain", "git rebase plain",
    "git rebase --onto plain HEAD~1", "git cherry-pick plain", "git cherry-pick main~1..plain", "git stash",
    "git revert --no-edit HEAD", "git stash push -m x -- a.txt", "git stash pop", "git stash list",
    "git stash show -p", "git reset --hard", "git reset --hard plain", "git reset HEAD~1", "git rm -q a.txt",
    "git rm -rq src", "git rm --cached .mcp.json.example", "git clean -n", "git -C src checkout plain",
    "git checkout - ", "git fetch . plain", "git status", "git diff evil", "git log evil", "git worktree list",
    "git submodule status", "cd src && git checkout plain", "git st", "git to plain", "git bisect log",
    "git checkout nothing-of-this-name", "git add -A && git commit -qm x",
)  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a repository with a branch without protected changes (plain), and several with some (evil, ...)."""
    folder = tmp_path_factory.mktemp("template") / "project"
    folder.mkdir()

    def commit(name: str, files: dict[str, str | None], start: str = "") -> None:
        if start:
            git(folder, "checkout", "-q", "-B", name, start)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                git(folder, "rm", "-q", path)
            elif text.startswith("-> "):
                (folder / path).symlink_to(text[3:])
            else:
                (folder / path).write_text(text)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", name)

    git(folder, "init", "-q", "-b", "main")
    lines = "".join(f"{number}\n" for number in range(30))
    commit("first", {"a.txt": lines, "src/b.txt": "1\n", ".vscode/tasks.json": "{}\n", "tasks.json": lines})
    commit("settings", {".vscode/tasks.json": '{"a": 1}\n'})
    commit("plain", {"plain.txt": "1\n", "src/c.txt": "1\n"}, "main")
    commit("clash", {"a.txt": f"clash\n{lines}"}, "main")
    commit("evil", {".mcp.json": "evil\n", ".vscode/tasks.json": "evil\n", "sub/.claude/x": "evil\n"}, "main")
    (folder.parent / "evil.patch").write_text(git(folder, "format-patch", "-1", "--stdout"))
    commit("evil", {"src/evil.txt": "1\n"})
    commit("stops", {"a.txt": f"stops\n{lines}"}, "main")
    commit("stops", {".mcp.json": "evil\n"})
    commit("deleted", {".vscode/tasks.json": None}, "main")
    commit("linked", {".github": "-> src"}, "main")
    commit("moved", {"tasks.json": None, ".vscode/more.json": lines}, "main")
    commit("unmoved", {"tasks.json": f"evil\n{lines}"}, "main")
    git(folder, "update-ref", "refs/remotes/origin/far", "evil")
    git(folder, "config", "remote.origin.url", str(folder))
    git(folder, "config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    git(folder, "config", "alias.co", "checkout -q")
    git(folder, "config", "alias.to", "switch")
    git(folder, "config", "alias.st", "!true")
    git(folder, "checkout", "-q", "evil")
    (folder / ".mcp.json").write_text("more\n")
    git(folder, "stash", "-q")
    git(folder, "checkout", "-q", "main")
    (folder / "src" / "b.txt").write_text("2\n")
    git(folder, "stash", "-q")
    (folder / "a.txt").write_text(f"main\n{lines}")
    git(folder, "commit", "-q", "-a", "-m", "main")
    git(folder, "checkout", "-q", "plain")
    git(folder, "checkout", "-q", "main")
    (folder / "sub").mkdir(exist_ok=True)
    return folder


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env=environ(),
        stdin=subprocess.DEVNULL,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def environ() -> dict[str, str]:
    who = {f"GIT_{role}_{what}": "a@b.example" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    quiet = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true"}
    return {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **who, **quiet, **git_settings({})}


def run(folder: Path, line: str) -> str:
    words = ["bash", "--norc", "--noprofile", "-c", line]
    done = subprocess.run(
        words, cwd=folder, env=environ(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def contents(folder: Path) -> dict[str, str]:
    """Return the protected files of a work tree."""
    found: dict[str, str] = {}
    for place in (folder / name for name in PROTECTED):
        if place.is_symlink():
            found[str(place)] = f"-> {place.readlink()}"
        for path in (place, *place.rglob("*")):
            if path.is_file():
                found[str(path)] = path.read_text()
    return found


def copied(template: Path, folder: Path) -> Path:
    """Copy a repository and its neighbours into a new ``folder``."""
    shutil.copytree(template.parent, folder, symlinks=True)
    # The times of the files are those of the index.
    git(folder / template.name, "update-index", "-q", "--refresh")
    return folder / template.name


@pytest.mark.thorough
def test_a_git_command_that_writes_protected_files_is_never_covered(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ().items():
        monkeypatch.setenv(name, value)
    with all_cases() as case:
        for number, (before, line) in enumerate(WRITING):
            with case(f"{before} | {line}"):
                project = copied(template, tmp_path / str(number))
                if "-u" in line or "--all" in line or "clean" in line:
                    (project / ".jumpseat").mkdir()
                    (project / ".jumpseat" / "config.toml").write_text("[permissions]\n")
                run(project, before)
                made = permissive(project)
                assert decide(made, shell(line)).status == "denied"
                start = contents(project)
                output = run(project, line)
                # Otherwise the case would prove nothing.
                assert contents(project) != start, output


@pytest.mark.thorough
def test_an_ordinary_git_command_is_covered_and_leaves_protected_files_alone(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ().items():
        monkeypatch.setenv(name, value)
    with all_cases() as case:
        for number, line in enumerate(ORDINARY):
            with case(line):
                project = copied(template, tmp_path / str(number))
                made = permissive(project)
                assert decide(made, shell(line)).status == "allowed"
                start = contents(project)
                run(project, line)
                assert contents(project) == start


def permissive(project: Path) -> Permissions:
    """Return the permissions of a session in a trusted folder, with a rule that allows all commands."""
    made = permissions(project, rules={"allow": ["shell"]})
    made.path_scope.trusts = lambda _folder: True
    return made


def test_the_question_names_the_files(template: Path) -> None:
    made = permissions(template)
    for line, files, unknown in (
        ("git switch evil", (".mcp.json", ".vscode/tasks.json", "sub/.claude/x"), False),
        ("git pull", (), True),
        ("git switch plain", (), False),
    ):
        facts = gather_facts(shell(line), "bash", made.path_scope)
        assert (facts.git_files, facts.git_writes_unknown) == (files, unknown), line
    request = shell("git switch evil")
    decide(made, request)
    assert request.warning is not None
    assert ".mcp.json, .vscode/tasks.json, sub/.claude/x" in request.warning
