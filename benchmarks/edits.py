"""Measure how many edits with the slips of models land, on files of any repository.

    edits.py DIRECTORY... [--cases N] [--seed N] [--show KIND] [--every N] [--time]

Cuts passages out of the source files below the directories, changes them as a programmer would, and gives the
passage, or the passage and the new text, a slip that models make. An edit that lands must give the file that the
change without the slip gives, byte for byte. Ambiguous and wrong passages must be refused, with the place.
The exit code is 1 if a file is damaged, an ambiguous passage is changed, or less than 97 % of the rest lands.
``--every`` takes every n-th file only, ``--every -n`` the others: what is tuned on one part is judged by the other.
"""

from __future__ import annotations

import argparse
import difflib
import random
import re
import statistics
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from jumpseat.tools.edits.engine import Edit, Landed, Refused, apply_edit

LIMIT: Final = 0.97
SUFFIXES: Final = (".py", ".ts", ".js", ".go", ".rs", ".c", ".h", ".java", ".rb", ".cs")
SMALLEST, LARGEST = 1_500, 120_000


class Case(NamedTuple):
    """A file, an edit of it, and the file afterwards; ``None`` if the edit must be refused."""

    text: str
    old: str
    new: str
    after: str | None


class Judged(Protocol):
    """A file, and the file after an edit; ``None`` if the edit must be refused."""

    @property
    def text(self) -> str: ...

    @property
    def after(self) -> str | None: ...


AnyCase = TypeVar("AnyCase", bound=Judged)
AnyKind = TypeVar("AnyKind")


class Change(NamedTuple):
    """A change of a file without slips: ``before``, ``old`` and ``rest`` are the parts of the file."""

    before: str
    old: str
    new: str
    rest: str

    @property
    def text(self) -> str:
        return self.before + self.old + self.rest

    @property
    def after(self) -> str:
        return self.before + self.new + self.rest


Slip: TypeAlias = Callable[[str, random.Random, str], str]
"""Gives a text a slip; the last argument is the passage, which may be that text."""
Kind: TypeAlias = Callable[[Change, random.Random], Case | None]


# --- changes ----------------------------------------------------------------------------------------------------


def changes(text: str, rng: random.Random) -> Iterator[Change]:
    """Yield changes of random passages that occur once, even if blanks are ignored."""
    lines = text.split("\n")
    packed = "".join(text.split())
    for _ in range(20):
        size = rng.choice([1, 2, 3, 4, 5, 6, 8, 12, 20])
        first = rng.randrange(max(1, len(lines) - size))
        passage = lines[first : first + size]
        if not passage or not passage[0].strip() or not passage[-1].strip():
            continue
        old = "\n".join(passage)
        squeezed = "".join(old.split())
        if len(squeezed) < 12 or packed.count(squeezed) != 1:
            continue
        new = _change(passage, rng)
        before = "".join(line + "\n" for line in lines[:first])
        rest = text[len(before) + len(old) :]
        if rng.random() < 0.3 and rest.startswith("\n"):
            old, new, rest = old + "\n", new + "\n", rest[1:]
        if new != old and "".join(new.split()) != squeezed:
            yield Change(before, old, new, rest)


def _change(passage: list[str], rng: random.Random) -> str:
    lines = list(passage)
    at = rng.choice([index for index, line in enumerate(lines) if line.strip()])
    line = lines[at]
    indentation = line[: len(line) - len(line.lstrip())]
    unit = "\t" if any(other.startswith("\t") for other in lines) else "    "
    if any((len(other) - len(other.lstrip(" "))) % 4 == 2 for other in lines):
        unit = "  "
    added = rng.choice(
        ["log(value)", "if (ready) return", "count += 1", "# checked", "total = compute(a, 'b', \"c\")"]
    )
    match rng.choice(["word", "word", "word", "after", "before", "delete", "line", "nest", "two"]):
        case "word":
            lines[at] = _other_word(line, rng)
        case "after":
            lines.insert(at + 1, indentation + added)
        case "before":
            lines.insert(at, indentation + added)
        case "delete" if len(lines) > 1:
            del lines[at]
        case "nest":
            block = [unit + other if other.strip() else other for other in lines[at:]]
            lines[at:] = [indentation + "if ready:", *block]
        case "two":
            lines[at] = _other_word(line, rng)
            lines.insert(at + 1, indentation + added)
        case _:
            lines[at] = indentation + added
    return "\n".join(lines)


