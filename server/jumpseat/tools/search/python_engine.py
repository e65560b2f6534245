"""The search engine in Python, a program that runs in its own process.

A regular expression can block Python's interpreter for hours, and only a process can be killed then.
It searches its working directory, or the ``texts`` or ``names`` in the request. It reads one request, in JSON, from
standard input, and writes hits as records in the format of ``rg --json``, with two further types: ``file``, a path
that a glob matches, and ``error``. A ``summary`` comes last unless there was an error.
:mod:`jumpseat.tools.search.engine` starts it and limits its time.
It imports little, and only of the standard library: most searches take less time than an import.
"""

from __future__ import annotations

import binascii
import codecs
import faulthandler
import itertools
import json
import os
import re
import signal
import stat
import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator
    from typing import Any, Final, NoReturn

MEMORY_LIMIT_BYTES: Final = 1024 * 1024 * 1024


class RefusedError(Exception):
    """The request is invalid: ``reason`` is ``pattern`` or ``glob``."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text


def main() -> NoReturn:
    request = json.load(sys.stdin.buffer)
    _bound(request.pop("parent"), request.pop("seconds"))
    try:
        {"grep": grep, "glob": glob}[request.pop("tool")](**request)
    except RefusedError as error:
        _emit("error", reason=error.reason, text=error.text)
    except MemoryError:
        _emit("error", reason="memory", text="")
    except BrokenPipeError:
        # The server has enough hits.
        os._exit(1)
    # Finalizing the interpreter takes longer than many searches.
    os._exit(0)


def grep(
    *,
    pattern: str,
    file: str | None,
    glob: str | None,
    ignore_case: bool,
    multiline: bool,
    before: int,
    after: int,
    first_only: bool,
    content: bool,
    file_limit: int,
    skipped: list[str],
    ignored: list[str],
    texts: dict[str, str] | None = None,
) -> None:
    regex = _compile(pattern, ignore_case=ignore_case, multiline=multiline)
    is_selected = _selector(glob)
    # Searching the whole text first avoids splitting most files into lines. Not for patterns that look around:
    # they may match a single line without matching the whole text.
    look_first = not multiline and re.search(r"\(\?|\\[AZ]", pattern) is None
    names = walk_files(skipped, set(ignored)) if file is None else iter([file])
    for name in names if texts is None else texts:
        if not is_selected(name):
            continue
        text = _read_text(name, file_limit, follow=file is not None) if texts is None else texts[name]
        if not text or (look_first and regex.search(text) is None):
            continue
        found = _multiline_hits(regex, text) if multiline else _line_hits(regex, text)
        lines = _with_context(text, itertools.islice(found, 1) if first_only else found, before, after)
        begun = False
        for number, matches, start, end in lines:
            if not begun:
                begun = True
                _emit("begin", path=_encoded(name))
            shown = text[start:end] if content else ""
            _emit("match" if matches else "context", lines={"text": shown}, line_number=number)
        if begun:
            _emit("end", binary_offset=None)
            sys.stdout.flush()
    _emit("summary")


def glob(
    *,
    pattern: str,
    depth: int | None,
    limit: int,
    skipped: list[str],
    ignored: list[str],
    names: list[str] | None = None,
) -> None:
    try:
        matcher = compile_glob(pattern)
    except re.error as error:
        raise RefusedError("glob", str(error)) from error
    more = 0
    for name in walk_files(skipped, set(ignored), depth, as_text=True) if names is None else names:
        if matcher.fullmatch(name) is None:
            continue
        if limit == 0:
            more += 1
            continue
        limit -= 1
        _emit("file", path=_encoded(name))
        # Flushed, because the next name may take for ever to match.
        sys.stdout.flush()
    _emit("summary", more=more)


def walk_files(
    skipped: Container[str], ignored: Container[str], depth: int | None = None, *, as_text: bool = False
) -> Iterator[str]:
    """Yield the relative paths of the files below the working directory; linked directories are not followed.

    Ordered by the names in each directory or, if ``as_text``, by whole paths. Leaves out names in ``skipped``,
    paths in ``ignored`` (those of directories end with a slash) and directories that cannot be read.
    """

    def position(entry: os.DirEntry[str]) -> bytes:
        return os.fsencode(f"{entry.name}/" if as_text and entry.is_dir(follow_symlinks=False) else entry.name)

    stack = [("", 1)]
    while stack:
        relative, level = stack.pop()
        if relative and not relative.endswith("/"):
            yield relative
            continue
        try:
            with os.scandir(f"./{relative}") as scan:
                entries = sorted(scan, key=position, reverse=True)
        except OSError:
            continue
        for entry in entries:
            if entry.name in skipped:
                continue
            name = relative + entry.name
            if entry.is_dir(follow_symlinks=False):
                if (depth is None or level < depth) and f"{name}/" not in ignored:
                    stack.append((f"{name}/", level + 1))
            elif name not in ignored and not (entry.is_symlink() and entry.is_dir()):
                stack.append((name, level))


def compile_glob(pattern: str) -> re.Pattern[str]:
    """Compile a glob for whole relative paths: ``**``, ``*``, ``?``, ``[...]`` and ``{a,b}``.

    Raises:
        re.error: the pattern is malformed.
    """
    # Repetitions are redundant, and would make matching take exponential time.
    pattern = re.sub(r"(?:\*\*/){2,}", "**/", re.sub(r"\*{3,}", "**", pattern))
    return re.compile(_translate(pattern), re.DOTALL)


def _translate(pattern: str) -> str:
    result: list[str] = []
    at = open_braces = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
            result.append("(?:[^/]+/)*")
            at += 3
            continue
        if pattern.startswith("**", at):
            result.append(".*")
            at += 2
            continue
        at += 1
        if char == "*":
            result.append("[^/]*")
        elif char == "?":
            result.append("[^/]")
        elif char == "[" and (end := pattern.find("]", at + 1)) > 0:
            negated = pattern[at] in "!^"
            # Only the hyphen has the same meaning in globs and regular expressions.
            body = re.sub(r"[^\w-]|-(?=-)", r"\\\g<0>", pattern[at + negated : end])
            result.append(f"[^/{body}]" if negated else f"(?!/)[{body}]")
            at = end + 1
        elif char == "{" and "}" in pattern[at:]:
            result.append("(?:")
            open_braces += 1
        elif char == "}" and open_braces:
            result.append(")")
            open_braces -= 1
        elif char == "," and open_braces:
            result.append("|")
        elif char == "\\" and at < len(pattern):
            result.append(re.escape(pattern[at]))
            at += 1
        else:
            result.append(re.escape(char))
    return "".join(result)


def _selector(glob: str | None) -> Callable[[str], bool]:
    """Return a function that decides whether a relative path is searched, by the rules of ``rg --glob``.

    A glob without a slash matches names at any depth; a leading ``!`` excludes files and directories.
    """
    if not glob:
        return lambda _name: True
    excludes = glob.startswith("!")
    pattern = glob.removeprefix("!")
    try:
        regex = compile_glob(pattern.removeprefix("/"))
    except re.error as error:
        raise RefusedError("glob", str(error)) from error

    def matches(path: str) -> bool:
        return regex.fullmatch(path if "/" in pattern else path.rpartition("/")[2]) is not None

    if not excludes:
        return matches
    return lambda name: not any(map(matches, itertools.accumulate(name.split("/"), "{}/{}".format)))


def _compile(pattern: str, *, ignore_case: bool, multiline: bool) -> re.Pattern[str]:
    flags = re.MULTILINE | (re.DOTALL if multiline else 0) | (re.IGNORECASE if ignore_case else 0)
    # Python warns about [[:alpha:]] and the like, which nobody would see.
    warnings.simplefilter("ignore")
    try:
        return re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise RefusedError("pattern", str(error)) from error


def _read_text(path: str, limit: int, *, follow: bool) -> str | None:
    """Return the text of a regular file, ``None`` for anything that is not searched."""
    try:
        # Opening a pipe would block; a link is followed only if the call names it.
        status = os.stat(path, follow_symlinks=follow)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return None
        with open(path, "rb") as file:
            data = file.read(limit)
    except OSError:
        return None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")
    elif b"\0" in data:
        return None
    else:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    return text.replace("\r\n", "\n")


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each line; a list of all would take many times the memory of the text."""
    start, stop = 0, len(text) - text.endswith("\n")
    while start <= stop:
        end = text.find("\n", start, stop)
        if end < 0:
            end = stop
        yield start, end
        start = end + 1


