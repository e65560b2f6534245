"""The git repository of a folder, read from git's own files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from jumpseat.system.git import working_directory_context
from jumpseat_protocol.events import WorkingDirectoryContext

ORIGIN = '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://github.com/owner/name.git\n\tfetch = +refs/*\n'


def repository(folder: Path, *, head: str = "ref: refs/heads/main\n", config: str = ORIGIN) -> Path:
    """Create a repository by hand in ``folder``."""
    git = folder / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text(head)
    (git / "config").write_text(config)
    return folder


def context(cwd: Path, **fields: str) -> WorkingDirectoryContext:
    return WorkingDirectoryContext(cwd=str(cwd), **fields)


def test_a_repository_has_its_root_branch_and_name(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")

    assert working_directory_context(root) == context(
        root, git_root=str(root), branch="main", repository="owner/name"
    )


def test_a_folder_inside_a_repository_belongs_to_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    inside = root / "src" / "deep"
    inside.mkdir(parents=True)

    assert working_directory_context(inside) == context(
        inside, git_root=str(root), branch="main", repository="owner/name"
    )


def test_a_folder_outside_of_git_has_no_repository(tmp_path: Path) -> None:
    assert working_directory_context(tmp_path) == context(tmp_path)


def test_git_is_not_read_without_host_git(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")

    assert working_directory_context(root, host_git=False) == context(root)


def test_a_branch_may_have_slashes_in_its_name(tmp_path: Path) -> None:
    root = repository(tmp_path, head="ref: refs/heads/feature/a-b\n")

    assert working_directory_context(root).branch == "feature/a-b"


def test_a_detached_head_is_on_no_branch(tmp_path: Path) -> None:
    root = repository(tmp_path, head="0123456789abcdef0123456789abcdef01234567\n")

    assert working_directory_context(root) == context(root, git_root=str(root), repository="owner/name")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/owner/name.git", "owner/name"),
        ("https://github.com/owner/name", "owner/name"),
        ("https://github.com/owner/name/", "owner/name"),
        ("https://user@host:8443/owner/my.name.git", "owner/my.name"),
        ("git@github.com:owner/name.git", "owner/name"),
        ("ssh://git@github.com:22/owner/name.git", "owner/name"),
        ("git@host:group/sub/name.git", "sub/name"),
        ("name", None),
        ("", None),
    ],
)
def test_the_name_is_read_from_the_url_of_origin(tmp_path: Path, url: str, name: str | None) -> None:
    root = repository(tmp_path, config=f'[remote "origin"]\n\turl = {url}\n')

    assert working_directory_context(root).repository == name


@pytest.mark.parametrize(
    "config",
    [
        "",
        "rubbish",
        '[remote "upstream"]\n\turl = https://github.com/owner/name\n',
        '[remote "origin"]\n\tfetch = x\n',
        '[remote "origin"]\n\turl\n',
    ],
)
def test_without_an_origin_there_is_a_root_and_a_branch(tmp_path: Path, config: str) -> None:
    root = repository(tmp_path, config=config)

    assert working_directory_context(root) == context(root, git_root=str(root), branch="main")


def test_a_config_written_by_hand_is_read(tmp_path: Path) -> None:
    config = (
        "# of mine\n[core]\n  editor = vi ; and no other\n  bare\n"
        '[remote "origin"]\nurl = https://github.com/owner/name.git\n'
        "\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
    )

    assert working_directory_context(repository(tmp_path, config=config)).repository == "owner/name"


def test_a_worktree_has_its_own_branch_and_the_name_of_its_repository(tmp_path: Path) -> None:
    main = repository(tmp_path / "repo")
    private = main / ".git" / "worktrees" / "tree"
    private.mkdir(parents=True)
    (private / "HEAD").write_text("ref: refs/heads/topic\n")
    (private / "commondir").write_text("../..\n")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {private}\n")

    assert working_directory_context(tree) == context(
        tree, git_root=str(tree), branch="topic", repository="owner/name"
    )


def test_the_relative_git_folder_of_a_submodule_is_followed(tmp_path: Path) -> None:
    module = tmp_path / "repo" / ".git" / "modules" / "sub"
    module.mkdir(parents=True)
    (module / "HEAD").write_text("ref: refs/heads/main\n")
    (module / "config").write_text(ORIGIN)
    sub = tmp_path / "repo" / "sub"
    sub.mkdir()
    (sub / ".git").write_text("gitdir: ../.git/modules/sub\n")

    assert working_directory_context(sub) == context(sub, git_root=str(sub), branch="main", repository="owner/name")


def test_a_git_folder_that_is_not_a_repository_is_ignored(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    inside = root / "inside"
    (inside / ".git").mkdir(parents=True)
    (root / "dangling").mkdir()
    (root / "dangling" / ".git").write_text("gitdir: /nowhere\n")

    for folder in (inside, root / "dangling"):
        assert working_directory_context(folder).git_root == str(root)


@pytest.mark.parametrize("broken", ["HEAD", "config"])
def test_files_that_are_not_utf8_are_ignored(tmp_path: Path, broken: str) -> None:
    root = repository(tmp_path)
    (root / ".git" / broken).write_bytes(b"\xff\xfe")

    assert working_directory_context(root).git_root == str(root)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_repositories_written_by_git_are_read(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
            cwd=tmp_path / "repo",
            check=True,
            capture_output=True,
        )

    (tmp_path / "repo").mkdir()
    git("init", "--initial-branch", "trunk")
    git("remote", "add", "origin", "git@github.com:owner/name.git")
    git("commit", "--allow-empty", "--message", "x")
    git("worktree", "add", "-b", "topic", str(tmp_path / "tree"))

    root, tree = tmp_path / "repo", tmp_path / "tree"
    assert working_directory_context(root) == context(
        root, git_root=str(root), branch="trunk", repository="owner/name"
    )
    assert working_directory_context(tree) == context(
        tree, git_root=str(tree), branch="topic", repository="owner/name"
    )
    git("checkout", "--detach")
    assert working_directory_context(root).branch is None
