"""Patches as models write them, and the places of their hunks."""

from __future__ import annotations

import json

import pytest

from jumpseat.tools.edits.engine import Landed, Refused
from jumpseat.tools.edits.hunks import apply_hunks
from jumpseat.tools.edits.patches import FilePatch, PatchError, named_files, parse_patch
from tests.support.cases import check_each

FILE = """\
import os


def first(a):
    size = a + 1
    return size


class Second:
    def first(self):
        size = 2
        return size

    def last(self):
        size = 3
        return size
"""

BODY = """\
*** Update File: a.py
@@ def first(a):
-    size = a + 1
+    size = a + 2
*** Add File: new.txt
+one
+
+*** two
*** Delete File: old.txt
*** Update File: b.py
*** Move to: c.py
"""
PATCH = f"*** Begin Patch\n{BODY}*** End Patch\n"

WRAPPED = {
    "as it should be": PATCH,
    "with line ends of Windows": PATCH.replace("\n", "\r\n"),
    "without begin and end": BODY,
    "without begin": f"{BODY}*** End Patch",
    "without end": f"*** Begin Patch\n{BODY}",
    "indented": "".join(f"    {line}\n" for line in PATCH.splitlines()),
    "after a sentence": f"Here is the patch:\n\n{PATCH}\nIt changes four files.",
    "in a code fence": f"```diff\n{PATCH}```\n",
    "in a code fence, without end": f"```\n*** Begin Patch\n{BODY}```\n",
    "as a shell command": f"apply_patch <<'EOF'\n{PATCH}EOF\n",
    "as a shell command, without end": f'apply_patch << "PATCH"\n{BODY}PATCH',
    "as arguments of a shell": json.dumps(["apply_patch", PATCH]),
    "as arguments of a tool": json.dumps({"input": PATCH}),
    "with escaped line ends": PATCH.strip().replace("\n", "\\n"),
    "in two parts": PATCH.replace("*** Add File", "*** End Patch\n*** Begin Patch\n*** Add File"),
    "with other words": PATCH.replace("Add File", "Create File").replace("Delete File", "Remove File"),
    "with names in quotes": PATCH.replace("a.py", "`a.py`").replace("File: b.py", "File:'b.py' "),
}


def test_what_models_write_around_a_patch_is_forgiven() -> None:
    expected = parse_patch(PATCH)
    assert [(patch.action, patch.path, patch.move_to) for patch in expected] == [
        ("update", "a.py", None),
        ("add", "new.txt", None),
        ("delete", "old.txt", None),
        ("update", "b.py", "c.py"),
    ]
    assert expected[1].text == "one\n\n*** two\n"

    def check(text: str) -> None:
        assert parse_patch(text) == expected

    check_each(WRAPPED, check)
    assert named_files(PATCH) == ["a.py", "new.txt", "old.txt", "b.py"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "The patch names no file. Write *** Begin Patch, then"),
        ("--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x\n+y\n", "The patch names no file."),
        ("*** Begin Patch\nx\n*** Delete File: a\n*** End Patch", "The patch begins with 'x' instead of a file."),
        ("*** Update File: a.py\n@@\n x\n", "The patch of a.py changes nothing"),
        ("*** Update File: a.py\n", "The patch of a.py changes nothing"),
        ("*** Add File: a.py\n+x\ny\n", "Each line of the new file a.py begins with +, but not 'y'."),
        ("*** Delete File: a.py\n+x\n", "Expected nothing after *** Delete File: a.py, found '+x'."),
        ("*** Add File:  \n+x\n", "names no file"),
    ],
)
def test_a_patch_without_a_clear_meaning_is_refused(text: str, reason: str) -> None:
    with pytest.raises(PatchError) as refused:
        parse_patch(text)
    assert reason in str(refused.value)


def applied(body: str, text: str = FILE) -> Landed | Refused:
    (patch,) = parse_patch(f"*** Update File: a.py\n{body}")
    assert isinstance(patch, FilePatch)
    return apply_hunks(text, patch.hunks, "a.py")


