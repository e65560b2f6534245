"""Measure how many patches with the slips of models land, on files of any repository.

    patches.py DIRECTORY... [--cases N] [--seed N] [--every N] [--show KIND]

Makes the changes of ``edits.py``, writes each as a patch of the V4A form, with three unchanged lines around it or
with the line above, and gives the patch a slip that models make. A patch that lands must give the file that the
patch without the slip gives, byte for byte. Ambiguous and wrong patches must be refused, with the place.
The exit code is 1 if a file is damaged, an ambiguous passage is changed, or less than 97 % of the rest lands.
"""

from __future__ import annotations

import difflib
import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import edits

from jumpseat.tools.edits.engine import Landed, Refused
from jumpseat.tools.edits.hunks import apply_hunks
from jumpseat.tools.edits.patches import PatchError, parse_patch

NAME: Final = "src/file"


class Case(NamedTuple):
    """A file, a patch, and the file afterwards; ``None`` if the patch must be refused."""

    text: str
    patch: str
    after: str | None


class Change(NamedTuple):
    """A change of whole lines, with all lines of the file before and after it."""

    before: list[str]
    old: list[str]
    new: list[str]
    rest: list[str]

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in (*self.before, *self.old, *self.rest))

    @property
    def after(self) -> str:
        return "".join(f"{line}\n" for line in (*self.before, *self.new, *self.rest))


Kind: TypeAlias = Callable[[Change, random.Random], Case | None]


def changes(text: str, rng: random.Random) -> Iterator[Change]:
    """Yield changes of whole lines that occur once, and differ from the lines around them."""
    for change in edits.changes(text, rng):
        old, new = (part.removesuffix("\n").split("\n") for part in (change.old, change.new))
        before = change.before.split("\n")[:-1]
        rest = change.rest.removeprefix("\n") if not change.old.endswith("\n") else change.rest
        made = Change(before, old, new, rest.removesuffix("\n").split("\n"))
        if made.text == text and not any(line.startswith("\t ") for line in made.new):
            yield made


