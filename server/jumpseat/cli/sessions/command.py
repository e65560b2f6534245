"""The commands ``list``, ``show``, ``export``, ``delete``, ``prune`` and ``stats``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import anyio

from jumpseat.cli.commands import (
    FAILED,
    CommandContext,
    CommandParser,
    print_error,
    print_json,
    print_table,
    print_text,
)
from jumpseat.cli.sessions.selection import (
    Filter,
    Listed,
    find_session,
    list_sessions,
    parse_age,
    parse_time,
    read_records,
    read_transcript,
)
from jumpseat.cli.sessions.statistics import Statistics, count_sessions
from jumpseat.errors import JumpseatError, SessionNotFoundError
from jumpseat.store.session.pruning import find_prunable
from jumpseat.store.session.sessions import SessionFolder, SessionStore
from jumpseat_protocol.safe import one_line
from jumpseat_transcript.exporting import FORMATS, ExportError, export, format_of, write_new_file
from jumpseat_transcript.summary import usage_table
from jumpseat_transcript.words import count, display_time, with_tilde

TITLE_CHARS: Final = 60
MOST_ROWS: Final = 12
"""Folders and tools that ``stats`` lists."""


DESCRIPTION: Final = "Look at stored sessions, export and delete them. ID is the beginning of an id, or 'last'."


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    return anyio.run(_run, ctx, args)


async def _run(ctx: CommandContext, args: argparse.Namespace) -> int:
    # The store starts no task here, because nothing writes events.
    async with anyio.create_task_group() as tasks:
        return _Command(SessionStore(ctx.home, tasks), ctx, args).run()
    raise AssertionError("unreachable: the group has no other tasks")


class _Command:
    def __init__(self, store: SessionStore, ctx: CommandContext, args: argparse.Namespace) -> None:
        self._store = store
        self._ctx = ctx
        self._args = args

    def run(self) -> int:
        """Run the command and return the exit code."""
        commands: dict[str, Callable[[], int]] = {
            "list": self._list,
            "show": self._show,
            "export": self._export,
            "delete": self._delete,
            "prune": self._prune,
            "stats": self._stats,
        }
        try:
            return commands[self._args.command]()
        except ExportError as error:
            print_error(str(error))
            return FAILED

    def _selected(self) -> list[Listed]:
        args = self._args
        folder = Path(os.path.abspath(args.folder)) if args.folder is not None else None
        return list_sessions(self._store, Filter(folder, args.text, args.since, args.until))

    def _list(self) -> int:
        found = self._selected()
        shown = found[: self._args.limit]
        if self._args.json:
            print_json([_entry(session) for session in shown])
            return 0
        if self._ctx.in_cluster:
            print_text("The sessions of a cluster are in its store, and not listed here.")
        if not shown:
            print_text("No sessions.")
            return 0
        rows = [("id", "changed", "title", "folder", "")]
        rows += [
            (
                session.id[:8],
                display_time(session.metadata.modified_time),
                _shorten(one_line(session.title)),
                one_line(with_tilde(session.cwd)),
                ", ".join(session.marks),
            )
            for session in shown
        ]
        print_table(rows)
        if len(found) > len(shown):
            print_text(f"\n{count(len(found) - len(shown), 'older session')} not shown: --limit {len(found)}")
        return 0

    def _show(self) -> int:
        self._ctx.show_transcript(read_transcript(find_session(self._store, self._args.id)), full=self._args.full)
        return 0

    def _export(self) -> int:
        args = self._args
        folder = find_session(self._store, args.id)
        text = export(read_transcript(folder), read_records(folder), args.format or format_of(args.output) or "md")
        if args.output is None:
            print_text(text.rstrip("\n"))
        else:
            write_new_file(args.output, text, replace=args.force)
            print(f"Wrote {args.output}", file=sys.stderr)  # noqa: T201 - a message for people
        return 0

    def _delete(self) -> int:
        folders = [find_session(self._store, text) for text in self._args.ids]
        if not self._confirms(f"Delete {count(len(folders), 'session')} for good?"):
            return FAILED
        return self._remove(folders)

    def _prune(self) -> int:
        args = self._args
        concerned = self._marked(args.only) if args.only else None
        found = find_prunable(
            self._store.iter_stored(),
            time.time() - args.older_than,
            named_too=args.named,
            concerns=lambda session_id: concerned is None or session_id in concerned,
        )
        size = sum(found.sizes.values())
        for session_id in found.skipped:
            print_text(f"{session_id[:8]}  kept: it is open, or has a name (--named)")
        if args.dry_run or not found.sizes:
            for session_id, bytes_ in found.sizes.items():
                print_text(f"{session_id[:8]}  {_size(bytes_)}")
            print_text(f"{count(len(found.sizes), 'session')} to delete, {_size(size)}")
            return 0
        if not self._confirms(f"Delete {count(len(found.sizes), 'session')} ({_size(size)}) for good?"):
            return FAILED
        return self._remove([self._store.folder(session_id) for session_id in found.sizes])

    def _marked(self, mark: str) -> set[str]:
        return {session.id for session in list_sessions(self._store, Filter()) if mark in session.marks}

    def _remove(self, folders: Sequence[SessionFolder]) -> int:
        """Delete sessions; one that is open in another process is an error, which does not stop the others."""
        failed = 0
        for folder in folders:
            try:
                folder.claim()
                folder.remove()
                print_text(f"Deleted {folder.path.name}")
            except SessionNotFoundError:
                # Deleted meanwhile.
                pass
            except JumpseatError as error:
                failed += 1
                print_error(f"session {folder.path.name}: {error}")
        return FAILED if failed else 0

    def _confirms(self, question: str) -> bool:
        """Ask before something is lost; without a terminal to ask on, require ``--yes``."""
        if self._args.yes:
            return True
        if not sys.stdin.isatty():
            print_error("no terminal to ask on: --yes deletes without a question")
            return False
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")

    def _stats(self) -> int:
        sums = count_sessions(self._selected())
        if self._args.json:
            print_json(sums.wire())
        else:
            _print_statistics(sums)
        return 0


def _entry(session: Listed) -> dict[str, Any]:
    """Return a session as JSON values. Times are ISO 8601 in UTC."""
    metadata, context = session.metadata, session.metadata.context
    return {
        "id": session.id,
        "title": session.title,
        "name": metadata.name,
        "folder": session.cwd,
        "repository": context.repository if context is not None else None,
        "branch": context.branch if context is not None else None,
        "startedAt": metadata.start_time,
        "changedAt": metadata.modified_time,
        "createdBy": session.folder.created_by,
        "inUse": session.folder.in_use(),
        "marks": session.marks,
    }


def _print_statistics(sums: Statistics) -> None:
    marked = [
        f"{number:,} {mark}"
        for number, mark in ((sums.one_off, "one-off"), (sums.unanswered, "unanswered"))
        if number
    ]
    print_table(
        [
            ("sessions", ", ".join([f"{sums.sessions:,}", *marked])),
            ("prompts", f"{sums.prompts:,}"),
            ("tool calls", f"{sums.calls:,}, {sums.denied:,} denied"),
            ("changes", f"+{sums.lines_added:,} -{sums.lines_removed:,} lines"),
            ("on disk", _size(sums.size_bytes)),
        ]
    )
    if sums.usage:
        print_text("")
        print_table([tuple(map(one_line, row)) for row in usage_table(sums.usage)])
    for title, counted, thing in (("folder", sums.folders, "sessions"), ("tool", sums.tools, "calls")):
        if counted:
            print_text("")
            rows = [(one_line(with_tilde(name)), f"{number:,}") for name, number in counted.most_common(MOST_ROWS)]
            print_table([(title, thing), *rows])
    if sums.unreadable:
        print_text(f"\n{count(sums.unreadable, 'log')} cannot be read.")


def add_arguments(parser: CommandParser) -> None:
    add = parser.add_command
    listing = add("list", "list sessions, the last changed first")
    _add_filters(listing)
    listing.add_argument("--limit", type=_number, default=50, metavar="N", help="list at most N; default: 50")
    listing.add_json()
    showing = add("show", "show prompts, answers, tool calls, approvals and cost")
    showing.add_argument("id", metavar="ID")
    showing.add_argument("--full", action="store_true", help="show outputs, changes and reasoning in full")
    exporting = add("export", "write a session as Markdown, as an HTML page or as JSON lines")
    exporting.add_argument("id", metavar="ID")
    exporting.add_argument("--format", choices=FORMATS, help="default: by the name of the file, or md")
    exporting.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: stdout")
    exporting.add_argument("--force", action="store_true", help="replace a file that exists")
    deleting = add("delete", "delete sessions")
    deleting.add_argument("ids", metavar="ID", nargs="+")
    pruning = add("prune", "delete sessions that have not changed for some time")
    pruning.add_argument("--older-than", type=_age, required=True, metavar="AGE", help="such as 30d, 12h, 4w")
    pruning.add_argument("--only", choices=("one-off", "unanswered"), help="only sessions with this mark")
    pruning.add_argument("--named", action="store_true", help="include sessions that have a name")
    pruning.add_argument("--dry-run", action="store_true", help="only list the sessions to delete")
    for command in (deleting, pruning):
        command.add_argument("--yes", action="store_true", help="do not ask")
    statistics = add("stats", "count sessions, calls, tokens and cost")
    _add_filters(statistics)
    statistics.add_json()


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", metavar="DIR", help="only sessions in this folder or below")
    parser.add_argument("--text", metavar="WORDS", help="only sessions with all these words in prompts and answers")
    parser.add_argument("--since", type=_time, metavar="WHEN", help="a date, such as 2026-01-31, or an age: 7d")
    parser.add_argument("--until", type=_time, metavar="WHEN", help="the same")


def _time(text: str) -> float:
    try:
        return parse_time(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"expected a date (2026-01-31) or an age (7d, 12h, 4w), got {text!r}"
        ) from None


def _age(text: str) -> float:
    try:
        return parse_age(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected an age such as 30d, 12h or 4w, got {text!r}") from None


def _number(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1_000_000:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return int(text)


def _shorten(title: str) -> str:
    return title if len(title) <= TITLE_CHARS else f"{title[: TITLE_CHARS - 1]}…"


def _size(number: int) -> str:
    size = float(number)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
