"""A transcript as Markdown.

Prompts are quotations, and outputs are in fences that they cannot close. Answers are Markdown already; what
looks like HTML in them is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jumpseat_transcript.calls import main_argument
from jumpseat_transcript.plain_markdown import plain_markdown
from jumpseat_transcript.summary import facts, usage_table
from jumpseat_transcript.transcript import Answer, Call, Item, Note, Thought, Transcript
from jumpseat_transcript.words import display_time

_BACKTICKS = re.compile("`+")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def as_markdown(transcript: Transcript) -> str:
    """Render a transcript as Markdown."""
    return "\n\n".join(_blocks(transcript)).rstrip() + "\n"


def _blocks(transcript: Transcript) -> Iterator[str]:
    yield f"# {_plain(transcript.title or transcript.session_id)}"
    yield "\n".join(f"- {name}: {_plain(value)}" for name, value in facts(transcript))
    rows = usage_table(transcript.usage)
    if len(rows) > 1:
        head, *body = (f"| {' | '.join(map(_plain, row))} |" for row in rows)
        yield "\n".join([head, f"|{' --- |' * len(rows[0])}", *body])
    for turn in transcript.turns:
        if turn.prompt is not None:
            yield f"## {display_time(turn.time)}"
            yield _quoted(turn.prompt)
        if turn.attached:
            yield f"Attached: {_plain(', '.join(turn.attached))}"
        yield from (f"Run before by the user: {_code(line)}" for line in turn.commands)
        for item in turn.items:
            yield from _item(item)


def _item(item: Item) -> Iterator[str]:
    match item:
        case Answer(text=text, interrupted=interrupted):
            yield plain_markdown(text.strip())
            if interrupted:
                yield "*(interrupted)*"
        case Thought(text=text):
            yield f"<details><summary>Reasoning</summary>\n\n{_fenced(text)}\n\n</details>"
        case Call():
            yield _call(item)
        case Note(text=text, level=level):
            yield f"*{'' if level == 'info' else f'{level}: '}{_plain(text)}*"


def _call(call: Call) -> str:
    argument = " ".join(main_argument(call.arguments).split())
    title = f"**{_plain(call.tool)}** {_code(argument[:200])}" if argument else f"**{_plain(call.tool)}**"
    parts = [f"{title} ({_plain(call.summary)})"]
    if call.diff:
        parts.append(_fenced(call.diff, "diff"))
    elif call.output.strip():
        parts.append(_fenced(call.output))
    return "\n\n".join(parts)


def _plain(text: str) -> str:
    """Return text on one line in which no character has a meaning in Markdown."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in plain_markdown(text.strip()).split("\n"))


def _code(text: str) -> str:
    """Return text on one line as code."""
    text = " ".join(text.split())
    ticks = "`" * (_longest(_BACKTICKS.findall(text)) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _fenced(text: str, language: str = "text") -> str:
    fence = "`" * max(_longest(_BACKTICKS.findall(text)) + 1, 3)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _longest(runs: Iterable[str]) -> int:
    return max(map(len, runs), default=0)
