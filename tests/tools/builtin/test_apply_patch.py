"""``apply_patch``: the files of a patch change together, or none does."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from jumpseat.tools.tool import ToolOutcome
from jumpseat_protocol.permissions import WritePermission
from tests.support.cases import all_cases
from tests.tools.session import call, prepared_call, tool_session

pytestmark = pytest.mark.anyio

PATCH = """\
*** Begin Patch
*** Update File: a.py
@@
 def f():
-    return 1
+    return 2
*** Add File: new/b.py
+x = 1
*** Delete File: c.py
*** Update File: d.py
*** Move to: e.py
@@
-old
+new
*** End Patch
"""
LEFT = {"a.py": "def f():\n    return 1\n", "c.py": "c\n", "d.py": "old\n"}
MADE = {"a.py": "def f():\n    return 2\n", "e.py": "new\n", "new/b.py": "x = 1\n"}


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


async def patched(folder: Path, text: str) -> ToolOutcome:
    async with tool_session(folder) as ctx:
        return await call(ctx, "apply_patch", input=text)


async def test_a_patch_changes_several_files_after_one_question_with_all_of_them(tmp_path: Path) -> None:
    write(tmp_path, LEFT)
    (tmp_path / "d.py").chmod(0o751)
    async with tool_session(tmp_path) as ctx:
        prepared = await prepared_call(ctx, "apply_patch", input=PATCH)
        assert files(tmp_path) == LEFT
        outcome = await prepared.run()

    assert outcome.text == "Changed a.py.\nCreated new/b.py.\nMoved d.py to e.py.\nDeleted c.py."
    assert files(tmp_path) == MADE
    assert stat.S_IMODE((tmp_path / "e.py").stat().st_mode) == 0o751
    request = prepared.permission
    assert isinstance(request, WritePermission)
    assert (request.intention, request.file_name) == ("Change a.py, new/b.py, c.py and more", str(tmp_path))
    assert request.diff == outcome.detail
    folder = str(tmp_path)[1:]
    assert [line for line in request.diff.splitlines() if line.startswith(("---", "+++"))] == [
        *(f"--- a/{folder}/a.py", f"+++ b/{folder}/a.py", "--- /dev/null", f"+++ b/{folder}/new/b.py"),
        *(f"--- a/{folder}/d.py", f"+++ b/{folder}/e.py", f"--- a/{folder}/c.py", "+++ /dev/null"),
    ]
    sides = [
        (edit.before and edit.before.content, edit.after and edit.after.content)
        for edit in request.file_edits or ()
    ]
    assert sides == [(LEFT["a.py"], MADE["a.py"]), (None, "x = 1\n"), ("old\n", "new\n"), ("c\n", None)]
    assert [Path(file.path).name for file in request.files] == ["a.py", "b.py", "d.py", "e.py", "c.py"]


async def test_a_patch_of_one_file_names_it_and_says_what_was_matched(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "def f():\n    if x:\n        return 1\n"})
    text = "*** Update File: a.py\n@@ def f():\n if x:\n-    return 1\n+    return 2\n"
    async with tool_session(tmp_path) as ctx:
        prepared = await prepared_call(ctx, "apply_patch", input=text)
        outcome = await prepared.run()

    assert isinstance(prepared.permission, WritePermission)
    assert prepared.permission.file_name == str(tmp_path / "a.py")
    assert outcome.text == "Changed a.py.\n  The hunk matched lines 2-3 but for indentation."
    assert files(tmp_path) == {"a.py": "def f():\n    if x:\n        return 2\n"}


REFUSED = {
    "a hunk that does not fit": ("*** Update File: d.py\n@@\n-none\n+new\n", "The hunk was not found in d.py."),
    "a missing file": ("*** Update File: x.py\n@@\n-a\n+b\n", "Path x.py does not exist."),
    "a missing file to delete": ("*** Delete File: x.py\n", "Path x.py does not exist."),
    "a new file that exists": ("*** Add File: d.py\n+x\n", "Path d.py already exists. Update the file"),
    "a new file where a folder is": ("*** Add File: folder\n+x\n", "Path folder is a folder."),
    "a move onto a folder": ("*** Update File: d.py\n*** Move to: folder\n", "Path folder is a folder."),
    "a move onto a file": ("*** Update File: d.py\n*** Move to: c.py\n", "Path c.py already exists."),
    "a file below a file": ("*** Add File: d.py/x\n+x\n", "is a file, so d.py/x cannot be created in it."),
    "a folder": ("*** Delete File: folder\n", "Path folder is not a file."),
    "a link to delete": ("*** Delete File: link\n", "link is a symbolic link."),
    "a file deleted before": (
        "*** Delete File: d.py\n*** Update File: d.py\n@@\n-old\n+new\n",
        "by the same patch",
    ),
    "an invalid path": ("*** Add File: \0\n+x\n", "is not a valid path."),
}


async def test_a_change_that_cannot_be_made_leaves_all_files(tmp_path: Path) -> None:
    write(tmp_path, LEFT)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("d.py")
    before = files(tmp_path)
    with all_cases() as case:
        for name, (text, reason) in REFUSED.items():
            with case(name):
                outcome = await patched(
                    tmp_path, f"*** Update File: a.py\n@@\n-    return 1\n+    return 2\n{text}"
                )
                assert outcome.status == "failure"
                assert reason in outcome.text
                assert outcome.text.endswith("No file was changed.")
                assert files(tmp_path) == before


async def test_the_changes_of_one_file_follow_each_other(tmp_path: Path) -> None:
    write(tmp_path, LEFT)
    outcome = await patched(
        tmp_path,
        "*** Add File: n.py\n+one\n*** Update File: ./n.py\n@@\n-one\n+two\n"
        "*** Update File: a.py\n@@\n-    return 1\n+    return 2\n"
        "*** Update File: x/../a.py\n@@\n-    return 2\n+    return 3\n"
        "*** Delete File: d.py\n*** Add File: d.py\n+new\n"
        "*** Update File: c.py\n*** Move to: m.py\n*** Update File: m.py\n@@\n-c\n+m\n",
    )
    assert outcome.ok, outcome.text
    assert files(tmp_path) == {"n.py": "two\n", "a.py": "def f():\n    return 3\n", "d.py": "new\n", "m.py": "m\n"}


async def test_files_are_restored_if_a_change_fails_in_between(tmp_path: Path) -> None:
    write(tmp_path, LEFT)
    # No file can be created there, which shows when it is tried.
    text = PATCH.replace("*** End Patch", "*** Add File: /proc/none/x\n+x")
    outcome = await patched(tmp_path, text)
    assert outcome.status == "failure"
    assert outcome.text.startswith("Path /proc/none/x ")
    assert outcome.text.endswith("\nNo file was changed.")
    assert files(tmp_path) == LEFT


async def test_a_patch_that_deletes_what_it_creates_changes_nothing(tmp_path: Path) -> None:
    outcome = await patched(tmp_path, "*** Add File: n.py\n+x\n*** Delete File: n.py\n")
    assert outcome.text == "The patch changes nothing: it deletes what it creates."
    assert files(tmp_path) == {}


async def test_a_question_names_the_real_place_of_a_path_with_parent_folders(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "link").symlink_to(tmp_path / "elsewhere" / "deep")
    async with tool_session(tmp_path / "project") as ctx:
        for name, place in {"../x": "x", "link/../x": "elsewhere/x", "./a/../x": "project/x"}.items():
            patch = f"*** Begin Patch\n*** Add File: {name}\n+a\n*** End Patch"
            asked = [
                (await prepared_call(ctx, "apply_patch", input=patch)).permission,
                (await prepared_call(ctx, "create", path=name, file_text="a")).permission,
            ]
            assert [getattr(request, "file_name", None) for request in asked] == [str(tmp_path / place)] * 2
