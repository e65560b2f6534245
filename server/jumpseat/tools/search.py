"""Searching files in plain Python: what to search for, what a hit is, and the engine that needs no program.

Blocking: :func:`search_files` runs in a worker thread.
"""

from __future__ import annotations

import bisect
import codecs
import itertools
import os
import re
import stat
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jumpseat.tools.glob import compile_glob, walk_files

FILE_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Larger files are passed over: each is read as a whole."""


@dataclass(slots=True)
class Line:
    number: int
    text: str
    matches: bool


@dataclass(slots=True)
class FileHits:
    """The matching lines of a file, with their context, in order.

    ``name`` is relative to the searched directory, empty where a single file was searched.
    """

    name: str
    lines: list[Line] = field(default_factory=list[Line])


class InvalidGlobError(Exception):
    """The glob that selects files is malformed."""


@dataclass(frozen=True, slots=True)
class Search:
    """A search as both engines take it. ``regex`` is ``None`` where Python refuses the pattern."""

    pattern: str
    root: Path
    file: str | None
    glob: str | None
    wanted: Callable[[str], bool]
    regex: re.Pattern[str] | None
    regex_error: str | None
    ignore_case: bool
    multiline: bool
    before: int
    after: int
    first_only: bool

    @classmethod
    def of(
        cls,
        pattern: str,
        path: Path,
        *,
        is_directory: bool,
        glob: str | None,
        ignore_case: bool,
        multiline: bool,
        before: int,
        after: int,
        first_only: bool,
    ) -> Search:
        """
        Raises:
            InvalidGlobError: ``glob`` is malformed.
        """
        # A file that is named is searched, whatever the glob.
        glob = glob if is_directory else None
        regex, regex_error = None, None
        try:
            with warnings.catch_warnings():
                # Python warns of [[:alpha:]] and the like, which helps nobody here.
                warnings.simplefilter("ignore")
                flags = re.MULTILINE | (re.DOTALL if multiline else 0) | (re.IGNORECASE if ignore_case else 0)
                regex = re.compile(pattern, flags)
        except (re.error, OverflowError, RecursionError) as error:
            regex_error = str(error)
        return cls(
            pattern=pattern,
            root=path if is_directory else path.parent,
            file=None if is_directory else path.name,
            glob=glob,
            wanted=_selector(glob),
            regex=regex,
            regex_error=regex_error,
            ignore_case=ignore_case,
            multiline=multiline,
            before=before,
            after=after,
            first_only=first_only,
        )


def search_files(search: Search, add: Callable[[FileHits], bool]) -> None:
    """Hand the hits of each file to ``add``, in order of the paths, until it says that it has enough."""
    root = str(search.root)
    names = walk_files(root) if search.file is None else iter([search.file])
    for name in names:
        if not search.wanted(name):
            continue
        text = _read_text(os.path.join(root, name), follow=search.file is not None)
        lines = _matching_lines(search, text) if text else []
        if lines and not add(FileHits(name if search.file is None else "", lines)):
            return


def _read_text(path: str, *, follow: bool) -> str | None:
    """The text of a regular file, or ``None`` for everything that is not searched."""
    try:
        # Opening a pipe would wait for ever; links are followed only where the call names them.
        status = os.stat(path, follow_symlinks=follow)
        if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_LIMIT_BYTES:
            return None
        with open(path, "rb") as file:
            data = file.read(FILE_LIMIT_BYTES)
    except OSError:
        return None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")
    elif b"\0" in data:
        return None
    else:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    return text.replace("\r\n", "\n")


def _matching_lines(search: Search, text: str) -> list[Line]:
    assert search.regex is not None
    lines = text.removesuffix("\n").split("\n")
    if search.multiline:
        matching = _multiline_matches(search.regex, text, len(lines))
    elif not _may_match(search, text):
        return []
    else:
        found = (index for index, line in enumerate(lines) if search.regex.search(line))
        matching = list(itertools.islice(found, 1) if search.first_only else found)
    hits = set(matching)
    shown = hits
    if search.before or search.after:
        shown = {
            near
            for index in matching
            for near in range(max(0, index - search.before), min(len(lines), index + search.after + 1))
        }
    return [Line(index + 1, lines[index], index in hits) for index in sorted(shown)]


def _may_match(search: Search, text: str) -> bool:
    """One search of the whole text saves going through the lines of most files.

    Not for patterns that look beyond a line: they may match a line alone and the whole text nowhere.
    """
    assert search.regex is not None
    return re.search(r"\(\?|\\[AZ]", search.pattern) is not None or search.regex.search(text) is not None


def _multiline_matches(regex: re.Pattern[str], text: str, count: int) -> list[int]:
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    found: dict[int, None] = {}
    for match in regex.finditer(text):
        first = bisect.bisect_right(starts, match.start()) - 1
        last = bisect.bisect_right(starts, max(match.start(), match.end() - 1)) - 1
        found.update(dict.fromkeys(range(first, min(last + 1, count))))
    return list(found)


def _selector(glob: str | None) -> Callable[[str], bool]:
    """Whether a relative path is wanted, by the rules of ``rg --glob``.

    Without a slash the glob is about names at any depth; ``!`` in front excludes, directories too.
    """
    if not glob:
        return lambda _name: True
    excludes = glob.startswith("!")
    pattern = glob.removeprefix("!")
    try:
        regex = compile_glob(pattern.removeprefix("/"))
    except re.error as error:
        raise InvalidGlobError from error

    def matches(path: str) -> bool:
        return regex.fullmatch(path if "/" in pattern else path.rpartition("/")[2]) is not None

    if not excludes:
        return matches
    return lambda name: not any(map(matches, itertools.accumulate(name.split("/"), "{}/{}".format)))
