"""Edits with the slips that models make: they land as if there were none, or are refused."""

from __future__ import annotations

import pytest

from jumpseat.tools.edits.engine import Edit, Landed, Refused, apply_edit, apply_edits
from tests.support.cases import all_cases, check_each

FILE = """\
import os


def area(width, height):
    # the "inner" size
    size = width * height  # px
    if size > 10:
        return size - 1

    return size


def name():
    return 'café \u2013 it\\'s'
"""


def landed(old: str, new: str, text: str = FILE) -> Landed:
    result = apply_edit(text, Edit(old, new), "a.py")
    assert isinstance(result, Landed), result
    return result


def refused(old: str, new: str, text: str = FILE) -> str:
    result = apply_edit(text, Edit(old, new), "a.py")
    assert isinstance(result, Refused), result
    return result.reason


def edited(old: str, new: str) -> str:
    """Return the file with a text replaced that occurs once."""
    assert FILE.count(old) == 1
    return FILE.replace(old, new)


SIZE = "    if size > 10:\n        return size - 1\n"
LARGER = "    if size > 20:\n        log(size)\n        return size - 1\n"
LANDING = {
    "as it is": (SIZE, LARGER),
    "trailing blanks": ("    if size > 10:  \n        return size - 1 \n", LARGER),
    "line ends": (SIZE.replace("\n", "\r\n"), LARGER.replace("\n", "\r\n")),
    "at the margin": (
        "if size > 10:\n    return size - 1\n",
        "if size > 20:\n    log(size)\n    return size - 1\n",
    ),
    "one level deeper": (
        "        if size > 10:\n            return size - 1\n",
        "        if size > 20:\n            log(size)\n            return size - 1\n",
    ),
    "without the first indentation": (SIZE.lstrip(), LARGER.lstrip()),
    "without the first indentation, but the new text has it": (SIZE.lstrip(), LARGER),
    "tabs": (
        "\tif size > 10:\n\t\treturn size - 1\n",
        "\tif size > 20:\n\t\tlog(size)\n\t\treturn size - 1\n",
    ),
    "two blanks per level": (
        "  if size > 10:\n    return size - 1\n",
        "  if size > 20:\n    log(size)\n    return size - 1\n",
    ),
    "blank lines around": ("\n\n" + SIZE + "\n\n", "\n\n" + LARGER + "\n\n"),
    "long dashes and special spaces": (
        SIZE.replace("-", "\u2013").replace(" >", "\u00a0>"),
        LARGER.replace("-", "\u2013").replace(" >", "\u00a0>"),
    ),
    "runs of blanks": (SIZE.replace(" > ", "  >  "), LARGER),
    "line numbers": (
        "7.     if size > 10:\n8.         return size - 1",
        "7.     if size > 20:\n8.         log(size)\n9.         return size - 1",
    ),
    "a code fence": (f"```python\n{SIZE}```", f"```python\n{LARGER}```"),
    "escaped line ends": (SIZE.replace("\n", "\\n"), LARGER.replace("\n", "\\n")),
    "entities": (SIZE.replace(">", "&gt;"), LARGER.replace(">", "&gt;")),
    "numeric entities, and entities for spaces": (
        SIZE.replace(">", "&#62;").replace("size -", "size&nbsp;-"),
        LARGER.replace(">", "&#x3E;").replace("size -", "size&nbsp;-"),
    ),
    "signs as JSON has them": (SIZE.replace(">", "\\u003e"), LARGER.replace(">", "\\u003E")),
    "marks of a patch": (
        "-    if size > 10:\n         return size - 1",
        "+    if size > 20:\n+        log(size)\n         return size - 1",
    ),
    "quoted": (
        ">     if size > 10:\n>         return size - 1",
        ">     if size > 20:\n>         log(size)\n>         return size - 1",
    ),
    "an item of a list": (
        "- if size > 10:\n      return size - 1",
        "- if size > 20:\n      log(size)\n      return size - 1",
    ),
    "a search and its replacement": (
        f"<<<<<<< SEARCH\n{SIZE}=======\n",
        f"=======\n{LARGER}>>>>>>> REPLACE\n",
    ),
    "CDATA": (f"<![CDATA[{SIZE}]]>", f"<![CDATA[{LARGER}]]>"),
    "line numbers of other agents": (
        "L7:     if size > 10:\nL8:         return size - 1",
        "L7:     if size > 20:\nL8:         log(size)\nL9:         return size - 1",
    ),
    "matches of grep": (
        "7-    if size > 10:\n8-        return size - 1",
        "7-    if size > 20:\n8-        log(size)\n9-        return size - 1",
    ),
    "several slips": (
        "```\n7: if size &gt; 10:   \n8:     return size \u2013 1\n```",
        "```\n7: if size &gt; 20:\n8:     log(size)\n9:     return size \u2013 1\n```",
    ),
}


