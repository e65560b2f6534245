"""Measure which syntax errors of edits are told to the model, on source files of any repository.

    syntax.py DIRECTORY... [--cases N] [--seed N] [--show LANGUAGE]

Changes files of each language so that they break (a bracket, quote, colon, comma, semicolon, keyword or tag less,
another indentation), and so that they do not (another name, one more comment, a passage moved, copied, or taken
from another file). A break counts if the language's own parser objects, where one is installed; otherwise always.
Times are of the processor for the first change of a file, of one that was viewed, and for the next change; the last
one is what a call waits after a first change, by the clock, while the text before is parsed in the background.
The exit code is 1 if less than 95 % of the breaks are told, or if there is a false alarm.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import anyio
import anyio.to_thread
import yaml

from jumpseat.tools.syntax.changes import new_problems, prepare
from jumpseat.tools.syntax.languages import LANGUAGES, Syntax, grammar, language_of
from jumpseat.tools.syntax.parsing import parse
from jumpseat.tools.syntax.versions import Versions
from jumpseat.tools.syntax_checker import SyntaxChecker
from jumpseat.tools.workspace_files import FileEdit, Files

if TYPE_CHECKING:
    from tree_sitter import Node

LIMIT: Final = 0.95
HTML: Final = Syntax((), "tree_sitter_html")
SMALLEST, LARGEST = 400, 200_000
MOST_FILES: Final = 400
MOST_WAITS: Final = 20

HASH: Final = ("python", "ruby", "bash", "yaml", "toml")
COMMENTS: Final = {**dict.fromkeys(HASH, b"# a note\n"), "css": b"/* a note */\n", "html": b"<!-- a note -->\n"}
KEYWORDS: Final = {"ruby": {b"end"}, "bash": {b"fi", b"done", b"then", b"do", b"esac"}}
WITH_SEMICOLONS: Final = {"c", "c++", "java", "c#", "rust", "css"}
PROGRAMS: Final = {
    "bash": ["bash", "-n"],
    "go": ["gofmt", "-e"],
    "ruby": ["ruby", "-c"],
    "rust": ["rustfmt", "--edition", "2021"],
}
DATA: Final = {"json", "yaml", "toml", "html"}


class Leaf(NamedTuple):
    """A token: of a syntax tree, or a bracket, quote or comma of a text without a grammar."""

    start_byte: int
    end_byte: int
    type: str
    text: bytes


class Source(NamedTuple):
    """A file, its tokens, and rows of similar neighbours in its syntax tree."""

    path: Path
    data: bytes
    leaves: list[Leaf]
    rows: list[list[Node]]


Cut: TypeAlias = tuple[int, int, bytes]
"""The start and the end of a passage, and the new one."""


def read(path: Path, language: str) -> Source | None:
    data = path.read_bytes()
    syntax = HTML if language == "html" else LANGUAGES[language]
    if syntax.errors is not None:
        tokens = re.finditer(rb"[()\[\]{},:\"']", data)
        return Source(path, data, [Leaf(m.start(), m.end(), m[0].decode(), m[0]) for m in tokens], [])
    tree = parse(data, grammar(syntax))
    otherwise = syntax.otherwise
    if tree is not None and tree.root_node.has_error and otherwise is not None:
        tree = parse(data, grammar(otherwise))
    if tree is None or b"\0" in data:
        return None
    leaves: list[Leaf] = []
    rows: list[list[Node]] = []
    stack = [tree.root_node]
    while stack:
        node = stack.pop()
        children = node.children
        stack += reversed(children)
        if not children and node.end_byte > node.start_byte:
            leaves.append(Leaf(node.start_byte, node.end_byte, node.type, node.text or b""))
        rows += _similar([child for child in children if child.is_named])
    return Source(path, data, leaves, rows)


def _similar(nodes: list[Node]) -> list[list[Node]]:
    """Return runs of neighbours of the same type that have lines of their own."""
    runs: list[list[Node]] = [[]]
    for node in nodes:
        if runs[-1] and (runs[-1][-1].type != node.type or runs[-1][-1].end_point.row >= node.start_point.row):
            runs.append([])
        runs[-1].append(node)
    return [run for run in runs if len(run) > 1 and not any(node.has_error or node.is_extra for node in run)]


# --- changes that break a file ----------------------------------------------------------------------------------


def less_semicolons(language: str, source: Source) -> list[Cut]:
    """A semicolon before a bracket is not always needed."""
    if language not in WITH_SEMICOLONS:
        return []
    return [
        (leaf.start_byte, leaf.end_byte, b"")
        for leaf, following in pairwise(source.leaves)
        if leaf.type == ";" and following.type != "}"
    ]


def less(*types: str, languages: set[str] | None = None) -> Callable[[str, Source], list[Cut]]:
    """Return a break that deletes a node of one of some types."""

    def cuts(language: str, source: Source) -> list[Cut]:
        wanted = languages is None or language in languages
        return [(n.start_byte, n.end_byte, b"") for n in source.leaves if wanted and n.type in types]

    return cuts


def less_quotes(_language: str, source: Source) -> list[Cut]:
    quotes = [n for n in source.leaves if n.type in ('"', "'", "`", "string_start", "string_end")]
    return [(n.end_byte - 1, n.end_byte, b"") for n in quotes if source.data[n.end_byte - 1] in b"\"'`"]


def less_keywords(language: str, source: Source) -> list[Cut]:
    words = KEYWORDS.get(language, set())
    return [(n.start_byte, n.end_byte, b"") for n in source.leaves if n.type.encode() == n.text and n.text in words]


def indented(language: str, source: Source) -> list[Cut]:
    """One blank more or less before a line."""
    if language not in ("python", "yaml"):
        return []
    more = [(m.end(), m.end(), b" ") for m in re.finditer(rb"^ *(?=[\w-])", source.data, re.MULTILINE)]
    return more + [
        (m.start(), m.start() + 1, b"") for m in re.finditer(rb"^ +(?=[\w-])", source.data, re.MULTILINE)
    ]


def without_body(language: str, source: Source) -> list[Cut]:
    if language != "python":
        return []
    bodies = re.finditer(rb"(?<=:\n)((?: {4})+)\S.*\n(?! )", source.data)
    return [(m.start(), m.end(), b"") for m in bodies]


BREAKS: Final[Mapping[str, Callable[[str, Source], list[Cut]]]] = {
    "bracket": less("(", ")", "[", "]", "{", "}"),
    "quote": less_quotes,
    "colon": less(":", languages={"python", "json"}),
    "comma": less(",", languages={"json", "toml"}),
    "semicolon": less_semicolons,
    "keyword": less_keywords,
    "tag": less(">", "</", languages={"html"}),
    "indentation": indented,
    "body": without_body,
}


def objects(language: str, data: bytes) -> bool | None:
    """Return whether the parser of the language refuses a text; ``None`` if there is none."""
    try:
        match language:
            case "python":
                with warnings.catch_warnings(action="ignore"):
                    ast.parse(data)
            case "json":
                json.loads(data)
            case "toml":
                tomllib.loads(data.decode())
            case "yaml":
                list(yaml.parse(data, Loader=yaml.CSafeLoader))  # type: ignore[no-untyped-call]
            case _:
                program = PROGRAMS.get(language)
                if program is None or shutil.which(program[0]) is None:
                    return None
                process = subprocess.run(program, input=data, capture_output=True, check=False)
                return process.returncode != 0
    except (SyntaxError, ValueError, yaml.YAMLError, RecursionError):
        return True
    return False


# --- changes that do not ----------------------------------------------------------------------------------------


def renamed(_language: str, source: Source, _other: Source, rng: random.Random) -> bytes | None:
    names = [n for n in source.leaves if n.type.endswith("identifier") and re.fullmatch(rb"\w{5,}", n.text)]
    if not names:
        return None
    name = rng.choice(names).text
    data = source.data
    for node in reversed(names):
        if node.text == name:
            data = data[: node.end_byte] + b"_2" + data[node.end_byte :]
    return data


def commented(language: str, source: Source, _other: Source, rng: random.Random) -> bytes | None:
    comment = COMMENTS.get(language, b"// a note\n")
    if language in ("yaml", "toml"):
        start = rng.choice([m.start() for m in re.finditer(rb"^\S", source.data, re.MULTILINE)] or [0])
        return source.data[:start] + comment + source.data[start:]
    # A tag of HTML has no comments in it.
    rows = [row for row in source.rows if row[0].type != "attribute"]
    if language == "json" or not rows:
        return None
    node = rng.choice(rng.choice(rows))
    start = node.start_byte - node.start_point.column
    if source.data[start : node.start_byte].strip():
        return None
    return source.data[:start] + source.data[start : node.start_byte] + comment + source.data[start:]


def swapped(_language: str, source: Source, _other: Source, rng: random.Random) -> bytes | None:
    if not source.rows:
        return None
    row = rng.choice(source.rows)
    if row[0].type == "declaration" and source.path.suffix == ".css":
        return None
    first, second = sorted(rng.sample(row, 2), key=lambda node: node.start_byte)
    a, b = (source.data[node.start_byte : node.end_byte] for node in (first, second))
    between = source.data[first.end_byte : second.start_byte]
    return source.data[: first.start_byte] + b + between + a + source.data[second.end_byte :]


def copied(language: str, source: Source, _other: Source, rng: random.Random) -> bytes | None:
    if language in DATA or not source.rows:
        return None
    rows = [row for row in source.rows if row[0].parent is not None and row[0].parent.parent is None]
    if not rows:
        return None
    node = rng.choice(rng.choice(rows))
    start, end = node.start_byte - node.start_point.column, source.data.find(b"\n", node.end_byte) + 1
    copy = source.data[start:end]
    return source.data[:end] + copy + source.data[end:] if copy.strip() == (node.text or b"").strip() else None


def transplanted(language: str, source: Source, other: Source, rng: random.Random) -> bytes | None:
    """Put a passage of the top level of another file behind the first lines of this one."""
    own, others = (
        [n for row in file.rows for n in row if n.parent is not None and n.parent.parent is None]
        for file in (source, other)
    )
    if language in DATA or not own or not others or source.path.suffix != other.path.suffix:
        return None
    node, place = rng.choice(others), rng.choice(own)
    if place.start_point.column or node.start_point.column:
        return None
    return source.data[: place.start_byte] + (node.text or b"") + b"\n\n" + source.data[place.start_byte :]


HARMLESS: Final = {
    "rename": renamed,
    "comment": commented,
    "swap": swapped,
    "copy": copied,
    "transplant": transplanted,
}


# --- measuring --------------------------------------------------------------------------------------------------


def source_files(folders: list[str]) -> dict[str, list[Path]]:
    """Return source files below some folders by language."""
    found: dict[str, list[Path]] = {}
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            language = language_of(path.name)
            if language is not None and path.is_file() and SMALLEST <= path.stat().st_size <= LARGEST:
                found.setdefault(language, []).append(path)
    return found


class Report:
    """The figures of one language."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()
        self.made: Counter[str] = Counter()
        self.alarms: Counter[str] = Counter()
        self.harmless: Counter[str] = Counter()
        self.distances: list[int] = []
        self.ms: list[float] = []
        self.viewed_ms: list[float] = []
        self.following_ms: list[float] = []
        self.waits_ms: list[float] = []


