from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from jumpseat.tools.files import unified_diff
from tests.tools.session import call, prepared_call, tool_session

pytestmark = pytest.mark.anyio


async def test_create_writes_the_file_and_its_parent_directories(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "new.txt"
    async with tool_session(tmp_path) as ctx:
        outcome = await call(ctx, "create", path=str(path), file_text="Grüße\r\nb")
    assert outcome.text == f"Created file {path} with 8 characters"
    assert path.read_bytes() == "Grüße\r\nb".encode()
    assert outcome.detail == (
        f"--- /dev/null\n+++ b/{str(path)[1:]}\n@@ -0,0 +1,2 @@\n+Grüße\r\n+b\n\\ No newline at end of file\n"
    )


async def test_create_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "sub").mkdir()
    (tmp_path / "linked").symlink_to("sub", target_is_directory=True)
    async with tool_session(tmp_path) as ctx:
        for path in (".", "sub", "linked"):
            outcome = await call(ctx, "create", path=path, file_text="new")
            assert outcome.text == f"Path {path} is a folder. Choose another path, such as one in it."
        for path in ("old.txt", "link"):
            outcome = await call(ctx, "create", path=path, file_text="new")
            assert not outcome.ok
            assert outcome.text == f"Path {path} already exists. Use edit to change it, or choose another path."
    assert (tmp_path / "old.txt").read_text() == "old"


async def test_create_failures_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with tool_session(tmp_path) as ctx:
        under_file = await call(ctx, "create", path="file/x", file_text="")
        nul = await call(ctx, "create", path="a\0", file_text="")
        long = await call(ctx, "create", path="x" * 300, file_text="")
    assert under_file.text == f"{tmp_path / 'file'} is a file, so file/x cannot be created in it."
    assert nul.text == "'a\\x00' is not a valid path. Please provide a valid path."
    assert long.text == f"Path {'x' * 300} cannot be accessed: File name too long."
    assert os.listdir(tmp_path) == ["file"]


async def test_edit_replaces_the_one_occurrence_and_shows_the_change(tmp_path: Path) -> None:
    path = tmp_path / "edit_me.txt"
    path.write_text("Hello World\nGoodbye World\n")
    async with tool_session(tmp_path) as ctx:
        prepared = await prepared_call(
            ctx, "edit", path="edit_me.txt", old_str="Hello World", new_str="Hi Universe"
        )
        outcome = await call(ctx, "edit", path=str(path), old_str="Hello World", new_str="Hi Universe")
    diff = (
        f"--- a/{str(path)[1:]}\n+++ b/{str(path)[1:]}\n"
        "@@ -1,2 +1,2 @@\n-Hello World\n+Hi Universe\n Goodbye World\n"
    )
    assert outcome.text == f"File {path} updated with changes."
    assert outcome.detail == diff
    assert path.read_text() == "Hi Universe\nGoodbye World\n"
    request = prepared.permission
    assert request is not None
    assert request.kind == "write"
    assert (request.file_name, request.diff) == (str(path), diff)


async def test_edit_keeps_mode_links_line_endings_and_undecodable_bytes(tmp_path: Path) -> None:
    real = tmp_path / "real.sh"
    real.write_bytes(b"one\r\ntwo\r\n\xff\r\n")
    real.chmod(0o751)
    (tmp_path / "link.sh").symlink_to("real.sh")
    async with tool_session(tmp_path) as ctx:
        outcome = await call(ctx, "edit", path="link.sh", old_str="one\ntwo", new_str="1\n2\n3")
        assert outcome.ok
    assert real.read_bytes() == b"1\r\n2\r\n3\r\n\xff\r\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o751
    assert (tmp_path / "link.sh").is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link.sh", "real.sh"]
    assert outcome.detail is not None
    outcome.detail.encode()


async def test_edit_of_a_file_with_mixed_endings_finds_both_kinds(tmp_path: Path) -> None:
    path = tmp_path / "mixed"
    path.write_bytes(b"a\r\nb\r\nc\nd\r\n")
    async with tool_session(tmp_path) as ctx:
        assert (await call(ctx, "edit", path="mixed", old_str="c\nd", new_str="C\nD")).ok
    assert path.read_bytes() == b"a\r\nb\r\nC\nD\r\n"


@pytest.mark.parametrize(
    ("old_str", "new_str", "text"),
    [
        (
            "three",
            "x",
            "old_str was not found in a.txt. View the file and copy the text exactly, including white space.",
        ),
        (
            "one",
            "x",
            "old_str occurs 3 times in a.txt (lines 1, 3, 4). Add surrounding lines to it so that it occurs once."
            "\n1. one\n3. one\n4. one",
        ),
        ("", "x", "old_str is empty. Give the exact text to replace; use create for a new file."),
        ("two", "two", "old_str and new_str are the same: nothing to change."),
    ],
)
async def test_edit_explains_why_it_changes_nothing(tmp_path: Path, old_str: str, new_str: str, text: str) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\none\none")
    async with tool_session(tmp_path) as ctx:
        outcome = await call(ctx, "edit", path="a.txt", old_str=old_str, new_str=new_str)
        prepared = await prepared_call(ctx, "edit", path="a.txt", old_str=old_str, new_str=new_str)
    assert (outcome.text, outcome.ok) == (text, False)
    # The orchestrator asks nobody if the session may read the file.
    assert prepared.refusal == outcome
    assert prepared.permission is not None
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\none\none"