def test_an_edit_with_a_slip_gives_the_file_that_it_gives_without() -> None:
    after = edited(SIZE, LARGER)

    def check(edit: tuple[str, str]) -> None:
        assert landed(*edit).text == after

    check_each(LANDING, check)


def test_the_model_is_told_what_differed_and_nothing_where_nothing_did() -> None:
    assert landed(SIZE, LARGER).notes == ()
    assert landed(*LANDING["tabs"]).notes == ("old_str matched lines 7-8 but for indentation.",)
    assert landed(*LANDING["several slips"]).notes == (
        "old_str matched lines 7-8 but for trailing blanks, indentation, typographic characters, entities,"
        " line numbers and code fence.",
    )
    for old, text in (("b = 2\n", "a = 1\nb = 2"), ("\t= 2", "a = 1\nb  = 2\n")):
        assert landed(old, old.replace("2", "3"), text).notes == (
            "old_str matched line 2 but for white space around it.",
        )


def test_what_the_edit_does_not_change_keeps_its_bytes() -> None:
    text = "  a  = 1  \r\n\t\r\n  b   = \u201c2\u201d \r\n"
    assert landed('a = 1\n\nb = "2"', 'a = 1\n\nb = "3"\nc = 4', text).text == (
        "  a  = 1  \r\n\t\r\n  b   = \u201c3\u201d \r\n  c = 4\r\n"
    )


def test_letters_and_escaped_quotes_are_written_as_in_the_file() -> None:
    decomposed = "return 'cafe\u0301 \u2013 it\\'s'"
    assert landed(decomposed, decomposed.replace("return", "yield")).text == FILE.replace(
        "return 'caf", "yield 'caf"
    )
    assert landed('# the \\"inner\\" size', '# the \\"outer\\" size').text == FILE.replace("inner", "outer")


def test_an_exact_passage_within_an_indentation_takes_its_lines_along() -> None:
    text = "class A:\n    def f(self):\n        go()\n"
    nested = "class A:\n    def f(self):\n        if x:\n            go()\n"
    check_each(
        {
            "as a block at the margin": ("go()", "if x:\n    go()"),
            "with the indentation of the file": ("go()", "        if x:\n            go()"),
            "without that of the first line": ("go()", "if x:\n            go()"),
            "less indented": ("    go()", "    if x:\n        go()"),
        },
        lambda edit: check_text(text, edit, nested),
    )
    assert "the indentation of new_str is not certain" in refused("go()", "go()\nstop()", text)


def check_text(text: str, edit: tuple[str, str], after: str) -> None:
    assert landed(*edit, text).text == after


def test_lines_are_never_joined_because_a_line_break_is_missing() -> None:
    text = "a\nb\n\nc\n"
    assert landed("b\n", "x", text).text == "a\nx\n\nc\n"
    assert landed("\nb\n", "x", text).text == "a\nx\n\nc\n"
    assert landed("\nb", "x", text).text == "a\nx\n\nc\n"
    # Joining lines and deleting them may be what is meant.
    assert landed("a\nb", "ab", text).text == "ab\n\nc\n"
    assert landed("a\n", "a", text).text == "ab\n\nc\n"
    assert landed("a\n", "", text).text == "b\n\nc\n"