def measure(language: str, paths: list[Path], cases: int, rng: random.Random, *, show: bool) -> Report:
    rng.shuffle(paths)
    sources = [source for path in paths[:MOST_FILES] if (source := read(path, language)) is not None]
    report = Report()
    for source in sources:
        report.harmless["new file"] += 1
        if found := new_problems(source.path.name, None, source.data):
            report.alarms["new file"] += 1
            _show(show, "new file", source, source.data, found[0].row)
    for name, edit in HARMLESS.items():
        for _ in range(cases * 3):
            source, other = rng.choice(sources), rng.choice(sources)
            after = edit(language, source, other, rng)
            if after is None or (language in ("python", "yaml", "json", "toml") and objects(language, after)):
                continue
            report.harmless[name] += 1
            versions = Versions()
            start = time.thread_time()
            found = new_problems(source.path.name, source.data, after, versions)
            first = time.thread_time() - start
            # One change later, of which some are taken back.
            start = time.thread_time()
            following = new_problems(source.path.name, after, source.data, versions)
            next_one = time.thread_time() - start
            viewed = Versions()
            prepare(source.path.name, source.data, viewed)
            start = time.thread_time()
            new_problems(source.path.name, source.data, after, viewed)
            first_viewed = time.thread_time() - start
            if (lines := after.count(b"\n")) > 200:
                report.ms.append(first * 2_000_000 / lines)
                report.viewed_ms.append(first_viewed * 2_000_000 / lines)
                report.following_ms.append(next_one * 2_000_000 / lines)
                if len(report.waits_ms) < MOST_WAITS:
                    waits = min(anyio.run(wait_of, source.path.name, source.data, after) for _ in range(3))
                    report.waits_ms.append(waits * 2_000_000 / lines)
            found = found or (following if name != "transplant" else [])
            if found:
                report.alarms[name] += 1
                _show(show, f"false alarm: {name}", source, after, found[0].row)
            if report.harmless[name] == cases:
                break
    valid = [source for source in sources if not objects(language, source.data)]
    for name, make in BREAKS.items():
        for _ in range(cases * 3):
            source = rng.choice(valid)
            cuts = make(language, source)
            if not cuts:
                continue
            start, end, text = rng.choice(cuts)
            after = source.data[:start] + text + source.data[end:]
            if objects(language, after) is False:
                continue
            report.made[name] += 1
            found = new_problems(source.path.name, source.data, after)
            row = source.data.count(b"\n", 0, start)
            if found:
                report.told[name] += 1
                report.distances.append(min(abs(problem.row - row) for problem in found[:3]))
            else:
                _show(show, f"not told: {name}", source, after, row)
            if report.made[name] == cases:
                break
    return report


