"""Convert HTML to Markdown for models, without navigation, scripts and layout.

Works in one pass and without recursion, because pages come from strangers and may be malicious. Imported when the
first page is converted.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from time import monotonic
from typing import Final
from urllib.parse import urljoin

from msgspec import Struct

CHUNK_CHARACTERS: Final = 1 << 16
"""Characters that are parsed between two checks of the time."""
TIME_LIMIT_S: Final = 5.0
LONGEST_REST: Final = 4096
"""A longer unfinished tag or comment at the end of a page is left out: it would be scanned again for each ``<``."""
SHORTEST_MAIN: Final = 200
"""A main part with fewer characters than this is ignored, and the whole page is used."""
DEEPEST_INDENT: Final = 6

_SKIPPED: Final = frozenset(
    """
    script style noscript template svg canvas iframe object audio video nav select button dialog math
    """.split()  # noqa: SIM905 - a list of literals would be harder to read
)
_BLOCKS: Final = frozenset(
    """
    address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer
    form h1 h2 h3 h4 h5 h6 header hr html legend li main ol option p pre section summary table tbody td
    tfoot th thead title tr ul
    """.split()  # noqa: SIM905 - a list of literals would be harder to read
)
_HEADINGS: Final = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_SPACE: Final = re.compile(r"[ \t\r\n\f\xa0]+")


def html_to_markdown(html: str, base_url: str) -> str:
    """Return a page as Markdown with headings, lists, links, tables and code; links are made absolute.

    If the page marks its main part, only that is returned.
    """
    parser = _Parser(base_url)
    deadline = monotonic() + TIME_LIMIT_S
    for start in range(0, len(html), CHUNK_CHARACTERS):
        parser.feed(html[start : start + CHUNK_CHARACTERS])
        if monotonic() > deadline:
            parser.add_paragraph("[The rest of this page takes too long to convert.]")
            return parser.finish()
    if len(parser.rawdata) <= LONGEST_REST:
        parser.close()
    return parser.finish()


class _Block(Struct):
    """A paragraph, heading, row or item; no empty line separates two ``tight`` blocks."""

    text: str
    tight: bool


class _Link(Struct):
    """An open link, and the index in the line where its text begins."""

    url: str
    start: int


class _List(Struct):
    """An open list; ``number`` is that of its next item, ``None`` if items are not numbered."""

    number: int | None
    items: int = 0


class _Parser(HTMLParser):
    def __init__(self, base_url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base_url
        self._title = ""
        self._blocks: list[_Block] = []
        self._line: list[str] = []
        self._prefix = ""
        self._tight = False
        self._in_title = False
        self._skipping: str | None = None
        self._skip_depth = 0
        self._quotes = 0
        self._lists: list[_List] = []
        self._link: _Link | None = None
        self._pre = 0
        self._cells = 0
        self._main: tuple[int, int | None] | None = None

    # --- events of the parser -------------------------------------------------------------------------------------

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipping is not None:
            self._skip_depth += tag == self._skipping
            return
        if tag in _SKIPPED or (("aria-hidden", "true") in attrs and tag in ("div", "span")):
            self._skipping, self._skip_depth = tag, 1
            return
        self._at_block_boundary(tag)
        match tag:
            case "title":
                self._in_title = not self._title
            case "main":
                self._main = self._main or (len(self._blocks), None)
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                self._prefix = _HEADINGS[tag]
            case "ul" | "ol":
                self._lists.append(_List(_number(dict(attrs).get("start")) if tag == "ol" else None))
            case "li":
                self._begin_item()
            case "tr":
                self._cells, self._tight = 0, True
            case "td" | "th":
                if self._cells and self._line:
                    self._line.append(" | ")
                self._cells += 1
            case "dt" | "dd" | "option":
                self._tight = True
            case "blockquote":
                self._quotes += 1
            case "pre":
                self._pre += 1
            case "code" | "kbd" | "samp" | "tt":
                self._mark("`")
            case "br":
                self._line.append(" " if self._cells else "\n")
            case "hr":
                self.add_paragraph("---")
            case "a":
                self._end_link()
                if url := self._absolute(dict(attrs).get("href")):
                    self._link = _Link(url, len(self._line))
            case "img":
                self._image(dict(attrs))
            case _:
                pass

    def handle_endtag(self, tag: str) -> None:
        if self._skipping is not None:
            if tag == self._skipping:
                self._skip_depth -= 1
                if not self._skip_depth:
                    self._skipping = None
            return
        if tag == "pre" and self._pre:
            self._pre -= 1
            if not self._pre:
                self._end_code()
            return
        self._at_block_boundary(tag)
        match tag:
            case "tr" | "table":
                self._cells = 0
            case "title":
                self._in_title = False
            case "main":
                if self._main is not None and self._main[1] is None:
                    self._main = (self._main[0], len(self._blocks))
            case "ul" | "ol":
                if self._lists:
                    self._lists.pop()
            case "blockquote":
                self._quotes = max(0, self._quotes - 1)
            case "code" | "kbd" | "samp" | "tt":
                self._mark("`")
            case "a":
                self._end_link()
            case _:
                pass

    def handle_data(self, data: str) -> None:
        if self._skipping is not None:
            return
        if self._in_title:
            self._title += data
        else:
            self._line.append(data if self._pre else _SPACE.sub(" ", data))

    # --- building the Markdown -----------------------------------------------------------------------------------

    def add_paragraph(self, text: str) -> None:
        """Add a paragraph."""
        self._end_block()
        self._line.append(text)
        self._end_block()

    def finish(self) -> str:
        """Return the Markdown of the whole page, or of its main part."""
        if self._pre:
            self._end_code()
        self._end_block()
        blocks = self._blocks
        if self._main is not None:
            main = blocks[self._main[0] : self._main[1]]
            if sum(len(block.text) for block in main) >= SHORTEST_MAIN:
                blocks = main
        title = _SPACE.sub(" ", self._title).strip()
        if title and not any(block.text == f"# {title}" for block in blocks[:3]):
            blocks = [_Block(f"# {title}", tight=False), *blocks]
        parts: list[str] = []
        tight = False
        for block in blocks:
            if parts:
                parts.append("\n" if tight and block.tight else "\n\n")
            parts.append(block.text)
            tight = block.tight
        return "".join(parts)

    def _at_block_boundary(self, tag: str) -> None:
        """End the current block if ``tag`` begins or ends one. A table row stays on one line if possible."""
        if self._pre or tag not in _BLOCKS or tag in ("td", "th"):
            return
        if self._cells and tag in ("p", "div"):
            self._line.append(" ")
        else:
            self._end_block()

    def _begin_item(self) -> None:
        self._tight = True
        current = self._lists[-1] if self._lists else None
        if current is None or current.number is None:
            self._prefix = "- "
        else:
            self._prefix = f"{current.number}. "
            current.number += 1
        self._prefix = "  " * min(max(len(self._lists) - 1, 0), DEEPEST_INDENT) + self._prefix

    def _end_block(self) -> None:
        # A link may contain whole blocks: the first one with text becomes the link.
        around = self._link if self._link is not None and not self._has_text(self._link) else None
        self._end_link()
        if around is not None:
            self._link = _Link(around.url, 0)
        lines = ["".join(self._line)] if self._pre else "".join(self._line).split("\n")
        self._line.clear()
        if not self._pre:
            lines = [_SPACE.sub(" ", line.replace("``", "")).strip() for line in lines]
        text = "\n".join(line for line in lines if line)
        if not text:
            # Keep the prefix of an item for the first text in it, such as a heading or paragraph.
            return
        self._add(self._prefix + text, tight=self._tight)
        self._prefix, self._tight = "", False

    def _end_code(self) -> None:
        self._end_link()
        text = "".join(self._line).strip("\n")
        self._line.clear()
        if text.strip():
            fence = "````" if "```" in text else "```"
            self._add(f"{fence}\n{text}\n{fence}", tight=False)

    def _add(self, text: str, *, tight: bool) -> None:
        if self._quotes:
            text = "\n".join(f"> {line}" for line in text.split("\n"))
        self._blocks.append(_Block(text, tight))

    def _mark(self, mark: str) -> None:
        if not self._pre:
            self._line.append(mark)

    def _end_link(self) -> None:
        link, self._link = self._link, None
        if link is None or self._pre:
            return
        if self._has_text(link):
            text = _SPACE.sub(" ", "".join(self._line[link.start :]))
            space = " " if text.startswith(" ") else ""
            self._line[link.start :] = [f"{space}[{text.strip()}]({link.url})", " " if text.endswith(" ") else ""]

    def _has_text(self, link: _Link) -> bool:
        return any(piece.strip() for piece in self._line[link.start :])

    def _image(self, attributes: dict[str, str | None]) -> None:
        text = _SPACE.sub(" ", attributes.get("alt") or "").strip()
        url = self._absolute(attributes.get("src"))
        if text and url and not self._pre:
            self._line.append(f"![{text}]({url})")

    def _absolute(self, url: str | None) -> str | None:
        url = (url or "").strip()
        if not url or url.startswith("#"):
            return None
        try:
            whole = urljoin(self._base, url)
        except ValueError:
            return None
        return whole.replace(" ", "%20").replace(")", "%29") if whole.startswith(("http:", "https:")) else None


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 7 else 1