def test_signs_of_one_meaning_are_written_as_in_the_file() -> None:
    text = '\ufeffint f() {\n  p->x = "a" + \'b\';\n  q = "it\'s";\n}\n'
    check_each(
        {
            "arrows": ('p\u2192x = "a"', 'p\u2192y = "a"', text.replace("p->x", "p->y")),
            "the other quotes": (
                "p->x = 'a' + 'b';",
                "p->y = 'a' + 'c';",
                text.replace("x", "y").replace("'b'", "'c'"),
            ),
            "inline code": ('`p->x = "a"`', '`p->y = "a"`', text.replace("p->x", "p->y")),
            "the first line of a file with a mark": ("int f() {\n", "int g() {\n", text.replace("f()", "g()")),
            "a mark that is copied": ("\ufeffint f() {\n", "int g() {\n", text.replace("f()", "g()")),
        },
        lambda case: check_text(text, case[:2], case[2]),
    )
    # A quote within a string would end it.
    assert "which quotes are meant" in refused("q = 'it' + 's'", "x", "q = \"it' + 's\"\n")
    assert landed('"d\u00e9but"', '"d\u00e9tour"', '"d\\u00e9but"').text == '"d\\u00e9tour"'


def test_marks_that_the_file_has_are_not_taken_away() -> None:
    check_each(
        {
            "a list": ("- one\n", "- 1\n"),
            "a quote": ("> two", "> 2"),
            "numbers": ("3. three\n4. four", "3. 3\n4. four"),
            "a patch": ("-five\n+six", "-5\n+six"),
        },
        lambda edit: check_text(LISTS, edit, LISTS.replace(*edit)),
    )


LISTS = "- one\n> two\n3. three\n4. four\n-five\n+six\n"


REFUSED = {
    "another word": ("    if size > 10:\n        return width - 1\n", "x"),
    "another number": ("    if size > 11:\n", "x"),
    "another case": ("    IF size > 10:\n", "x"),
    "a number that the word goes on with": ("size > 1 ", "size > 2"),
    "an omission": ("    size = width * height  # px\n    ...\n    return size", "x"),
    "an omission in the new text": (SIZE, "    if size > 20:\n        # ... existing code ...\n"),
    "an omission without blanks": (SIZE, "    if size > 20:\n        // ...existing code...\n"),
    "an omission in brackets": (
        FILE[FILE.index("    if") : FILE.index("def name")],
        "    if size > 20:\n    # [rest of the code unchanged]\n\n\n",
    ),
    "a remark in place of lines": (
        FILE[FILE.index("    size =") : FILE.index("\n\ndef name")],
        "    size = width * height  # px\n    # unchanged\n    return size\n",
    ),
    "marks of both sides of a patch": ("-    if size > 10:\n+    if size > 20:\n", "x"),
    "two lines as one": ("    if size > 10: return size - 1\n", "x"),
}


def test_what_is_not_a_slip_is_refused_and_the_nearest_text_is_shown() -> None:
    def check(edit: tuple[str, str]) -> None:
        reason = refused(*edit)
        assert " 7.     if size > 10:" in reason or " 6.     size = width * height" in reason
        assert reason.count("\n") < 30

    check_each(REFUSED, check)
    assert refused(*REFUSED["another word"]) == (
        "old_str was not found in a.py."
        " This is the nearest text; the lines with - are in the file, those with + in old_str:\n"
        "  6.     size = width * height  # px\n"
        "  7.     if size > 10:\n"
        "- 8.         return size - 1\n"
        "+            return width - 1\n"
        "  9. "
    )


def test_the_nearest_text_of_a_line_with_a_wrong_word_is_that_line() -> None:
    text = (
        "def area(w, h):\n    size = w * h\n    if size > 10:\n"
        '        print("big", size)\n    return size - 1\n\n\ndef other(a):\n    return a\n'
    )
    cases = {
        "    retrun size - 1": "- 5.",
        "Return size - 1": "- 5.",
        "RETURN size - 1": "- 5.",
        "    retrun size": "- 5.",
        '        prnt("big", size)': "- 4.",
        "    Prnt(BIG, size)": "- 4.",
        "    if sizes > 10:": "- 3.",
        "def othr(a):": "- 8.",
        "DEF OTHER(A):": "- 8.",
        '        prnt("big", size)\n    retrun size - 1': "- 4.\n- 5.",
    }
    with all_cases() as case:
        for old, lines in cases.items():
            with case(old):
                shown = [line[:4] for line in refused(old, "x", text).split("\n") if line[0] == "-"]
                assert "\n".join(shown) == lines


def test_only_one_place_may_fit() -> None:
    text = "    a = 1\n        a = 1\n"
    assert refused("  a = 1 \n", "  a = 2\n", text) == (
        "old_str fits 2 places of a.py (lines 1, 2). Add surrounding lines to it so that it occurs once.\n"
        "1.     a = 1\n2.         a = 1"
    )
    # A place that needs fewer slips is nearer.
    assert landed("a = 1 \nb", "a = 2\nb", "a = 1\nb\n  a = 1\nb\n").text == "a = 2\nb\n  a = 1\nb\n"