async def wait_of(name: str, before: bytes, after: bytes) -> float:
    """Return how long a call waits for the check of the first change of a file that was not viewed, in seconds.

    The file is parsed while the change is planned, which takes no time here, and written.
    """
    checker, waited = SyntaxChecker(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        await anyio.to_thread.run_sync(path.write_bytes, before)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(checker.prepare, path, Files())
            await anyio.to_thread.run_sync(path.write_bytes, after)
            made = time.perf_counter()
            await checker.check([FileEdit(path, path, before, after, existed=True, exists=True)])
            waited = time.perf_counter() - made
    return waited


def _show(show: bool, what: str, source: Source, after: bytes, row: int) -> None:
    if show:
        lines = after.split(b"\n")[row : row + 3]
        print(
            what, f"{source.path}:{row + 1}", *(line.decode(errors="replace")[:110] for line in lines), sep="\n    "
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="DIRECTORY")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", metavar="LANGUAGE", help="measure one language and print what is not right")
    args = parser.parse_args()
    print("language      told              false alarms      lines off  ms for 2,000 lines (see the head)")
    failed = False
    for language, paths in sorted(source_files(args.folders).items()):
        if args.show not in (None, language):
            continue
        report = measure(language, paths, args.cases, random.Random(args.seed), show=args.show is not None)
        told, made = report.told.total(), report.made.total()
        alarms, harmless = report.alarms.total(), report.harmless.total()
        failed |= bool(alarms) or told < LIMIT * made
        off = statistics.quantiles(report.distances, n=10)[-1] if len(report.distances) > 1 else 0
        times = (report.ms, report.viewed_ms, report.following_ms, report.waits_ms)
        ms, viewed, following, waits = (statistics.median(each) if each else 0 for each in times)
        share = told / made if made else 1
        print(
            f"{language:12}  {told:4} of {made:4} {share:6.1%}  {alarms:4} of {harmless:4}  {off:12.0f}"
            f"  {ms:8.1f}  {viewed:8.1f}  {following:8.1f}  {waits:8.1f}"
        )
        missed = {name: f"{report.told[name]}/{made}" for name, made in report.made.items()}
        print("              ", *(f"{name} {text}" for name, text in missed.items()))
        print(
            "              ",
            "alarms:",
            *(f"{name} {n}/{report.harmless[name]}" for name, n in report.alarms.items()),
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
