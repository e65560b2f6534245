from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumpseat.tools.builtin import grep
from jumpseat.tools.search import engine
from tests.support.limits import WAIT_S
from tests.tools.session import call, permission, tool_session

pytestmark = pytest.mark.anyio

RIPGREP = shutil.which("rg")
NO_PROGRAMS = "/nonexistent"

SEARCHES: list[tuple[dict[str, Any], str]] = [
    ({"pattern": "ap"}, "./.hidden.txt\n./a/a.txt\n./a.txt\n./b/nested/c.py\n./data.txt"),
    (
        {"pattern": "^ap", "output_mode": "content", "-n": True, "path": "data.txt"},
        "data.txt:1:apple\ndata.txt:3:apricot",
    ),
    ({"pattern": "^ap", "output_mode": "content", "path": "./data.txt"}, "./data.txt:apple\n./data.txt:apricot"),
    ({"pattern": "AP", "-i": True, "glob": "*.py", "path": "b"}, "b/nested/c.py"),
    ({"pattern": "ap", "glob": "b/**/*.{py,txt}"}, "./b/nested/c.py"),
    ({"pattern": "ap", "glob": "/*.txt"}, "./.hidden.txt\n./a.txt\n./data.txt"),
    ({"pattern": "ap", "glob": "!*.txt"}, "./b/nested/c.py"),
    ({"pattern": "ap", "glob": "!b"}, "./.hidden.txt\n./a/a.txt\n./a.txt\n./data.txt"),
    ({"pattern": "ap", "glob": "*.py", "path": "data.txt"}, "data.txt"),
    (
        {"pattern": "ap", "output_mode": "count", "path": "."},
        "./.hidden.txt:1\n./a/a.txt:1\n./a.txt:2\n./b/nested/c.py:1\n./data.txt:2",
    ),
    (
        {"pattern": "berry", "output_mode": "content", "-n": True, "-C": 1, "path": "data.txt"},
        "data.txt-1-apple\ndata.txt:2:blueberry\ndata.txt-3-apricot\n--\ndata.txt-6-\ndata.txt:7:cranberry\ndata.txt:8:elderberry",
    ),
    ({"pattern": "cherry", "output_mode": "content", "-A": 1, "path": "data.txt"}, "data.txt:cherry\ndata.txt-d g"),
    ({"pattern": "apple$", "output_mode": "content", "-B": 1}, "./a.txt:an apple\n--\n./data.txt:apple"),
    (
        {
            "pattern": "apple\\nblue.*?apr",
            "multiline": True,
            "output_mode": "content",
            "-n": True,
            "path": "data.txt",
        },
        "data.txt:1:apple\ndata.txt:2:blueberry\ndata.txt:3:apricot",
    ),
    ({"pattern": "ap", "head_limit": 2}, "./.hidden.txt\n./a/a.txt"),
    ({"pattern": "ap", "head_limit": -2, "path": "data.txt", "-A": -3}, "data.txt"),
    ({"pattern": "a(?!p)", "path": "data.txt", "output_mode": "content"}, "data.txt:cranberry"),
    ({"pattern": "nowhere to be found"}, "No matches found."),
    ({"pattern": "NUL-file|utf16|bom|caf"}, "./bom.txt\n./latin1.txt\n./utf16.txt"),
    (
        {"pattern": "^bom|utf16|caf", "output_mode": "content"},
        "./bom.txt:bom\n./latin1.txt:caf\ufffd\n./utf16.txt:utf16",
    ),
    ({"pattern": "NUL-file", "path": "binary"}, "No matches found."),
    ({"pattern": "-x"}, "No matches found."),
    ({"pattern": "x{"}, "./b/nested/c.py"),
    ({"pattern": "[[:upper:]]{3}-"}, "No matches found."),
    ({"pattern": "raw name", "glob": "*.txt", "output_mode": "content"}, "./\ufffd/\ufffd.txt:raw name \ufffd"),
    ({"pattern": "raw name", "path": "odd \u00e9\n"}, "odd \u00e9\n"),
]