def test_a_sign_is_no_mark_and_an_apostrophe_no_other_quote() -> None:
    text = "a\n11\n;\nx\nit's\n"
    edits = {
        "a sign": ("-11", ""),
        "a sign in a line": ("-11\n", "12\n"),
        "a sign and a blank": ("- 11\n", "12\n"),
        "a sign of a name": ("-x\n", "y\n"),
        "a sign before punctuation": ("-;", ""),
        "a quote in place of an apostrophe": ('it"s', "its"),
        "a quote alone": ('"', ""),
    }
    check_each(edits, lambda edit: refused(*edit, text))


def test_a_bracket_of_another_block_is_another_line() -> None:
    text = "class A {\n    void f() {\n        go();\n        stay();\n    }\n}\n"
    assert "of another block" in refused("    void f() {\n        go();\n        stay();\n}", "x();", text)
    moved = "void f() {\n    go();\n    stay();\n}"
    assert landed(moved, moved.replace("go", "come"), text).text == text.replace("go", "come")


def test_an_item_of_a_list_is_no_numbered_line_and_a_dash_hides_no_mark() -> None:
    text = "def f():\n        x = one\n        y = 2  # a \u2014 b\n"
    # The lines below the first one are as far to the right as its text.
    assert landed("1.         x = one\n", "1.         total = 1\n           x = one\n", text).text == text.replace(
        "        x", "        total = 1\n        x"
    )
    assert landed("2. y = 2  # a \u2014 b", "2. y = 3  # a \u2014 b", text).text == text.replace("2 ", "3 ")


def test_typographic_quotes_of_a_garbled_edit_are_not_written_where_the_file_has_none() -> None:
    text = 'if a < "b":\n    go()\n'
    old, new = "if a &lt; &quot;b&quot;:", "if a &lt; \u2018c\u2019:"
    assert "typographic quotes in new_str" in refused(old, new, text)
    assert "\u2018c\u2019" in landed(old, new, text + "# \u2018\u2019\n").text
    # An exact edit means what it says.
    assert "\u2018c\u2019" in landed('"b"', "\u2018c\u2019", text).text


def test_an_edit_that_is_there_already_says_so() -> None:
    check_each(
        {
            "replaced": (SIZE, LARGER),
            "added": ('    # the "inner" size\n', '    # the "inner" size\n    # of the box\n'),
            "nested": ("    return size\n", "    if size:\n        return size\n"),
            "with a slip": (
                "if size > 10:\n\treturn size - 1\n",
                "if size > 20:\n\tlog(size)\n\treturn size - 1\n",
            ),
        },
        lambda edit: check_repeated(*edit),
    )


def check_repeated(old: str, new: str) -> None:
    once = landed(old, new)
    assert "already (line" in refused(old, new, once.text)


def test_several_edits_land_together_or_not_at_all() -> None:
    edits = [
        Edit("import os", "import re"),
        Edit("re\n\n\ndef area", "re\n\n\ndef size"),
        Edit("\tsize = width*height", ""),
    ]
    result = apply_edits(FILE, edits, "a.py")
    assert isinstance(result, Landed)
    assert "import re\n\n\ndef size" in result.text
    result = apply_edits(FILE, [*edits, Edit("nowhere", "x")], "a.py")
    assert isinstance(result, Refused)
    assert result.reason.startswith("Edit 4 of 4: old_str was not found in a.py.")


@pytest.mark.parametrize("slip", ["", "  "])
def test_all_places_are_changed_where_that_is_asked_for(slip: str) -> None:
    text = "f(1)\nif x:\n    f(1)\n    g(f(1))\n"
    result = apply_edit(text, Edit("f(1)" + slip, "f(2)" + slip, everywhere=True), "a.py")
    assert isinstance(result, Landed)
    if slip:
        assert result.text == "f(2)\nif x:\n    f(2)\n    g(f(1))\n"
        assert result.notes == (
            "old_str was replaced 2 times; it matched but for trailing blanks and indentation.",
        )
    else:
        assert result.text == "f(2)\nif x:\n    f(2)\n    g(f(2))\n"
