from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tools.session import call, tool_session

pytestmark = pytest.mark.anyio

RIPGREP = shutil.which("rg")
GIT = shutil.which("git")

if GIT is None:
    pytest.skip("git is not installed", allow_module_level=True)


@pytest.fixture(params=["python", "ripgrep"])
def programs(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a PATH with git, and with or without ripgrep."""
    if request.param == "ripgrep" and RIPGREP is None:
        pytest.skip("ripgrep is not installed")
    assert GIT is not None
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").symlink_to(GIT)
    if request.param == "ripgrep" and RIPGREP is not None:
        (folder / "rg").symlink_to(RIPGREP)
    return str(folder)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    for name in (
        "src/a.js",
        "src/[x] 1/out.js",
        "src/gen/b.js",
        "src/local.log",
        "src/kept.log",
        "node_modules/x/c.js",
        "dist/d.js",
        "mine/e.js",
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("apple\n")
    (root / ".gitignore").write_text("node_modules/\n/dist/*\n*.log\nout.js\n")
    (root / "src" / ".gitignore").write_text("gen\n")
    _git(root, "init", "--quiet")
    _git(root, "add", "--force", "src/kept.log")
    (root / ".git" / "info" / "exclude").write_text("mine\n")
    return root


def _git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)


def _replace(program: Path, script: str) -> None:
    program.unlink()
    program.write_text(script)
    program.chmod(0o755)


async def test_ignored_files_are_not_searched(repository: Path, programs: str) -> None:
    async with tool_session(repository, path=programs) as ctx:
        everything = await call(ctx, "grep", pattern="apple")
        by_name = await call(ctx, "grep", pattern="apple", glob="*.{js,log}")
        below = await call(ctx, "grep", pattern="apple", path="src", output_mode="count")
    # A tracked file is never ignored.
    assert everything.text == "./src/a.js\n./src/kept.log"
    assert by_name.text == "./src/a.js\n./src/kept.log"
    assert below.text == "src/a.js:1\nsrc/kept.log:1"


async def test_naming_an_ignored_path_searches_it(repository: Path, programs: str) -> None:
    async with tool_session(repository, path=programs) as ctx:
        found = {
            path: (await call(ctx, "grep", pattern="apple", path=path)).text
            for path in ("node_modules", "node_modules/x", "dist", "mine", "src/gen", "src/local.log")
        }
    assert found == {
        "node_modules": "node_modules/x/c.js",
        "node_modules/x": "node_modules/x/c.js",
        "dist": "dist/d.js",
        "mine": "mine/e.js",
        "src/gen": "src/gen/b.js",
        "src/local.log": "src/local.log",
    }


async def test_a_result_without_matches_names_the_ignored_paths(repository: Path, programs: str) -> None:
    async with tool_session(repository, path=programs) as ctx:
        nothing = await call(ctx, "grep", pattern="pear")
        in_named = await call(ctx, "grep", pattern="pear", path="dist")
        no_file = await call(ctx, "glob", pattern="**/c.js")
    assert nothing.text == (
        "No matches found.\n[Not searched, as git ignores it: dist/, mine/, node_modules/ and 3 more."
        " Name such a path to search it.]"
    )
    assert in_named.text == "No matches found."
    assert no_file.text.startswith("No files match **/c.js.\n[Not searched, as git ignores it: dist/, mine/,")


async def test_glob_leaves_out_ignored_directories_unless_they_are_named(repository: Path, programs: str) -> None:
    async with tool_session(repository, path=programs) as ctx:
        scripts = await call(ctx, "glob", pattern="**/*.js")
        logs = await call(ctx, "glob", pattern="**/*.log")
        named = await call(ctx, "glob", pattern="node_modules/**/*.js")
        inside = await call(ctx, "glob", pattern="*", path="node_modules/x")
    assert scripts.text == "./src/a.js"
    assert logs.text == "./src/kept.log\n./src/local.log"
    assert named.text == "./node_modules/x/c.js"
    assert inside.text == "./node_modules/x/c.js"


async def test_ignore_files_outside_of_a_repository_have_no_effect(tmp_path: Path, programs: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ".gitignore").write_text("*\n")
    (folder / "a").write_text("apple\n")
    async with tool_session(folder, path=programs) as ctx:
        assert (await call(ctx, "grep", pattern="apple")).text == "./a"


async def test_the_settings_of_a_repository_start_no_program(repository: Path, programs: str) -> None:
    spy = repository / "spy"
    spy.write_text(f"#!/bin/sh\n: > {repository}/spied\n")
    spy.chmod(0o755)
    _git(repository, "config", "core.fsmonitor", str(spy))
    async with tool_session(repository, path=programs) as ctx:
        await call(ctx, "grep", pattern="apple")
        await call(ctx, "glob", pattern="*")
    assert not (repository / "spied").exists()
    _git(repository, "ls-files")
    assert (repository / "spied").exists(), "the setting has no effect at all"


async def test_a_git_that_hangs_neither_hides_files_nor_blocks_the_search(
    repository: Path, programs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jumpseat.tools.files.TIMEOUT_S", 0.25)
    _replace(Path(programs, "git"), "#!/bin/sh\nexec /bin/sleep 60\n")
    async with tool_session(repository, path=programs) as ctx:
        assert (await call(ctx, "grep", pattern="apple", glob="c.js")).text == "./node_modules/x/c.js"
