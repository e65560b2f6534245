"""A transcript as one HTML page that needs no other file, no script and no network.

Models, tools and servers have written most of the text: everything is escaped, the Markdown of answers has no HTML
and no images, and the page's policy forbids to load or run anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from jumpseat_protocol.safe import one_line, safe
from jumpseat_protocol.visible import visible
from jumpseat_transcript.calls import main_argument
from jumpseat_transcript.summary import facts, usage_table
from jumpseat_transcript.transcript import Answer, Call, Item, Note, Thought, Transcript, Turn
from jumpseat_transcript.words import display_time

_MARKS: Final = {"done": "●", "failed": "✗", "denied": "✗", "cancelled": "○", "unfinished": "○"}
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def as_html(transcript: Transcript) -> str:
    """Render a transcript as an HTML page."""
    title = escape(one_line(transcript.title or transcript.session_id))
    style = files("jumpseat_transcript").joinpath("page.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>",
            f"<header>\n<h1>{title}</h1>",
            *_facts(transcript),
            "</header>\n<main>",
            *(line for number, turn in enumerate(transcript.turns, 1) for line in _turn(number, turn)),
            f"</main>\n<footer>{escape(transcript.session_id)}</footer>\n</body>\n</html>\n",
        ]
    )


def _facts(transcript: Transcript) -> Iterator[str]:
    yield "<dl>"
    for name, value in facts(transcript):
        yield f"<dt>{escape(name)}</dt><dd>{escape(one_line(value))}</dd>"
    yield "</dl>"
    head, *rows = usage_table(transcript.usage)
    if rows:
        yield f"<table>\n<thead>{_row(head, 'th')}</thead>\n<tbody>"
        yield from (_row(row, "td") for row in rows)
        yield "</tbody>\n</table>"


def _row(cells: Sequence[str], tag: str) -> str:
    first, *numbers = (escape(one_line(cell)) for cell in cells)
    others = "".join(f'<{tag} class="number">{cell}</{tag}>' for cell in numbers)
    return f"<tr><{tag}>{first}</{tag}>{others}</tr>"


def _turn(number: int, turn: Turn) -> Iterator[str]:
    yield f'<section id="turn-{number}">'
    if turn.prompt is not None:
        yield f"<time>{escape(display_time(turn.time))}</time>"
        yield f'<div class="prompt">{_text(turn.prompt.strip())}</div>'
    if turn.attached:
        yield f'<p class="aside">attached: {escape(one_line(", ".join(turn.attached)))}</p>'
    for line in turn.commands:
        yield f'<p class="aside">run before by the user: <code>{escape(one_line(line))}</code></p>'
    for item in turn.items:
        yield from _item(item)
    yield "</section>"


def _item(item: Item) -> Iterable[str]:
    match item:
        case Answer(text=text, interrupted=interrupted):
            yield _markdown(safe(text))
            if interrupted:
                yield '<p class="note warning">interrupted</p>'
        case Thought(text=text):
            yield f'<details><summary class="about">reasoning</summary><pre>{_text(text)}</pre></details>'
        case Call():
            yield from _call(item)
        case Note(text=text, level=level):
            yield f'<p class="note {level}">{_text(text)}</p>'


def _call(call: Call) -> Iterator[str]:
    argument = visible(" ".join(main_argument(call.arguments).split()))[:300]
    yield "<details>"
    yield (
        f'<summary><span class="mark {call.status}">{_MARKS[call.status]}</span> <b>{_text(call.tool)}</b>'
        f" <code>{escape(argument)}</code>"
        f' <span class="about">{escape(one_line(call.summary))}</span></summary>'
    )
    yield f'<p class="label">arguments</p>\n<pre>{escape(_arguments(call.arguments))}</pre>'
    if call.diff:
        yield f'<p class="label">change</p>\n<pre class="diff">{_diff(call.diff)}</pre>'
    elif call.output.strip():
        yield f'<p class="label">result</p>\n<pre>{_text(call.output.rstrip())}</pre>'
    yield "</details>"


def _arguments(value: Any) -> str:
    """Return arguments as they ran, so that nothing in them is invisible."""
    if isinstance(value, dict):
        lines: list[str] = []
        for name, part in value.items():  # pyright: ignore[reportUnknownVariableType]
            text = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False, indent=2)
            lines.append(f"{name}: {text}")
        return visible("\n".join(lines))
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _diff(diff: str) -> str:
    kinds = {"+": "added", "-": "removed", "@": "hunk"}
    lines: list[str] = []
    for number, line in enumerate(safe(diff).rstrip("\n").split("\n")):
        kind = "hunk" if number < 2 else kinds.get(line[:1], "")
        lines.append(
            f'<span class="{kind}">{escape(line) or " "}</span>' if kind else f"<span>{escape(line) or ' '}</span>"
        )
    return "".join(lines)


def _text(text: str) -> str:
    return escape(safe(text))


def _markdown(text: str) -> str:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
    parser.add_render_rule("link_open", _open_link)
    return parser.render(text)


def _open_link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    return renderer.renderToken(tokens, index, options, env)