def _tree(root: Path) -> None:
    files = {
        "data.txt": "apple\nblueberry\napricot\ncherry\nd g\n\ncranberry\nelderberry\n",
        "a.txt": "an apple\r\nap\r\n",
        "a/a.txt": "ap",
        "b/nested/c.py": "def ap(): x{\n",
        ".hidden.txt": "ap\n",
        ".git/config": "ap\n",
        "empty": "",
        "binary": b"ap NUL-file\n\0\n",
        "bom.txt": b"\xef\xbb\xbfbom\n",
        "latin1.txt": b"caf\xe9\n",
        "utf16.txt": "utf16\n".encode("utf-16"),
        ".gitignore": "data.txt\n",
        os.fsdecode(b"\xff/\xfe.txt"): b"raw name \xff\n",
        "odd \u00e9\n": "raw name\n",
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (root / "link").symlink_to("data.txt")
    (root / "loop").symlink_to(".")
    os.mkfifo(root / "pipe")


@pytest.mark.parametrize(("arguments", "text"), SEARCHES)
async def test_the_search_in_python(tmp_path: Path, arguments: dict[str, Any], text: str) -> None:
    _tree(tmp_path)
    async with tool_session(tmp_path, path=NO_PROGRAMS) as ctx:
        with anyio.fail_after(WAIT_S):
            outcome = await call(ctx, "grep", **arguments)
    assert (outcome.text, outcome.ok) == (text, True)


@pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed")
@pytest.mark.parametrize(("arguments", "text"), SEARCHES)
async def test_ripgrep_finds_and_shows_the_same(tmp_path: Path, arguments: dict[str, Any], text: str) -> None:
    _tree(tmp_path)
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            outcome = await call(ctx, "grep", **arguments)
    assert (outcome.text, outcome.ok) == (text, True)


@pytest.mark.parametrize("path", [NO_PROGRAMS, os.environ["PATH"]])
async def test_invalid_arguments_are_failures_with_a_reason(tmp_path: Path, path: str) -> None:
    _tree(tmp_path)
    async with tool_session(tmp_path, path=path) as ctx:
        for arguments, text in (
            ({"path": "missing"}, "Path missing does not exist. Please provide a valid path."),
            ({"path": "pipe"}, "Path pipe is neither a file nor a directory."),
            ({"path": "a\0"}, "'a\\x00' is not a valid path. Please provide a valid path."),
            ({"glob": "[z-a]"}, "glob '[z-a]' is not valid. Use *, **, ?, [abc] and {a,b}."),
            ({"pattern": "a\0"}, "The pattern contains a NUL character. Binary files are not searched; remove it."),
        ):
            outcome = await call(ctx, "grep", **{"pattern": "x", **arguments})
            assert (outcome.text, outcome.ok) == (text, False)
        invalid = await call(ctx, "grep", pattern="(")
        assert invalid.text.startswith("Pattern '(' is not a valid regular expression: ")
        assert not invalid.ok
        huge = await call(ctx, "grep", pattern="a{99999999999999999999}")
        assert not huge.ok


@pytest.mark.parametrize("path", [NO_PROGRAMS, os.environ["PATH"]])
async def test_long_results_are_cut_with_a_note(tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep, "OUTPUT_LIMIT", 100)
    monkeypatch.setattr(engine, "LINE_LIMIT", 30)
    (tmp_path / "a").write_text(f"{'x' * 50}\n" * 5_000)
    (tmp_path / "b").write_text("x\n")
    async with tool_session(tmp_path, path=path) as ctx:
        with anyio.fail_after(WAIT_S):
            outcome = await call(ctx, "grep", pattern="x", output_mode="content")
    line = f"./a:{'x' * 30} [20 more characters]"
    assert outcome.text == (
        f"{line}\n{line}\n[Stopped here: too many matches. Use a narrower pattern, path or glob.]"
    )


@pytest.mark.parametrize("path", [NO_PROGRAMS, os.environ["PATH"]])
async def test_a_search_can_be_cancelled(tmp_path: Path, path: str) -> None:
    for number in range(50):
        (tmp_path / f"{number}").write_text("x\n" * 1000)
    async with tool_session(tmp_path, path=path) as ctx:
        with anyio.fail_after(WAIT_S):
            with anyio.move_on_after(0) as scope:
                await call(ctx, "grep", pattern="x", output_mode="content")
            assert scope.cancelled_caught


async def test_reading_asks_for_the_searched_path(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        request = permission(ctx, "grep", pattern="x", path="src")
    assert request is not None
    assert request.kind == "read"
    assert (request.path, request.intention) == (str(tmp_path / "src"), "Search for x")