TWO = "        size = 2\n", "        size = 20\n"
LANDING = {
    "an exact hunk": (
        "@@\n     def first(self):\n-        size = 2\n+        size = 20\n         return size\n",
        *TWO,
    ),
    "without marks of unchanged lines": ("@@\n    def first(self):\n-        size = 2\n+        size = 20\n", *TWO),
    "with trailing blanks": ("@@\n     def first(self):  \n-        size = 2 \n+        size = 20\n", *TWO),
    "with less indentation": ("@@\n def first(self):\n-    size = 2\n+    size = 20\n", *TWO),
    "with the class above": ("@@ class Second:\n-        size = 2\n+        size = 20\n", *TWO),
    "with the class and the method above": (
        "@@ class Second:\n@@ def first\n         size = 2\n-        return size\n+        return 0\n",
        "size = 2\n        return size",
        "size = 2\n        return 0",
    ),
    "with the line numbers of a unified diff": (
        "--- a/a.py\n+++ b/a.py\n@@ -10,3 +10,3 @@ class Second:\n     def first(self):\n-        size = 2\n"
        "+        size = 20\n",
        *TWO,
    ),
    "with a line above that the file does not have": (
        "@@ class Third:\n-        size = 2\n+        size = 20\n",
        *TWO,
    ),
    "new lines below a line": (
        "@@ def last(self):\n+        check()\n",
        "(self):\n        size = 3",
        "(self):\n        check()\n        size = 3",
    ),
    "new lines at the end": ("@@\n+X = 1\n", FILE[-20:], FILE[-20:] + "X = 1\n"),
    "the end of the file": (
        "@@\n-        return size\n+        return 4\n*** End of File\n",
        "size = 3\n        return size",
        "size = 3\n        return 4",
    ),
    "two hunks in the order of the file": (
        "@@\n     def last(self):\n-        size = 3\n+        size = 2\n"
        "@@\n-        return size\n+        return 1\n",
        "size = 3\n        return size",
        "size = 2\n        return 1",
    ),
    "a deletion": ("@@\n-import os\n", "import os\n", ""),
}


def test_a_hunk_lands_where_it_fits_and_nowhere_else() -> None:
    def check(case: tuple[str, str, str]) -> None:
        body, old, new = case
        result = applied(body)
        assert isinstance(result, Landed), result
        before, after = FILE.rsplit(old, 1)
        assert result.text == before + new + after

    check_each(LANDING, check)
    slips = applied(LANDING["with less indentation"][0])
    assert isinstance(slips, Landed)
    assert slips.notes == ("The hunk matched lines 10-11 but for indentation.",)


REFUSED = {
    "two places": (
        "@@\n-        return size\n+        return 1\n",
        "The hunk occurs 2 times in a.py (lines 12, 16).",
    ),
    "two blocks": ("@@ def first\n+    x = 1\n", "'def first' occurs 2 times in a.py."),
    "another block": (
        "@@ def last(self):\n-        size = 2\n+        size = 20\n",
        "The hunk was not found in a.py in the block that begins with 'def last(self):'.",
    ),
    "another number": (
        "@@\n     def last(self):\n-        size = 4\n+        size = 5\n",
        "This is the nearest text; the lines with - are in the file, those with + in the hunk:\n",
    ),
    "the second of two hunks": (
        "@@\n-import os\n+import re\n@@\n-        x = 4\n+        x = 5\n",
        "Hunk 2 was not found in a.py.",
    ),
    "what is there already": (
        "@@\n-        size = 22\n-        go()\n+        size = 2\n+        return size\n",
        "The new text of the hunk is in a.py already (lines 11-12): nothing to change.",
    ),
    "an omission": ("@@\n-import os\n+# ... existing code ...\n", "The new text of the hunk leaves out text"),
}


def test_what_is_uncertain_is_refused_with_the_place() -> None:
    def check(case: tuple[str, str]) -> None:
        body, reason = case
        result = applied(body)
        assert isinstance(result, Refused), result
        assert reason in result.reason
        assert result.reason.count("\n") < 30

    check_each(REFUSED, check)


def test_the_form_of_the_file_stays() -> None:
    windows = applied("@@\n-import os\n+import re\n+import io\n", FILE.replace("\n", "\r\n"))
    unfinished = applied("@@\n+import re\n import os\n", "import os")

    assert windows == Landed(FILE.replace("import os\n", "import re\nimport io\n").replace("\n", "\r\n"))
    assert unfinished == Landed("import re\nimport os")


def test_unchanged_lines_stay_whatever_the_encoding_of_the_others() -> None:
    text = 'x = "a"\ny = 1\n'
    for new in ('y = "b"', "y = &quot;b&quot;"):
        assert applied(f"@@\n x = &quot;a&quot;\n-y = 1\n+{new}\n", text) == Landed(
            'x = "a"\ny = "b"\n', ("The hunk matched but for entities.",)
        )