def hunk(change: Change, lines: int = 3, above: str = "") -> list[str]:
    """Return the marked lines of a change, with the number of unchanged lines around it."""
    marked = [f" {line}" for line in change.before[-lines:]] if lines else []
    matcher = difflib.SequenceMatcher(None, change.old, change.new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            marked += (f" {line}" for line in change.old[i1:i2])
        else:
            marked += (f"-{line}" for line in change.old[i1:i2])
            marked += (f"+{line}" for line in change.new[j1:j2])
    return [f"@@{above}", *marked, *(f" {line}" for line in change.rest[:lines])]


def patch_of(lines: list[str]) -> str:
    return "\n".join(["*** Begin Patch", f"*** Update File: {NAME}", *lines, "*** End Patch"]) + "\n"


# --- slips ------------------------------------------------------------------------------------------------------


INDENTING: Final = (edits.dedented, edits.less_indented, edits.deeper, edits.as_tabs, edits.as_spaces)


def with_slip(slip: edits.Slip) -> Kind:
    """Return the kind of cases in which all lines, or only the old ones, have a slip.

    New lines are always indented like the others: otherwise, nothing would tell what their indentation means.
    """

    def kind(change: Change, rng: random.Random) -> Case | None:
        lines = hunk(change)
        marks = [line[:1] for line in lines[1:]]
        text = "\n".join(line[1:] for line in lines[1:])
        slipped = slip(text, rng, text).split("\n")
        pairs = list(zip(marks, text.split("\n"), slipped, strict=False))
        if len(slipped) != len(marks) or all(was == now for mark, was, now in pairs if mark != "+"):
            # Only what is in the file shows what the model means by the new lines.
            return None
        if len({line[0] for line in text.split("\n") if line[:1] in ("\t", " ")} - {" "}) and any(
            mark == "+" and was.startswith("    ") for mark, was, _now in pairs
        ):
            return None
        if slip not in INDENTING and rng.random() < 0.25:
            slipped = [
                was if mark == "+" else now for mark, was, now in zip(marks, text.split("\n"), slipped, strict=True)
            ]
        marked = [f"{mark}{line}" for mark, line in zip(marks, slipped, strict=True)]
        return Case(change.text, patch_of(["@@", *marked]), change.after)

    return kind


def around(wrap: Callable[[str, random.Random], str]) -> Kind:
    """Return the kind of cases in which there is something around the patch, or missing from it."""
    return lambda change, rng: Case(change.text, wrap(patch_of(hunk(change)), rng), change.after)


def unmarked(change: Change, _rng: random.Random) -> Case | None:
    """The unchanged lines have no blank before them."""
    lines = hunk(change)
    bare = [line[1:] if line.startswith(" ") else line for line in lines]
    if any(line[:1] in ("+", "-", "@", "*", " ") for line in bare[1:] if line not in lines):
        if not any(line and line[0] not in " +-@*" for line in bare[1:]):
            return None
        if any(line[:1] in ("+", "-", "@", "*") for line in bare[1:] if line not in lines):
            return None
    return Case(change.text, patch_of(bare), change.after)


def line_above(change: Change, rng: random.Random) -> Case | None:
    """The line that opens the block of the change is named, and no line around the change is given."""
    depth = len(change.old[0]) - len(change.old[0].lstrip())
    for line in reversed(change.before[-40:]):
        if line.strip() and len(line) - len(line.lstrip()) < depth:
            if change.text.count(line.strip()) != 1 or line.strip()[0] in "})]":
                return None
            above = line.strip() if rng.random() < 0.5 else line
            return Case(change.text, patch_of(hunk(change, 0, f" {above}")), change.after)
    return None


def unknown_line_above(change: Change, _rng: random.Random) -> Case | None:
    return Case(change.text, patch_of(hunk(change, 3, " def no_such_function():")), change.after)


def unified(change: Change, rng: random.Random) -> Case | None:
    """The hunk has the numbers of a unified diff, which are wrong."""
    number = rng.randrange(1, 500)
    lines = hunk(change, 3, f" -{number},7 +{number},9 @@")
    names = [f"--- a/{NAME}", f"+++ b/{NAME}"] if rng.random() < 0.5 else []
    return Case(change.text, patch_of([*names, *lines]), change.after)


def blank_line_lost(change: Change, _rng: random.Random) -> Case | None:
    """A blank line between unchanged lines is left out."""
    lines = hunk(change)
    at = [index for index, line in enumerate(lines) if line == " " and 1 < index < len(lines) - 1]
    at = [index for index in at if lines[index - 1][:1] == lines[index + 1][:1] == " "]
    if not at:
        return None
    return Case(change.text, patch_of(lines[: at[0]] + lines[at[0] + 1 :]), change.after)


def blank_lines_bare(change: Change, _rng: random.Random) -> Case | None:
    lines = hunk(change)
    if " " not in lines:
        return None
    return Case(change.text, patch_of(["" if line == " " else line for line in lines]), change.after)


def two_hunks(change: Change, rng: random.Random) -> Case | None:
    """Another part of the file is changed as well, in the order of the file or not."""
    other = next(
        (found for found in changes(change.text, rng) if len(found.before) > len(change.before) + 40), None
    )
    if other is None or change.text.count("\n".join(other.old)) != 1:
        return None
    start = len(change.before) + len(change.old)
    between = change.rest[: len(other.before) - start]
    after = Change([*change.before, *change.new, *between], other.old, other.new, other.rest).after
    hunks = [hunk(change), hunk(other)]
    if rng.random() < 0.3:
        hunks.reverse()
    return Case(change.text, patch_of([line for lines in hunks for line in lines]), after)


def one_of_two_wrong(change: Change, rng: random.Random) -> Case | None:
    case = two_hunks(change, rng)
    if case is None:
        return None
    wrong = ["@@", " no such line here", "-count_of_nothing = 17", "+count_of_nothing = 18"]
    return Case(change.text, case.patch.replace("*** End Patch", "\n".join([*wrong, "*** End Patch"])), None)


def crlf_file(change: Change, _rng: random.Random) -> Case | None:
    return Case(change.text.replace("\n", "\r\n"), patch_of(hunk(change)), change.after.replace("\n", "\r\n"))


def no_last_line_end(change: Change, rng: random.Random) -> Case | None:
    return Case(change.text.removesuffix("\n"), patch_of(hunk(change)), change.after.removesuffix("\n"))


def two_places(change: Change, rng: random.Random) -> Case | None:
    """The lines are twice in the file, and no line around them is given."""
    slip = rng.choice([edits.trailing, edits.deeper, edits.no_slip])
    text = "\n".join(line[1:] for line in hunk(change, 0)[1:])
    marks = [line[:1] for line in hunk(change, 0)[1:]]
    slipped = slip(text, rng, text).split("\n")
    lines = ["@@", *(f"{mark}{line}" for mark, line in zip(marks, slipped, strict=True))]
    if all(mark == "+" for mark in marks):
        return None
    doubled = change.text + "\n" + "".join(f"{line}\n" for line in change.old)
    return Case(doubled, patch_of(lines), None)


def another_word(change: Change, rng: random.Random) -> Case | None:
    lines = hunk(change)
    at = rng.choice([index for index, line in enumerate(lines) if line[:1] in " -" and line.strip()] or [0])
    if not at or not re.search(r"[A-Za-z_]\w+", lines[at]):
        return None
    lines[at] = lines[at][0] + edits._other_word(lines[at][1:], rng)  # pyright: ignore[reportPrivateUsage]
    return Case(change.text, patch_of(lines), None)


def another_number(change: Change, rng: random.Random) -> Case | None:
    lines = hunk(change, 0)
    at = [index for index, line in enumerate(lines) if line[:1] in " -" and re.search(r"\d", line)]
    if not at:
        return None
    index = rng.choice(at)
    lines[index] = re.sub(r"\d+", lambda match: str(int(match[0]) + 1), lines[index], count=1)
    return Case(change.text, patch_of(lines), None)


def another_block(change: Change, rng: random.Random) -> Case | None:
    """One line is in another block than the one that is named."""
    depth = len(change.old[0]) - len(change.old[0].lstrip())
    if len(change.old) != 1 or depth == 0 or not re.search(r"\w", change.old[0]):
        return None
    text = change.text + "\nclass OtherBlock:\n    some_value = None\n    other_value = None\n"
    return Case(text, patch_of(hunk(change, 0, " class OtherBlock:")), None)


def omission(change: Change, rng: random.Random) -> Case | None:
    if len(change.old) < 5:
        return None
    mark = rng.choice(["...", "# ... existing code ...", "// ..."])
    lines = ["@@", f" {change.old[0]}", f" {mark}", f"-{change.old[-1]}", "+changed"]
    return Case(change.text, patch_of(lines), None)


def already_there(change: Change, _rng: random.Random) -> Case | None:
    lines = hunk(change)
    if len(re.findall(r"\w", "".join(change.new))) < 12 or not any(line.startswith("-") for line in lines):
        return None
    return Case(change.after, patch_of(lines), None)


KINDS: Final[Mapping[str, Kind]] = {
    "as it should be": around(lambda patch, _rng: patch),
    "unchanged lines without a mark": unmarked,
    "blank lines without a mark": blank_lines_bare,
    "the line above": line_above,
    "a line above that is not there": unknown_line_above,
    "numbers of a unified diff": unified,
    "two hunks": two_hunks,
    "CRLF in the file": crlf_file,
    "no line end at the end of the file": no_last_line_end,
    "without begin": around(lambda patch, _rng: patch.removeprefix("*** Begin Patch\n")),
    "without end": around(lambda patch, _rng: patch.removesuffix("*** End Patch\n")),
    "a shell command": around(lambda patch, _rng: f"apply_patch <<'EOF'\n{patch}EOF\n"),
    "a code fence": around(lambda patch, rng: f"```{rng.choice(['', 'diff'])}\n{patch}```\n"),
    "JSON": around(lambda patch, _rng: json.dumps(["apply_patch", patch])),
    "CRLF in the patch": around(lambda patch, _rng: patch.replace("\n", "\r\n")),
    "trailing blanks": with_slip(edits.trailing),
    "at the margin": with_slip(edits.dedented),
    "one level less": with_slip(edits.less_indented),
    "one level more": with_slip(edits.deeper),
    "tabs for spaces": with_slip(edits.as_tabs),
    "spaces for tabs": with_slip(edits.as_spaces),
    "typographic quotes": with_slip(edits.typographic_quotes),
    "dashes": with_slip(edits.dashes),
    "special spaces": with_slip(edits.special_spaces),
    "runs of blanks": with_slip(edits.more_blanks),
    "entities": with_slip(edits.entities),
    "escaped quotes": with_slip(edits.escaped_quotes),
    "a blank line lost": blank_line_lost,
    "two places": two_places,
    "another word": another_word,
    "another number": another_number,
    "another block": another_block,
    "one hunk of three wrong": one_of_two_wrong,
    "an omission": omission,
    "already there": already_there,
}


def make_cases(files: list[Path], kind: Kind, count: int, rng: random.Random) -> Iterator[Case]:
    """Yield cases of one kind."""

    def make(text: str) -> Case | None:
        change = next(changes(text, rng), None) if text.endswith("\n") else None
        case = None if change is None else kind(change, rng)
        return case if case is not None and case.after != case.text else None

    return edits.pick_cases(files, make, count, rng)


def apply(case: Case) -> Landed | Refused:
    try:
        (patch,) = parse_patch(case.patch)
    except PatchError as error:
        return Refused(str(error))
    return apply_hunks(case.text, patch.hunks, patch.path)


def main() -> int:
    return edits.measure(__doc__, KINDS, make_cases, apply, lambda case: case.patch)


if __name__ == "__main__":
    sys.exit(main())