async def test_edits_of_one_file_are_made_together_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("a = 1\nb = 2\na2 = a\n")
    first, second = {"old_str": "a = 1", "new_str": "a = 3"}, {"old_str": "b = 2", "new_str": "b = a"}
    async with tool_session(tmp_path) as ctx:
        failed = await call(ctx, "edit", path="a.py", edits=[first, {"old_str": "c = 3", "new_str": ""}])
        assert path.read_text() == "a = 1\nb = 2\na2 = a\n"
        made = await call(ctx, "edit", path="a.py", **first, edits=[second])
        assert path.read_text() == "a = 3\nb = a\na2 = a\n"
        everywhere = await call(ctx, "edit", path="a.py", old_str="a", new_str="x", replace_all=True)
    assert failed.text.startswith("Edit 2 of 2: old_str was not found in a.py.")
    assert failed.text.endswith("\nNone of the edits was made.")
    assert made.text == "File a.py updated with changes."
    assert everywhere.text == "File a.py updated with changes.\nold_str was replaced 4 times."
    assert path.read_text() == "x = 3\nb = x\nx2 = x\n"


async def test_an_edit_with_a_slip_shows_the_change_that_it_makes_and_says_what_differed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    return 'x'\n")
    async with tool_session(tmp_path) as ctx:
        prepared = await prepared_call(
            ctx, "edit", path="a.py", old_str="return \u2018x\u2019  ", new_str="return \u2018y\u2019"
        )
        assert prepared.permission is not None
        assert prepared.permission.kind == "write"
        assert "-    return 'x'\n+    return 'y'\n" in prepared.permission.diff
        outcome = await prepared.run()
    assert outcome.text == (
        "File a.py updated with changes.\n"
        "old_str matched line 2 but for trailing blanks, indentation and typographic characters."
    )
    assert outcome.detail == prepared.permission.diff


async def test_nobody_is_asked_to_create_what_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    async with tool_session(tmp_path) as ctx:
        refusals = {
            path: (await prepared_call(ctx, "create", path=path, file_text="")).refusal for path in ("a", "a/b")
        }
    assert refusals["a"] is not None
    assert refusals["a/b"] is not None
    assert refusals["a/b"].text == f"{tmp_path / 'a'} is a file, so a/b cannot be created in it."


async def test_editing_anything_but_a_text_file_fails(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"a\0b")
    async with tool_session(tmp_path) as ctx:
        for path, text in {
            "missing": "Path missing does not exist. Please provide a valid path.",
            "binary": "File binary is binary and cannot be edited as text.",
            ".": "Path . is not a file. Give the path of a text file.",
            "a\0": "'a\\x00' is not a valid path. Please provide a valid path.",
        }.items():
            outcome = await call(ctx, "edit", path=path, old_str="a", new_str="b")
            assert (outcome.text, outcome.ok) == (text, False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
async def test_edit_respects_a_read_only_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "a").chmod(0o444)
    async with tool_session(tmp_path) as ctx:
        outcome = await call(ctx, "edit", path="a", old_str="a", new_str="b")
    assert outcome.text == "File a is read-only."


async def test_diffs_have_the_right_places_and_little_context() -> None:
    before = "".join(f"line {number}\n" for number in range(1, 101))
    after = before.replace("line 50\n", "fifty\n").replace("line 52\n", "")
    assert unified_diff("/x/y", before, after) == (
        "--- a/x/y\n+++ b/x/y\n@@ -47,9 +47,8 @@\n line 47\n line 48\n line 49\n-line 50\n+fifty\n line 51\n"
        "-line 52\n line 53\n line 54\n line 55\n"
    )
    assert unified_diff("x", "a\n", "a") == (
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n"
    )
    assert unified_diff("x", "a\na\n", "a\na\na\n") == "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n a\n+a\n"
    assert unified_diff("x", "a\n", "") == "--- a/x\n+++ b/x\n@@ -1 +0,0 @@\n-a\n"


async def test_edit_inserts_lines_for_models_that_count_them_and_keeps_the_endings(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    async with tool_session(tmp_path) as ctx:

        async def inserted(before: str, line: int, text: str) -> bytes:
            path.write_bytes(before.encode())
            outcome = await call(ctx, "edit", path="lines.txt", old_str="", new_str=text, insert_line=line)
            assert outcome.ok, outcome.text
            return path.read_bytes()

        assert await inserted("a\nb\n", 0, "x") == b"x\na\nb\n"
        assert await inserted("a\nb\n", 1, "x\n") == b"a\nx\nb\n"
        assert await inserted("a\nb", 2, "x") == b"a\nb\nx\n"
        assert await inserted("a\r\nb\r\n", 1, "x\ny") == b"a\r\nx\r\ny\r\nb\r\n"
        assert await inserted("a\x0bb\n", 1, "x") == b"a\x0bb\nx\n"
        assert await inserted("", 0, "x") == b"x\n"
        beyond = await call(ctx, "edit", path="lines.txt", old_str="", new_str="x", insert_line=9)

    assert beyond.text == "insert_line 9 is not in lines.txt, which has 1 lines."
    assert path.read_bytes() == b"x\n"