def _other_word(line: str, rng: random.Random) -> str:
    words = list(re.finditer(r"[A-Za-z_]\w+", line))
    if not words:
        # Blanks that end the line would be neither old nor new ones.
        return line.rstrip() + " // changed"
    word = rng.choice(words)
    return line[: word.start()] + rng.choice(["renamed", "other_name", "value2"]) + line[word.end() :]


# --- slips ------------------------------------------------------------------------------------------------------


def on_both(slip: Slip) -> Kind:
    """Return the kind of cases in which the passage and the new text have the slip."""
    return lambda change, rng: _slipped(change, *_twice(slip, change, rng))


def on_old(slip: Slip) -> Kind:
    """Return the kind of cases in which only the passage has the slip."""
    return lambda change, rng: _slipped(change, slip(change.old, rng, change.old), change.new)


def mixed(slip: Slip) -> Kind:
    """Return the kind of cases in which the passage has the slip, and mostly the new text as well."""
    return lambda change, rng: (on_old if rng.random() < 0.25 else on_both)(slip)(change, rng)


def in_file(deform: Callable[[str], str]) -> Kind:
    """Return the kind of cases in which the lines of the file have what the model does not write."""

    def kind(change: Change, _rng: random.Random) -> Case | None:
        old_lines, new_lines = change.old.split("\n"), change.new.split("\n")
        old = "\n".join(map(deform, old_lines))
        known = {*old_lines} if len(old_lines) != len(new_lines) else {*old_lines, *new_lines}
        new = "\n".join(deform(line) if line in known else line for line in new_lines)
        if old == change.old or len(set(new_lines) - set(old_lines)) > 1:
            return None
        if (
            len(old_lines) == len(new_lines)
            and [line.count(" ") for line in old_lines] != [line.count(" ") for line in new_lines]
        ) or any(
            "ready" in line or "count +=" in line or "total =" in line or "# checked" in line for line in new_lines
        ):
            return None
        text, after = change.before + old + change.rest, change.before + new + change.rest
        return Case(text, change.old, change.new, after)

    return kind


def _twice(slip: Slip, change: Change, rng: random.Random) -> tuple[str, str]:
    seed = rng.random()
    return tuple(slip(text, random.Random(seed), change.old) for text in (change.old, change.new))  # type: ignore


def _slipped(change: Change, old: str, new: str) -> Case | None:
    if old == change.old:
        return None
    return Case(change.text, old, new, change.after)


def _by_line(text: str, edit: Callable[[str], str]) -> str:
    return "\n".join(edit(line) for line in text.split("\n"))


def trailing(text: str, rng: random.Random, _old: str) -> str:
    return _by_line(text, lambda line: line + " " * rng.choice([1, 2, 4]) if line.strip() else line)


def dedented(text: str, _rng: random.Random, old: str) -> str:
    lines = [line for line in old.split("\n") if line.strip()]
    common: str = min((line[: len(line) - len(line.lstrip())] for line in lines), key=len, default="")
    return _by_line(text, lambda line: line.removeprefix(common))


def less_indented(text: str, _rng: random.Random, old: str) -> str:
    lines = [line for line in old.split("\n") if line.strip()]
    unit = "\t" if any(line.startswith("\t") for line in lines) else "    "
    if not all(line.startswith(unit) for line in lines):
        return text
    return _by_line(text, lambda line: line.removeprefix(unit))


def trailing_of_line(line: str) -> str:
    return line + "  " if line.strip() else line


def blanks_of_line(line: str) -> str:
    return line or "    "


def runs_of_line(line: str) -> str:
    return re.sub(r"(?<=\S) (?=\S)", "   ", line)


def deeper(text: str, _rng: random.Random, _old: str) -> str:
    unit = "\t" if "\t" in text else "    "
    return _by_line(text, lambda line: unit + line if line.strip() else line)


def bare_start(text: str, _rng: random.Random, _old: str) -> str:
    return text.lstrip(" \t")


