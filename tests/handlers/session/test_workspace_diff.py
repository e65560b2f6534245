"""``session.workspaces.diff`` over the real wire, with real repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

HELLO = scripted({"text": "Hello!"})
ODD = 'odd "näme"\t.txt'
LONG = "a line that makes a file recognisable when it is renamed\n" * 20


def git(folder: Path, *args: str) -> None:
    who = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "HOME": str(folder)}
    config = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *config, *args], cwd=folder, check=True, capture_output=True, env=os.environ | who)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit on ``main``."""
    folder = tmp_path / "repository"
    (folder / "sub").mkdir(parents=True)
    for name, text in {
        "tracked.txt": "before\n",
        "removed.txt": "remove me\n",
        ODD: "odd\n",
        "moved.txt": LONG,
    }.items():
        (folder / name).write_text(text)
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "initial")
    return folder


async def diff_of(wire: Wire, folder: Path, **params: Any) -> dict[str, Any]:
    session = await wire.create(HELLO, workingDirectory=str(folder))
    return await wire.call("session.workspaces.diff", {"sessionId": session, "mode": "unstaged", **params})


def kinds(result: dict[str, Any]) -> dict[str, str]:
    return {change["path"]: change["changeType"] for change in result["changes"]}


async def test_the_diff_lists_unstaged_and_untracked_changes_by_file(repository: Path, tmp_path: Path) -> None:
    (repository / "tracked.txt").write_text("after\n")
    (repository / "removed.txt").unlink()
    (repository / ODD).write_text("diff --git a/tracked.txt b/tracked.txt\n")
    (repository / "staged.txt").write_text("staged\n")
    git(repository, "add", "staged.txt")
    (repository / "new.txt").write_text("one\ntwo")
    (repository / "empty.txt").touch()
    (repository / "picture.bin").write_bytes(b"\0\1")
    (repository / "noise.log").write_text("ignored")
    (repository / "link").symlink_to("tracked.txt")
    async with running_server(tmp_path) as server:
        result = await diff_of(server.wire, repository)
        from_below = await diff_of(server.wire, repository / "sub")
    changes = {change["path"]: change for change in result["changes"]}
    assert {name: result[name] for name in ("requestedMode", "mode", "isFallback")} == {
        "requestedMode": "unstaged",
        "mode": "unstaged",
        "isFallback": False,
    }
    assert kinds(result) == {
        "tracked.txt": "modified",
        "removed.txt": "deleted",
        ODD: "modified",
        "new.txt": "added",
        "empty.txt": "added",
        "picture.bin": "added",
        "link": "added",
    }
    assert changes["tracked.txt"]["diff"].endswith("@@ -1 +1 @@\n-before\n+after\n")
    assert "-remove me\n" in changes["removed.txt"]["diff"]
    assert "-odd\n+diff --git a/tracked.txt b/tracked.txt\n" in changes[ODD]["diff"]
    assert changes["new.txt"]["diff"].endswith("@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n")
    assert "Binary files" in changes["picture.bin"]["diff"]
    assert "new file mode 120000" in changes["link"]["diff"]
    assert not any("isTruncated" in change for change in result["changes"])
    assert kinds(from_below) == {f"../{path}": kind for path, kind in kinds(result).items()}


async def test_the_diffs_form_a_patch_that_git_can_apply(repository: Path, tmp_path: Path) -> None:
    (repository / "tracked.txt").write_text("after\nmore\n")
    (repository / "new.txt").write_text("one\ntwo")
    (repository / ODD).unlink()
    async with running_server(tmp_path) as server:
        result = await diff_of(server.wire, repository)
    (tmp_path / "all.patch").write_text("".join(change["diff"] for change in result["changes"]))
    git(repository, "stash", "--include-untracked")
    git(repository, "apply", str(tmp_path / "all.patch"))
    assert (repository / "tracked.txt").read_text() == "after\nmore\n"
    assert (repository / "new.txt").read_text() == "one\ntwo"
    assert not (repository / ODD).exists()


async def test_a_branch_is_compared_with_its_merge_base_on_the_default_branch(
    repository: Path, tmp_path: Path
) -> None:
    git(repository, "checkout", "-b", "feature")
    git(repository, "mv", "moved.txt", "elsewhere.txt")
    git(repository, "commit", "-m", "move")
    git(repository, "checkout", "main")
    (repository / "only-on-main.txt").write_text("x\n")
    git(repository, "add", ".")
    git(repository, "commit", "-m", "go on")
    git(repository, "checkout", "feature")
    (repository / "tracked.txt").write_text("after\n")
    async with running_server(tmp_path) as server:
        result = await diff_of(server.wire, repository, mode="branch")
    assert kinds(result) == {"elsewhere.txt": "renamed", "tracked.txt": "modified"}
    (renamed,) = [change for change in result["changes"] if change["changeType"] == "renamed"]
    assert renamed["oldPath"] == "moved.txt"
    assert (result["mode"], result["baseBranch"], result["isFallback"]) == ("branch", "main", False)


async def test_without_a_base_the_result_is_the_unstaged_diff_marked_as_fallback(
    repository: Path, tmp_path: Path
) -> None:
    git(repository, "branch", "-m", "main", "trunk")
    (repository / "tracked.txt").write_text("after\n")
    async with running_server(tmp_path) as server:
        branch = await diff_of(server.wire, repository, mode="branch")
        session = await diff_of(server.wire, repository, mode="session", includeContents=True)
    assert kinds(branch) == kinds(session) == {"tracked.txt": "modified"}
    assert {name: value for name, value in branch.items() if name != "changes"} == {
        "requestedMode": "branch",
        "mode": "unstaged",
        "isFallback": True,
    }
    assert {name: value for name, value in session.items() if name != "changes"} == {
        "requestedMode": "session",
        "mode": "unstaged",
        "isFallback": True,
        "unavailableReason": "file-change-tracking-disabled",
    }


