"""Measure how many edits with rarer slips land, on files of any repository.

    slips.py DIRECTORY... [--cases N] [--seed N] [--show KIND] [--every N]

Like ``edits.py``, with what is in and around passages that models copy from chats, patches and tool results.
"""

from __future__ import annotations

import random
import re
import sys
import textwrap
from collections.abc import Mapping
from typing import Final

from edits import (
    Case,
    Change,
    Kind,
    apply,
    as_tabs,
    crlf,
    dedented,
    deeper,
    entities,
    make_cases,
    measure,
    mixed,
    numbered,
    trailing,
    typographic_quotes,
)

# --- around a passage -------------------------------------------------------------------------------------------


def diff_marks(change: Change, rng: random.Random) -> Case | None:
    """The lines have the marks of a patch: all of them, or the changed ones with unchanged ones around."""
    old, new = change.old.rstrip("\n").split("\n"), change.new.rstrip("\n").split("\n")
    if change.old.endswith("\n") != change.new.endswith("\n") or not change.new.strip():
        return None
    alike = rng.random() < 0.5
    marked_old = ["-" + line if alike or line not in new else " " + line for line in old]
    marked_new = ["+" + line if alike or line not in old else " " + line for line in new]
    if all(line[0] == " " for line in marked_old) or all(line[0] == " " for line in marked_new):
        return None
    return Case(change.text, "\n".join(marked_old), "\n".join(marked_new), change.after)


