"""The root of a work tree is found without git only where git finds the same."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from jumpseat.system.git_reading import usual_top
from tests.support.cases import all_cases

USUAL: Final = (
    "true", "git checkout -q --detach", "git branch -q worktree", "git config user.name bar",
    "printf '[include]\\n\\tpath = more\\n' >> .git/config; printf '[core]\\n\\tworktree = ..\\n' > .git/more",
    "git init -q --bare inner/deep", "git config core.bare false", "rm .git/index", "rm -r .git/hooks",
    "cp -r .git inner/.git", "cp -r .git inner/.git && echo '[broken' >> inner/.git/config",
)  # fmt: skip
"""Changes of a repository; the folder of the question is ``inner``."""

UNUSUAL: Final = (
    "rm -rf .git", "git config core.worktree ..", "git config core.bare true",
    "git worktree add -q tree && rm -rf inner && mv tree inner",
    "git init -q inner --separate-git-dir=../elsewhere",
    "git config extensions.worktreeConfig true", "mv .git ../dot && ln -s ../dot .git",
    "mkdir inner/.git && cp .git/config inner/.git",
    "cp -r .git inner/.git && echo x > inner/.git/HEAD", "cp -r .git inner/.git && rm -r inner/.git/refs",
    "cp -r .git inner/.git && rm -r inner/.git/objects", "cp -r .git inner/.git && rm inner/.git/HEAD",
    "cp -r .git inner/.git && echo ../../.git > inner/.git/commondir", "mkdir inner/.git", "touch inner/.git",
    "ln -s nowhere inner/.git", "cp -r .git inner/.git && echo 'ref: heads/main' > inner/.git/HEAD",
)  # fmt: skip

VARIABLES: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_CEILING_DIRECTORIES")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template").resolve() / "project"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "file").touch()
    shell(folder, "git init -q && git add . && git -c user.name=a -c user.email=a@b.example commit -qm x")
    return folder


def shell(folder: Path, line: str, **variables: str) -> str:
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **variables}
    done = subprocess.run(["sh", "-c", line], cwd=folder, env=environ, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def test_the_root_of_a_work_tree_is_that_of_git(template: Path, tmp_path: Path) -> None:
    with all_cases() as case:
        for number, line in enumerate((*USUAL, *UNUSUAL)):
            with case(line):
                folder = shutil.copytree(template, tmp_path / str(number), symlinks=True) / "inner"
                shell(folder.parent, line)
                found = usual_top(folder, {})
                answer = shell(folder, "git rev-parse --show-toplevel")
                # There is no answer if git refuses to do anything here.
                assert found is None or answer in (str(found), "")
                assert (found is None) == (line in UNUSUAL)
    link = tmp_path / "link"
    link.symlink_to(template / "inner")
    assert usual_top(link, {}) == template
    assert usual_top(template / "gone", {}) is None


def test_variables_of_git_may_mean_another_repository(template: Path) -> None:
    assert usual_top(template, {"GIT_AUTHOR_NAME": "a"}) == template
    for name in VARIABLES:
        assert usual_top(template, {name: str(template)}) is None