def as_tabs(text: str, _rng: random.Random, _old: str) -> str:
    return _by_line(text, lambda line: re.sub(r"^(?: {4})+", lambda match: "\t" * (len(match[0]) // 4), line))


def as_spaces(text: str, _rng: random.Random, _old: str) -> str:
    return _by_line(text, lambda line: re.sub(r"^\t+", lambda match: "    " * len(match[0]), line))


def half_indented(text: str, _rng: random.Random, old: str) -> str:
    if any(len(match[0]) % 4 for match in re.finditer(r"^ *", old, re.MULTILINE)):
        return text
    return _by_line(text, lambda line: re.sub(r"^(?: {4})+", lambda match: "  " * (len(match[0]) // 4), line))


def blank_around(text: str, rng: random.Random, _old: str) -> str:
    return rng.choice([f"\n{text}\n", f"\n\n{text}\n\n", f"{text}\n\n", f"\n{text}"])


def blanks_in_blank_lines(text: str, _rng: random.Random, _old: str) -> str:
    return re.sub(r"(?<=\n)(?=\n)", "    ", text)


def typographic_quotes(text: str, _rng: random.Random, _old: str) -> str:
    text = re.sub(r'"([^"\n]*)"', "\u201c\\1\u201d", text)
    return re.sub(r"'([^'\n]*)'", "\u2018\\1\u2019", text).replace("'", "\u2019")


def dashes(text: str, rng: random.Random, _old: str) -> str:
    return text.replace("-", rng.choice("\u2013\u2014\u2011\u2212"))


def special_spaces(text: str, rng: random.Random, _old: str) -> str:
    return re.sub(r"(?<=\S) (?=\S)", rng.choice("\u00a0\u2009\u202f"), text)


def accented(text: str) -> str:
    return re.sub(r"([aeo])(?=\w)", lambda match: {"a": "ä", "e": "é", "o": "ö"}[match[1]], text)


def more_blanks(text: str, rng: random.Random, _old: str) -> str:
    return re.sub(r"(?<=\S) (?=\S)", lambda _: " " * rng.choice([1, 2, 3]), text)


def escaped_breaks(text: str, _rng: random.Random, _old: str) -> str:
    return text if "\\n" in text else text.replace("\n", "\\n")


def escaped_quotes(text: str, _rng: random.Random, _old: str) -> str:
    return text if '\\"' in text else text.replace('"', '\\"')


def entities(text: str, _rng: random.Random, _old: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def fenced(text: str, rng: random.Random, _old: str) -> str:
    return f"```{rng.choice(['', 'python', 'go'])}\n{text.removesuffix(chr(10))}\n```"


def in_fence(change: Change, rng: random.Random) -> Case | None:
    return mixed(fenced)(change, rng) if change.old[-1] == change.new[-1] == "\n" else None


def crlf(text: str, _rng: random.Random, _old: str) -> str:
    return text.replace("\n", "\r\n")


def no_slip(text: str, _rng: random.Random, _old: str) -> str:
    return text


def two_slips(text: str, rng: random.Random, old: str) -> str:
    for slip in rng.sample([trailing, dedented, typographic_quotes, blank_around, deeper], 2):
        # The slips are the same, whatever the text.
        seed = rng.random()
        if slip(old, random.Random(seed), old) == old:
            return old
        text = slip(text, random.Random(seed), old)
    return text


# --- kinds ------------------------------------------------------------------------------------------------------


def exact(change: Change, _rng: random.Random) -> Case:
    return Case(change.text, change.old, change.new, change.after)


def two_blanks(change: Change, rng: random.Random) -> Case | None:
    """The model writes two blanks per level, the file has four."""
    sizes = [len(match[0]) for match in re.finditer(r"^ +(?=[^ *\n])", change.text, re.MULTILINE)]
    if sum(size % 4 == 2 for size in sizes) * 10 > len(sizes):
        return None
    return mixed(half_indented)(change, rng)


def crlf_file(change: Change, rng: random.Random) -> Case | None:
    return Case(crlf(change.text, rng, ""), change.old, change.new, crlf(change.after, rng, ""))


def decomposed(change: Change, rng: random.Random) -> Case | None:
    """One side has letters in one form, the other side in the other form."""
    forms = ["NFC", "NFD"]
    rng.shuffle(forms)
    here, model = forms
    parts = [accented(part) for part in (change.before, change.old, change.new, change.rest)]
    before, old, new, rest = (unicodedata.normalize(here, part) for part in parts)  # type: ignore[arg-type]
    case_old, case_new = (unicodedata.normalize(model, part) for part in (old, new))  # type: ignore[arg-type]
    if case_old == old:
        return None
    return Case(before + old + rest, case_old, case_new, before + new + rest)


def numbered(change: Change, rng: random.Random) -> Case | None:
    separator = rng.choice([". ", ": ", "\t", "| "])
    first = change.before.count("\n") + 1

    def number(text: str) -> str:
        lines = text.rstrip("\n").split("\n")
        return "\n".join(f"{first + index}{separator}{line}" for index, line in enumerate(lines))

    new = change.new.rstrip("\n")
    if change.new.endswith("\n") and not change.old.endswith("\n"):
        return None
    return Case(change.text, number(change.old), number(new) if rng.random() < 0.7 else new, change.after)


def two_places(change: Change, rng: random.Random) -> Case | None:
    """The passage is twice in the file, and has a slip or none."""
    text = change.text + "\n" + change.old + "\n"
    slip = rng.choice([trailing, dedented, deeper, typographic_quotes, no_slip])
    return Case(text, slip(change.old, rng, change.old), slip(change.new, rng, change.old), None)


def two_indentations(change: Change, rng: random.Random) -> Case | None:
    """The passage is in the file with two indentations, and is given with a third."""
    if "\n" not in change.old.strip():
        return None
    text = change.text + "\n" + deeper(deeper(change.old, rng, ""), rng, "") + "\n"
    return Case(text, deeper(change.old, rng, ""), deeper(change.new, rng, ""), None)


def another_word(change: Change, rng: random.Random) -> Case | None:
    return Case(change.text, _other_word(change.old, rng), change.new, None)


def another_number(change: Change, rng: random.Random) -> Case | None:
    numbers = list(re.finditer(r"\d+", change.old))
    if not numbers:
        return None
    number = rng.choice(numbers)
    old = change.old[: number.start()] + str(int(number[0]) + 1) + change.old[number.end() :]
    return None if old in change.text else Case(change.text, old, change.new, None)


def omission_in_old(change: Change, rng: random.Random) -> Case | None:
    lines = change.old.rstrip("\n").split("\n")
    if len(lines) < 4:
        return None
    mark = rng.choice(["...", "    ...", "# ... existing code ...", "// ..."])
    return Case(change.text, "\n".join([lines[0], mark, lines[-1]]), "\n".join([lines[0], "x", lines[-1]]), None)


def omission_in_new(change: Change, rng: random.Random) -> Case | None:
    lines = change.old.rstrip("\n").split("\n")
    if len(lines) < 5 or len({line.strip() for line in lines}) < len(lines) or "" in lines:
        return None
    mark = rng.choice(["    ...", "# ... existing code ...", "// ... rest of the function", "/* ... */"])
    return Case(change.text, change.old, "\n".join([_other_word(lines[0], rng), lines[1], mark, lines[-1]]), None)


def already_there(change: Change, _rng: random.Random) -> Case | None:
    if change.old in change.after and (change.old not in change.new or "\n" not in change.new.strip("\n")):
        return None
    letters = len(re.findall(r"\w", change.new))
    return (
        Case(change.after, change.old, change.new, None) if letters >= 12 and change.new in change.after else None
    )


KINDS: Final[Mapping[str, Kind]] = {
    "exact": exact,
    "trailing blanks in the edit": mixed(trailing),
    "trailing blanks in the file": in_file(trailing_of_line),
    "CRLF in the file": crlf_file,
    "CRLF in the edit": mixed(crlf),
    "at the margin": mixed(dedented),
    "one level less": mixed(less_indented),
    "one level more": mixed(deeper),
    "no indentation of the first line": mixed(bare_start),
    "tabs for spaces": mixed(as_tabs),
    "spaces for tabs": mixed(as_spaces),
    "two blanks per level": two_blanks,
    "blank lines around": mixed(blank_around),
    "blanks in blank lines of the edit": mixed(blanks_in_blank_lines),
    "blanks in blank lines of the file": in_file(blanks_of_line),
    "typographic quotes": mixed(typographic_quotes),
    "dashes": mixed(dashes),
    "special spaces": mixed(special_spaces),
    "composed letters": decomposed,
    "runs of blanks in the edit": mixed(more_blanks),
    "runs of blanks in the file": in_file(runs_of_line),
    "line numbers": numbered,
    "code fence": in_fence,
    "escaped line ends": mixed(escaped_breaks),
    "escaped quotes": mixed(escaped_quotes),
    "entities": mixed(entities),
    "two slips": mixed(two_slips),
    "two places": two_places,
    "two indentations": two_indentations,
    "another word": another_word,
    "another number": another_number,
    "omission in the passage": omission_in_old,
    "omission in the new text": omission_in_new,
    "already there": already_there,
}


def source_files(folders: list[str], every: int) -> list[Path]:
    """Return the source files below some folders: every n-th, or all but these if ``every`` is negative."""
    found = sorted(
        path
        for folder in folders
        for path in Path(folder).rglob("*")
        if path.suffix in SUFFIXES and path.is_file() and SMALLEST <= path.stat().st_size <= LARGEST
    )
    if every in (0, 1):
        return found
    return [path for index, path in enumerate(found) if (index % abs(every) == 0) == (every > 0)]


def make_cases(files: list[Path], kind: Kind, count: int, rng: random.Random) -> Iterator[Case]:
    """Yield cases of one kind."""

    def make(text: str) -> Case | None:
        change = next(changes(text, rng), None)
        case = None if change is None else kind(change, rng)
        return case if case is not None and case.old != case.new else None

    return pick_cases(files, make, count, rng)


def pick_cases(
    files: list[Path], make: Callable[[str], AnyCase | None], count: int, rng: random.Random
) -> Iterator[AnyCase]:
    """Yield the cases that can be made of the texts of files, from as many kinds of files as there are."""
    by_suffix: dict[str, list[Path]] = {}
    for path in files:
        by_suffix.setdefault(path.suffix, []).append(path)
    suffixes = sorted(by_suffix)
    made = 0
    for attempt in range(count * 60):
        if made == count:
            return
        path = rng.choice(by_suffix[suffixes[attempt % len(suffixes)]])
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        case = None if "\r" in text else make(text)
        if case is not None:
            made += 1
            yield case


def judge(case: Case) -> str:
    """Make the edit of a case and return the verdict."""
    return verdict_on(case, apply(case))


def apply(case: Case) -> Landed | Refused:
    return apply_edit(case.text, Edit(case.old, case.new), "the file")


def verdict_on(case: Judged, result: Landed | Refused) -> str:
    """Return whether the result of a case is right, or what is wrong with it."""
    if isinstance(result, Landed):
        if case.after is None:
            return "CHANGED"
        return "right" if result.text == case.after else "DAMAGED"
    if len(result.reason.split("\n")) > 30:
        return "TOO LONG"
    if not re.search(r"\d+\.|line", result.reason):
        return "no place" if case.after is None else "refused without place"
    return "right" if case.after is None else "refused"


def measure(
    description: str | None,
    kinds: Mapping[str, AnyKind],
    make: Callable[[list[Path], AnyKind, int, random.Random], Iterator[AnyCase]],
    apply: Callable[[AnyCase], Landed | Refused],
    written: Callable[[AnyCase], str],
) -> int:
    """Make the cases of all kinds, apply them, and print the verdicts; return the exit code.

    ``written`` returns what a model wrote, for cases that are shown.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="DIRECTORY")
    parser.add_argument("--cases", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--show", metavar="KIND", help="print the cases of a kind that are not right")
    args = parser.parse_args()
    files = source_files(args.folders, args.every)
    totals: Counter[str] = Counter()
    times: list[float] = []
    landing = wanted = 0
    for name, kind in kinds.items():
        counts: Counter[str] = Counter()
        for case in make(files, kind, args.cases, random.Random(f"{args.seed} {name}")):
            start = time.perf_counter()
            result = apply(case)
            times.append(time.perf_counter() - start)
            verdict = verdict_on(case, result)
            counts[verdict] += 1
            if case.after is not None:
                wanted += 1
                landing += verdict == "right"
            if args.show == name and verdict != "right":
                print(f"=== {verdict}\n{written(case)}")
                show(case, result)
        totals += counts
        print(f"{name:36} " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    bad = totals["DAMAGED"] + totals["CHANGED"] + totals["TOO LONG"] + totals["no place"]
    print(f"\n{landing} of {wanted} that should land are right ({landing / wanted:.1%})")
    print(f"{totals['DAMAGED']} damaged, {totals['CHANGED']} changed that should be refused")
    print(f"{totals['no place']} refusals without the place, {totals['TOO LONG']} too long")
    print(f"median {statistics.median(times) * 1000:.1f} ms, longest {max(times) * 1000:.0f} ms")
    return 1 if bad or landing < LIMIT * wanted else 0


def show(case: Judged, result: Landed | Refused) -> None:
    """Print the reason of a refusal, or the difference to the right text."""
    if isinstance(result, Refused):
        print(f"--- reason\n{result.reason}")
        return
    wanted = case.text if case.after is None else case.after
    diff = difflib.unified_diff(wanted.split("\n"), result.text.split("\n"), "right", "made", n=1, lineterm="")
    print(*result.notes, *map(repr, diff), sep="\n")


def main() -> int:
    return measure(__doc__, KINDS, make_cases, apply, lambda case: f"--- old\n{case.old!r}\n--- new\n{case.new!r}")


if __name__ == "__main__":
    sys.exit(main())