async def test_without_changes_or_commits_the_diff_is_empty(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "fresh").mkdir()
    git(tmp_path / "fresh", "init")
    async with running_server(tmp_path) as server:
        for mode in ("unstaged", "branch", "session"):
            assert (await diff_of(server.wire, repository, mode=mode))["changes"] == []
            assert (await diff_of(server.wire, tmp_path / "fresh", mode=mode))["changes"] == []


async def test_whitespace_can_be_ignored_and_long_diffs_are_truncated(repository: Path, tmp_path: Path) -> None:
    (repository / "tracked.txt").write_text("  before\n")
    (repository / "removed.txt").write_text("x" * 300_000)
    (repository / "large.txt").write_text("x" * 300_000)
    async with running_server(tmp_path) as server:
        whole = await diff_of(server.wire, repository)
        without = await diff_of(server.wire, repository, ignoreWhitespace=True)
    assert kinds(whole).keys() - kinds(without).keys() == {"tracked.txt"}
    left_out = {change["path"] for change in whole["changes"] if change.get("isTruncated") and change["diff"] == ""}
    assert left_out == {"removed.txt", "large.txt"}


async def test_conflicts_are_listed_and_configured_programs_do_not_run(repository: Path, tmp_path: Path) -> None:
    git(repository, "checkout", "-b", "other")
    (repository / "tracked.txt").write_text("theirs\n")
    git(repository, "commit", "-am", "theirs")
    git(repository, "checkout", "main")
    (repository / "tracked.txt").write_text("ours\n")
    git(repository, "commit", "-am", "ours")
    with pytest.raises(subprocess.CalledProcessError):
        git(repository, "merge", "other")
    trap = tmp_path / "trapped"
    (repository / ".gitattributes").write_text("* diff=trap filter=trap\n")
    programs = ("clean", "smudge", "process")
    for key in (
        "diff.external", "diff.trap.textconv", "diff.trap.command", "core.fsmonitor",
        *(f"filter.trap.{name}" for name in programs),
    ):  # fmt: skip
        git(repository, "config", key, f"touch {trap};")
    git(repository, "config", "filter.trap.required", "true")
    git(repository, "config", "diff.noprefix", "true")
    async with running_server(tmp_path) as server:
        result = await diff_of(server.wire, repository)
    assert kinds(result) == {"tracked.txt": "modified", ".gitattributes": "added"}
    assert not trap.exists()


async def test_a_diff_without_git_is_empty_or_refused(repository: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    async with running_server(tmp_path, env={"GIT_CEILING_DIRECTORIES": str(tmp_path)}) as server:
        wire = server.wire
        nowhere = await wire.create(HELLO, workingDirectory=str(plain))
        off = await wire.create(HELLO, workingDirectory=str(repository), enableHostGitOperations=False)
        there = await wire.create(HELLO, workingDirectory=str(repository))

        async def refusal(session: str, **params: Any) -> str:
            return (await wire.error_of("session.workspaces.diff", {"sessionId": session, **params}))["message"]

        for mode, more in (("unstaged", {}), ("branch", {"baseBranch": "main"})):
            result = await wire.call("session.workspaces.diff", {"sessionId": nowhere, "mode": mode})
            fallback: dict[str, Any] = {"mode": "unstaged", "changes": [], "isFallback": mode == "branch"}
            assert result == {"requestedMode": mode} | fallback | more
        assert await refusal(off, mode="unstaged") == "git is disabled for this session"
        assert "includeContents" in await refusal(there, mode="branch", includeContents=True)
        assert "mode" in await refusal(there, mode="staged")
        assert await refusal("nobody", mode="unstaged") == "Session not found: nobody"


async def test_the_diff_of_a_session_shows_what_it_has_changed(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    for name in ("a.txt", "spaces.txt"):
        (plain / name).write_text("hello a\n")
    turns = (
        calls("edit", "c1", path="a.txt", old_str="hello", new_str="bye"),
        calls("bash", "c2", command="printf 'x\\ny\\n' > n.txt; echo ' hello a' > spaces.txt; printf '\\0' > bin"),
        {"text": "Done."},
    )
    async with running_server(tmp_path) as server:
        wire = server.wire
        options = {"workingDirectory": str(plain), "enableFileChangeTracking": True}
        session = await wire.create(scripted(*turns), **options)
        await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
        await wire.prompt(session, "go")
        params = {"sessionId": session, "mode": "session", "ignoreWhitespace": True, "includeContents": True}
        result = await wire.call("session.workspaces.diff", params)
    assert (result["mode"], result["isFallback"]) == ("session", False)
    changes = {change.pop("path"): change for change in result["changes"]}
    assert changes["bin"].pop("diff").endswith("Binary files differ")
    assert changes == {
        "a.txt": {
            "diff": "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-hello a\n+bye a",
            "changeType": "modified",
            "contents": {"before": "hello a\n", "after": "bye a\n"},
        },
        "bin": {"changeType": "added"},
        "n.txt": {
            "diff": "diff --git a/n.txt b/n.txt\n--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,2 @@\n+x\n+y",
            "changeType": "added",
            "contents": {"after": "x\ny\n"},
        },
    }