def _line_hits(regex: re.Pattern[str], text: str) -> Iterator[int]:
    return (index for index, (start, end) in enumerate(_lines(text)) if regex.search(text[start:end]))


def _multiline_hits(regex: re.Pattern[str], text: str) -> Iterator[int]:
    """Yield the indexes of the lines that matches in the whole text touch, each once."""
    count = text.count("\n", 0, len(text) - 1) + 1
    at = line = following = 0
    for match in regex.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        last = line + text.count("\n", at, max(at, match.end() - 1))
        yield from range(max(line, following), min(last + 1, count))
        following = max(following, last + 1)


def _with_context(text: str, hits: Iterator[int], before: int, after: int) -> Iterator[tuple[int, bool, int, int]]:
    """Yield line number, whether it matches, start and end of each hit and of the lines around it."""
    hit, last = next(hits, None), -after - 1
    for index, (start, end) in enumerate(_lines(text)):
        if index == hit:
            yield index + 1, True, start, end
            hit, last = next(hits, None), index
        elif index <= last + after or (hit is not None and index >= hit - before):
            yield index + 1, False, start, end
        elif hit is None:
            return


def _encoded(name: str) -> dict[str, str]:
    try:
        name.encode()
    except UnicodeEncodeError:
        return {"bytes": binascii.b2a_base64(os.fsencode(name), newline=False).decode()}
    return {"text": name}


def _emit(kind: str, **data: Any) -> None:
    # The type comes first and without spaces, as in the records of ripgrep.
    record = json.dumps({"type": kind, "data": data}, separators=(",", ":"))
    sys.stdout.write(f"{record}\n")
    if kind in ("summary", "error"):
        sys.stdout.flush()


def _bound(parent: int, seconds: float) -> None:
    """Make this process exit by itself if its parent dies, and limit its memory."""
    # This timer runs in a C thread, which does not need the interpreter that a regular expression may block.
    faulthandler.dump_traceback_later(seconds, exit=True, file=open(os.devnull, "w"))  # noqa: SIM115 - kept open
    if sys.platform == "win32":
        # Windows has neither the limit nor the timer.
        return
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (ValueError, OSError):
        # macOS may refuse the limit, and a stricter one may be in force.
        pass
    # Regular expressions do handle signals.
    signal.signal(signal.SIGALRM, lambda _number, _frame: _check_parent(parent))
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)


def _check_parent(parent: int) -> None:
    """Exit if the parent has died, and flush the hits found so far."""
    if os.getppid() != parent:
        os._exit(1)
    try:  # noqa: SIM105 - contextlib is one more import
        sys.stdout.flush()
    except RuntimeError:
        # The signal interrupted a write.
        pass


if __name__ == "__main__":
    main()
