"""Render a transcript for a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from jumpseat_terminal.paint import DIFF_LINES, Painter, without_styles
from jumpseat_transcript.summary import facts, usage_table
from jumpseat_transcript.transcript import Answer, Call, Item, Note, Thought, Transcript

OUTPUT_LINES: Final = 10
"""Maximum lines shown of the output of a call."""
PLAIN_WIDTH: Final = 100


def print_transcript(transcript: Transcript, *, full: bool) -> None:
    """Print a transcript to stdout: with colours at a terminal, as plain text of a fixed width elsewhere."""
    at_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if at_terminal else PLAIN_WIDTH
    colour = at_terminal and not os.environ.get("NO_COLOR")
    text = paint_transcript(transcript, Painter(width, colour=colour, more="--full"), full=full)
    # The reader may close the pipe early, as `head` does.
    with suppress(BrokenPipeError):
        sys.stdout.write(text if at_terminal else without_styles(text))
        sys.stdout.flush()


def paint_transcript(transcript: Transcript, painter: Painter, *, full: bool) -> str:
    """Render a transcript; without ``full``, long outputs and diffs are shortened, and reasoning is one line."""
    return "".join(_parts(transcript, painter, full=full))


def _parts(transcript: Transcript, painter: Painter, *, full: bool) -> Iterator[str]:
    yield painter.notice(transcript.title or transcript.session_id, "bold") + "\n"
    yield painter.table(facts(transcript))
    rows = usage_table(transcript.usage)
    if len(rows) > 1:
        yield "\n" + painter.table(rows)
    for turn in transcript.turns:
        if turn.prompt is not None:
            yield painter.prompt(turn.prompt, [*turn.attached, *(f"! {line}" for line in turn.commands)])
        previous: Item | None = None
        for item in turn.items:
            # No empty lines between consecutive calls.
            apart = previous is not None and not (isinstance(item, Call) and isinstance(previous, Call))
            yield ("\n" if apart or (previous is None and turn.prompt is not None) else "") + _item(
                item, painter, full=full
            )
            previous = item


def _item(item: Item, painter: Painter, *, full: bool) -> str:
    match item:
        case Answer(text=text, interrupted=interrupted):
            return painter.markdown(text) + (painter.notice("(interrupted)", "yellow") if interrupted else "")
        case Thought(text=text):
            return painter.reasoning(text) if full else painter.notice(f"∴ thought, {len(text.split()):,} words")
        case Call():
            return _call(item, painter, full=full)
        case Note(text=text, level="error"):
            return painter.error(text)
        case Note(text=text, level="warning"):
            return painter.warning(text)
        case Note(text=text):
            return painter.notice(text)


def _call(call: Call, painter: Painter, *, full: bool) -> str:
    failed = call.status in ("failed", "denied", "cancelled")
    text = painter.tool(call.tool, call.arguments, call.summary, failed=failed)
    if call.diff:
        return text + painter.diff(call.diff, None if full else DIFF_LINES)
    if call.output.strip():
        return text + painter.output(call.output, None if full else OUTPUT_LINES)
    return text
