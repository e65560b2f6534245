from __future__ import annotations

import os
from pathlib import Path

import pytest

from jumpseat.tools.builtin import glob
from jumpseat.tools.search.python_engine import compile_glob
from tests.tools.session import call, permission, tool_session

pytestmark = pytest.mark.anyio


def _tree(root: Path) -> None:
    for name in (
        "src/index.ts",
        "src/deep/er/a.tsx",
        "src/b.js",
        "top.ts",
        ".git/x.ts",
        ".config/c.ts",
        "src-x/d.ts",
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (root / "loop").symlink_to(".")


@pytest.mark.parametrize(
    ("pattern", "path", "lines"),
    [
        ("**/*.ts", None, ["./.config/c.ts", "./src-x/d.ts", "./src/index.ts", "./top.ts"]),
        ("*.ts", None, ["./top.ts"]),
        ("src/**/*.{ts,tsx}", None, ["./src/deep/er/a.tsx", "./src/index.ts"]),
        ("*.ts", "src", ["./src/index.ts"]),
        ("./src/*.js", None, ["./src/b.js"]),
        ("../src/*.js", "src-x", ["./src/b.js"]),
        ("src/deep/**", None, ["./src/deep/er/a.tsx"]),
        ("**/[!ab].t?", None, ["./.config/c.ts", "./src-x/d.ts"]),
        ("top.ts", None, ["./top.ts"]),
    ],
)
async def test_files_are_listed_relative_to_the_working_directory(
    tmp_path: Path, pattern: str, path: str | None, lines: list[str]
) -> None:
    _tree(tmp_path)
    async with tool_session(tmp_path) as ctx:
        arguments = {"pattern": pattern} | ({"path": path} if path else {})
        assert (await call(ctx, "glob", **arguments)).text.splitlines() == lines


async def test_absolute_patterns_and_other_directories_give_absolute_paths(tmp_path: Path) -> None:
    _tree(tmp_path)
    (tmp_path / "cwd").mkdir()
    async with tool_session(tmp_path / "cwd") as ctx:
        assert (await call(ctx, "glob", pattern=f"{tmp_path}/src/*.ts")).text == f"{tmp_path}/src/index.ts"
        assert (await call(ctx, "glob", pattern="*.ts", path="..")).text == f"{tmp_path}/top.ts"
        request = permission(ctx, "glob", pattern="../../**/x", path=".")
    assert request is not None
    assert request.kind == "read"
    assert request.path == str(tmp_path.parent)


async def test_no_matches_and_invalid_arguments_are_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with tool_session(tmp_path) as ctx:
        nothing = await call(ctx, "glob", pattern="*.none")
        assert (nothing.text, nothing.ok) == ("No files match *.none.", True)
        for arguments, text in (
            ({"path": "missing"}, "Path missing does not exist. Please provide a valid path."),
            ({"path": "file"}, "Path file is not a directory. Give the directory to search, or use view."),
            ({"path": "a\0"}, "'a\\x00' is not a valid path. Please provide a valid path."),
            ({"pattern": "[z-a]"}, "Pattern '[z-a]' is not a valid glob. Use *, **, ?, [abc] and {a,b}."),
        ):
            outcome = await call(ctx, "glob", **{"pattern": "*", **arguments})
            assert (outcome.text, outcome.ok) == (text, False)


async def test_undecodable_names_are_listed(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff")).touch()
    (tmp_path / "a\u00e9").touch()
    async with tool_session(tmp_path) as ctx:
        outcome = await call(ctx, "glob", pattern="a?")
    assert outcome.text == "./a\u00e9\n./a\ufffd"


async def test_long_lists_end_with_the_number_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glob, "LIMIT", 2)
    for number in range(5):
        (tmp_path / f"{number}").touch()
    async with tool_session(tmp_path) as ctx:
        outcome = await call(ctx, "glob", pattern="*")
    assert outcome.text == "./0\n./1\n[3 more files. Use a narrower pattern.]"


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("**/a", ["a", "x/a", "x/y/a"], ["xa", "a/b"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb"]),
        ("{a,b/{c,d}}.x", ["a.x", "b/c.x", "b/d.x"], ["c.x"]),
        ("a?[b-d]", ["axb", "a.d"], ["a/b", "axe"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("a[", ["a["], ["a"]),
        ("{a", ["{a"], ["a"]),
        ("a,b}", ["a,b}"], ["a"]),
        (r"\*\{", ["*{"], ["x{"]),
        ("a+(b).c", ["a+(b).c"], ["aa(b).c"]),
        ("[[&~|]", ["[", "&", "~", "|"], ["x"]),
    ],
)
def test_the_pattern_language(pattern: str, matching: list[str], other: list[str]) -> None:
    regex = compile_glob(pattern)
    assert [name for name in [*matching, *other] if regex.fullmatch(name)] == matching