def quoted(text: str, _rng: random.Random, _old: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def in_list(text: str, rng: random.Random, _old: str) -> str:
    mark = rng.choice(["- ", "* ", "1. "])
    return mark + textwrap.indent(text, " " * len(mark))[len(mark) :]


def below_list(text: str, rng: random.Random, _old: str) -> str:
    return textwrap.indent(text, " " * rng.choice([2, 3, 5]))


def fenced_in_list(change: Change, rng: random.Random) -> Case | None:
    blanks = " " * rng.choice([2, 3, 4])

    def fence(text: str) -> str:
        return textwrap.indent(f"```\n{text.rstrip(chr(10))}\n```\n", blanks)

    if change.old[-1] != "\n" or change.new[-1:] != "\n":
        return None
    return Case(change.text, fence(change.old), fence(change.new), change.after)


def search_markers(change: Change, _rng: random.Random) -> Case | None:
    if change.old[-1] != "\n" or change.new[-1:] != "\n":
        return None
    old, new = f"<<<<<<< SEARCH\n{change.old}=======\n", f"=======\n{change.new}>>>>>>> REPLACE\n"
    return Case(change.text, old, new, change.after)


def cdata(text: str, _rng: random.Random, _old: str) -> str:
    return f"<![CDATA[{text}]]>"


def inline_code(change: Change, _rng: random.Random) -> Case | None:
    if "\n" in change.old + change.new or "`" in change.old + change.new or not change.new:
        return None
    return Case(change.text, f"`{change.old}`", f"`{change.new}`", change.after)


def numbered_by_others(change: Change, rng: random.Random) -> Case | None:
    """Line numbers as ``cat -n``, ``grep -n`` and other agents write them."""
    if change.new.endswith("\n") != change.old.endswith("\n") or not change.new.strip():
        return None
    form = rng.choice(["{:6}\t", "{:5}→", "{:>4} | ", "{}:", "{}-", "L{}: ", "[{}] ", "{} "])
    first = change.before.count("\n") + 1

    def number(text: str) -> str:
        lines = text.rstrip("\n").split("\n")
        return "\n".join(form.format(first + index) + line for index, line in enumerate(lines))

    return Case(change.text, number(change.old), number(change.new), change.after)


# --- within a passage -------------------------------------------------------------------------------------------


def json_escapes(text: str, _rng: random.Random, _old: str) -> str:
    """Signs as the JSON of some languages has them."""
    return re.sub(r"[<>&=']", lambda match: f"\\u{ord(match[0]):04x}", text)


def letters_escaped(change: Change, rng: random.Random) -> Case | None:
    """One side has letters, the other side their escapes."""

    def letters(text: str) -> str:
        return re.sub(r"([aeo])(?=\w)", lambda match: {"a": "ä", "e": "é", "o": "ö"}[match[1]], text)

    def escaped(text: str) -> str:
        return re.sub(r"[äéö]", lambda match: f"\\u{ord(match[0]):04x}", text)

    parts = [letters(part) for part in change]
    if "\\" in change.old + change.new or parts[1] == change.old:
        return None
    here, model = (letters, escaped) if rng.random() < 0.5 else (escaped, letters)
    before, old, new, rest = (here(part) if here is escaped else part for part in parts)
    given, given_new = (model(part) if model is escaped else part for part in parts[1:3])
    return Case(before + old + rest, given, given_new, before + new + rest)


def numeric_entities(text: str, rng: random.Random, _old: str) -> str:
    form = rng.choice(["&#{};", "&#x{:x};", "&#x{:X};"])
    return re.sub(r"[<>&\"'/`=]", lambda match: form.format(ord(match[0])), text)


def hard_spaces(text: str, _rng: random.Random, _old: str) -> str:
    return re.sub(r"(?<=\S) (?=\S)", "&nbsp;", text)


def zero_widths(text: str, rng: random.Random, _old: str) -> str:
    return re.sub(r"(?<=\w) (?=\w)", lambda match: rng.choice("\u200b\u200c\u2060\ufeff") + match[0], text)


def zero_widths_in_words(text: str, _rng: random.Random, _old: str) -> str:
    return re.sub(r"(?<=\w{3})(?=\w{3})", "\u200b", text)


def smart_dashes(text: str, _rng: random.Random, _old: str) -> str:
    return text.replace("--", "\u2014").replace("->", "\u2192").replace("=>", "\u21d2").replace("...", "\u2026")


def other_quotes(text: str, rng: random.Random, _old: str) -> str:
    """Quotes of the other kind, in part of the strings."""

    def other(match: re.Match[str]) -> str:
        quote = match[1] if rng.random() < 0.3 else '"' if match[1] == "'" else "'"
        return quote + match[2] + quote

    return re.sub(r"(?<![\w\\'\"])(['\"])([^'\"\\\n]*+)\1(?!['\"])", other, text)


def quotes_in_part(change: Change, rng: random.Random) -> Case | None:
    # A new line with both kinds of quotes shows nobody's habit.
    return None if "compute(" in change.new else mixed(other_quotes)(change, rng)


# --- the file ---------------------------------------------------------------------------------------------------


def with_mark(change: Change, rng: random.Random) -> Case | None:
    """The file begins with a byte order mark, and the passage with its first line."""
    text = change.old + change.rest
    if rng.random() < 0.5:
        return Case("\ufeff" + text, change.old, change.new, "\ufeff" + change.new + change.rest)
    # The model copies the mark.
    return Case("\ufeff" + text, "\ufeff" + change.old, change.new, "\ufeff" + change.new + change.rest)


def mark_in_passage(text: str, _rng: random.Random, _old: str) -> str:
    return "\ufeff" + text


def without_end(change: Change, _rng: random.Random) -> Case | None:
    """The file has no line end in its last line, the passage has."""
    if change.old[-1] == "\n" or change.new[-1:] == "\n" or not change.new.strip():
        return None
    return Case(change.before + change.old, change.old + "\n", change.new + "\n", change.before + change.new)


def crlf_and_tabs(change: Change, rng: random.Random) -> Case | None:
    case = mixed(as_tabs)(change, rng)
    if case is None or case.after is None:
        return None
    return Case(crlf(case.text, rng, ""), case.old, case.new, crlf(case.after, rng, ""))


def crlf_and_numbers(change: Change, rng: random.Random) -> Case | None:
    case = numbered(change, rng)
    if case is None or case.after is None:
        return None
    return Case(crlf(case.text, rng, ""), case.old, case.new, crlf(case.after, rng, ""))


def three_slips(text: str, rng: random.Random, old: str) -> str:
    for slip in rng.sample([trailing, dedented, typographic_quotes, entities, deeper], 3):
        seed = rng.random()
        if slip(old, random.Random(seed), old) == old:
            return old
        text = slip(text, random.Random(seed), old)
    return text


# --- what must be refused ---------------------------------------------------------------------------------------

OMISSIONS: Final = (
    "...existing code...",
    "// ...existing code...",
    "# ...existing code...",
    "/* ... existing code ... */",
    "// ... (rest of the code)",
    "# [rest of the code unchanged]",
    "// rest of the code remains the same",
    "# same as before",
    "[...]",
    "(...)",
    "// unchanged",
    "<!-- ... unchanged ... -->",
    "// ... lines 10-40 omitted ...",
    "# --- snip ---",
    "// [snip]",
    "\u2026",
    "// etc.",
    "{/* ...existing code... */}",
    "# (unchanged code)",
)


def left_out(change: Change, rng: random.Random) -> Case | None:
    """The new text has a mark in place of lines."""
    lines = change.old.rstrip("\n").split("\n")
    if len(lines) < 5 or len({line.strip() for line in lines}) < len(lines) or "" in lines:
        return None
    new = [lines[0] + "x", lines[1], "    " + rng.choice(OMISSIONS), lines[-1]]
    return Case(change.text, change.old, "\n".join(new), None)


def left_out_of_old(change: Change, rng: random.Random) -> Case | None:
    lines = change.old.rstrip("\n").split("\n")
    if len(lines) < 4:
        return None
    mark = rng.choice(OMISSIONS)
    return Case(change.text, "\n".join([lines[0], mark, lines[-1]]), "\n".join([lines[0], mark, "x"]), None)


def joined(change: Change, _rng: random.Random) -> Case | None:
    """Two lines of the file are one in the passage. Where the change lies is then not certain."""
    lines = change.old.rstrip("\n").split("\n")
    pairs = [i for i in range(len(lines) - 1) if lines[i][-1:].isalnum() and lines[i + 1].strip()[:1].isalnum()]
    if not pairs:
        return None
    at = pairs[0]
    old = [*lines[:at], lines[at] + " " + lines[at + 1].strip(), *lines[at + 2 :]]
    return Case(change.text, "\n".join(old), "\n".join([*old, "x = 1"]), None)


def signs(change: Change, rng: random.Random) -> Case | None:
    """A comma or a semicolon more or less is another text."""
    found = list(re.finditer(r"[,;](?=\s*\n)", change.old))
    if not found:
        return None
    match = rng.choice(found)
    old = change.old[: match.start()] + change.old[match.end() :]
    return None if old in change.text else Case(change.text, old, change.new, None)


def marks_of_two_places(change: Change, rng: random.Random) -> Case | None:
    case = diff_marks(change, rng)
    return None if case is None else Case(change.text + "\n" + change.old + "\n", case.old, case.new, None)


KINDS: Final[Mapping[str, Kind]] = {
    "marks of a patch": diff_marks,
    "quoted": mixed(quoted),
    "in a list": mixed(in_list),
    "below a list": mixed(below_list),
    "code fence in a list": fenced_in_list,
    "markers of a search": search_markers,
    "CDATA": mixed(cdata),
    "inline code": inline_code,
    "line numbers of others": numbered_by_others,
    "signs as JSON has them": mixed(json_escapes),
    "letters or their escapes": letters_escaped,
    "numeric entities": mixed(numeric_entities),
    "entities for spaces": mixed(hard_spaces),
    "zero-width characters": mixed(zero_widths),
    "zero-width characters in words": mixed(zero_widths_in_words),
    "smart dashes and arrows": mixed(smart_dashes),
    "the other quotes in part": quotes_in_part,
    "byte order mark": with_mark,
    "byte order mark in the edit": mixed(mark_in_passage),
    "no line end at the end": without_end,
    "CRLF in the file, tabs": crlf_and_tabs,
    "CRLF in the file, numbers": crlf_and_numbers,
    "three slips": mixed(three_slips),
    "left out of the new text": left_out,
    "left out of the passage": left_out_of_old,
    "two lines as one": joined,
    "a sign less": signs,
    "marks, two places": marks_of_two_places,
}


def main() -> int:
    return measure(__doc__, KINDS, make_cases, apply, lambda case: f"--- old\n{case.old!r}\n--- new\n{case.new!r}")


if __name__ == "__main__":
    sys.exit(main())
