"""Find the calls in the streamed text of an answer and pass on the rest.

A block is ``<tools>`` with a ``<tool>`` in it, outside of code, or a lone ``<tool>`` that begins a line and names a
tool on offer. Either may be the content of a fenced code block that is labelled ``xml`` or has no label, which then
belongs to the block. Everything else is text, including other XML and XML in other code.

Explanations show calls, too. Below other text, a block in a code block, one that is indented as code, and a lone
``<tool>`` are calls only if nothing follows them.

The result does not depend on where the text is split. What may begin a block is held back, and so is a block that
depends on what follows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model_calls.xml_tools.reader import MAX_TAG_CHARS, PARTIAL_TAG, START, Block, BlockReader

MAX_HELD_CHARS: Final = 1000
"""The maximum white space between the opening of a code block and its calls, in characters."""

Piece: TypeAlias = str | Block

_MARK: Final = re.compile(r"[`~]|<(?:tool|(?:t(?:oo?)?)?\Z)")
"""What may begin a block or code. Any other ``<`` is text, of which a text may have a million."""
_TICKS: Final = re.compile(r"`+|[^`]+")
_RUN: Final = re.compile(r"`+|~+")
_SPACE: Final = re.compile(r"\s*")
_LAYOUT: Final = re.compile(r"(?:\s|<!--.*?-->|<\?xml[^<>]*\?>)*", re.DOTALL)
_PARTIAL_LAYOUT: Final = re.compile(r"<(?:!(?:-(?:-.*)?)?|\?(?:x(?:m(?:l[^<>]*)?)?)?)?\Z", re.DOTALL)
_ROOT: Final = re.compile(r"<tools?(?=[\s/>])")
_NAMED: Final = re.compile(r"\sname\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'<>=]*[^\s\"'<>=/]))")
_NAME_CHILD: Final = re.compile(r"\s*<name\s*>([^<>]*)</name\s*>")
_PARTIAL_NAME: Final = re.compile(
    r"\s*(?:<(?:n(?:a(?:m(?:e(?:\s*(?:>[^<>]*(?:<(?:/(?:n(?:a(?:m(?:e\s*)?)?)?)?)?)?)?)?)?)?)?)?)?\Z"
)
_LABELS: Final = ("", "xml")
_CODE_COLUMNS: Final = 4
"""The indentation of code in Markdown, in columns."""

_Verdict: TypeAlias = Literal["block", "text", "more"]


class _Held(Struct):
    """Blocks that are calls only if no text follows, and the text that they were read from."""

    source: list[str] = field(default_factory=list[str])
    blocks: list[Block] = field(default_factory=list[Block])


class Scanner:
    """Finds the calls in one answer. ``tools`` are the schemas of the tools on offer, by name."""

    def __init__(self, tools: Mapping[str, JsonObject]) -> None:
        self._tools = tools
        self._waiting = ""
        self._out: list[Piece] = []
        self._step = self._in_text
        # The state of the current line: whether it is blank so far, and its inline code.
        self._line_is_blank = True
        self._ticks = 0
        self._open_ticks = 0
        # The current code block: its fence, its opening line, and its current line.
        self._fence = ""
        self._opening = ""
        self._line = ""
        self._reader: BlockReader | None = None
        self._called = False
        # Whether there was text, and the indentation of the current line as far as it is blank.
        self._has_text = False
        self._indentation = ""
        self._held: _Held | None = None

    def feed(self, text: str) -> list[Piece]:
        """Add text and return the pieces known so far, in order."""
        if self._step == self._in_text and not self._waiting and not _MARK.search(text):
            # The fast path for plain text.
            self._show(text)
        else:
            self._go_through(self._waiting + text, final=False)
        out, self._out = self._out, []
        return out

    def finish(self) -> list[Piece]:
        """Return the remaining pieces at the end of the answer."""
        self._go_through(self._waiting, final=True)
        if self._step == self._at_opening:
            self._enter_code()
        if self._reader is not None:
            self._end_block(self._reader)
        if self._held is not None:
            self._out += self._held.blocks
            self._held = None
        out, self._out = self._out, []
        return out

    def _go_through(self, text: str, *, final: bool) -> None:
        at = 0
        while at < len(text):
            step = self._step
            after = step(text, at, final)
            if after == at and step == self._step:
                break
            if self._held is not None and step in (self._in_block, self._after_block):
                self._held.source.append(text[at:after])
            at = after
        self._waiting = text[at:]

    # --- text ---------------------------------------------------------------------------------------------------

    def _in_text(self, text: str, at: int, final: bool) -> int:
        found = _MARK.search(text, at)
        if found is None or found.start() > at:
            end = found.start() if found else len(text)
            self._show(text[at:end])
            return end
        return self._at_mark(text, at, final) if text[at] == "<" else self._at_run(text, at, final)

    def _at_mark(self, text: str, at: int, final: bool) -> int:
        self._end_ticks()
        if not self._open_ticks:
            if self._called and self._line_is_blank and text.startswith("<tool_result", at):
                # The model continues with invented results.
                self._step = self._discard
                return at
            match self._verdict(text, at, final, fresh=self._line_is_blank):
                case "block":
                    is_lone = not text.startswith("<tools", at)
                    self._begin("", unless_text_follows=is_lone or self._is_indented())
                    return at
                case "more":
                    return at
                case "text":
                    pass
        self._show("<")
        return at + 1

    def _at_run(self, text: str, at: int, final: bool) -> int:
        """Consume backticks or tildes, which open a code block at the beginning of a line."""
        run = _RUN.match(text, at)
        assert run is not None
        if not self._line_is_blank:
            self._show(run[0])
            return run.end()
        if run.end() == len(text) and not final:
            return at
        line_end = text.find("\n", run.end())
        info = text[run.end() : line_end if line_end >= 0 else len(text)]
        if len(run[0]) < 3 or (run[0][0] == "`" and "`" in info):
            self._show(run[0])
            return run.end()
        label = info.strip().lower()
        short = len(info) < 64
        if line_end < 0 and not final and short and "xml".startswith(label):
            return at
        self._fence = run[0]
        if line_end >= 0 and short and label in _LABELS:
            self._opening = text[at : line_end + 1]
            self._step = self._at_opening
            return line_end + 1
        self._line = ""
        self._step = self._at_label if run[0][0] == "`" else self._in_code
        self._put(run[0])
        return run.end()

    def _show(self, text: str) -> None:
        self._put(text)
        self._read_line(text)

    def _read_line(self, text: str) -> None:
        """Update the state of the current line."""
        line = text.rpartition("\n")
        if line[1]:
            self._begin_line()
        rest = line[2]
        self._line_is_blank = self._line_is_blank and not rest.strip()
        if self._line_is_blank:
            self._indentation = (self._indentation + rest)[:_CODE_COLUMNS]
        if "`" in rest or self._ticks:
            for piece in _TICKS.findall(rest):
                if piece[0] == "`":
                    self._ticks += len(piece)
                else:
                    self._end_ticks()

    def _put(self, text: str) -> None:
        """Pass on text; what is held back was no call if any follows."""
        if text and not text.isspace():
            self._has_text = True
            if self._held is not None:
                self._out += self._held.source
                self._held = None
        if self._held is None:
            self._out.append(text)
        else:
            self._held.source.append(text)

    def _begin_line(self) -> None:
        self._line_is_blank, self._ticks, self._open_ticks, self._indentation = True, 0, 0, ""

    def _is_indented(self) -> bool:
        """Return whether the current line is indented as code, as far as it is blank."""
        return self._line_is_blank and len(self._indentation.expandtabs(_CODE_COLUMNS)) >= _CODE_COLUMNS

    def _end_ticks(self) -> None:
        """End a run of backticks, which opens inline code, or closes code opened by a run of the same length."""
        if self._ticks and self._open_ticks in (0, self._ticks):
            self._open_ticks = 0 if self._open_ticks else self._ticks
        self._ticks = 0

    def _discard(self, text: str, _at: int, _final: bool) -> int:
        return len(text)

    # --- code ---------------------------------------------------------------------------------------------------

    def _at_label(self, text: str, at: int, _final: bool) -> int:
        """Consume the rest of the opening line of a code block; a backtick in it makes it inline code."""
        end, tick = text.find("\n", at), text.find("`", at)
        if tick >= 0 and (end < 0 or tick < end):
            self._line_is_blank, self._ticks, self._open_ticks = False, 0, len(self._fence)
            self._step = self._in_text
            end = tick
        elif end >= 0:
            self._step = self._in_code
        self._put(text[at : end if end >= 0 else len(text)])
        return end if end >= 0 else len(text)

    def _in_code(self, text: str, at: int, _final: bool) -> int:
        """Consume a code block without calls up to its closing fence."""
        end = text.find("\n", at) + 1
        self._line = (self._line + text[at : end or len(text)])[:200]
        self._put(text[at : end or len(text)])
        if not end:
            return len(text)
        line, self._line = self._line.strip(), ""
        if len(line) >= len(self._fence) and not line.strip(self._fence[0]):
            self._step = self._in_text
            self._begin_line()
        return end

    def _at_opening(self, text: str, at: int, final: bool) -> int:
        """Decide whether a code block contains calls; its opening line is held back until then."""
        window = text[at : at + MAX_HELD_CHARS]
        layout = _LAYOUT.match(window)
        assert layout is not None
        start = at + layout.end()
        partial = layout.end() == len(window) or _PARTIAL_LAYOUT.match(window, layout.end())
        if partial and not final and len(window) < MAX_HELD_CHARS:
            return at
        verdict = self._verdict(text, start, final, fresh=True) if text.startswith("<", start) else "text"
        if verdict == "more":
            return at
        if verdict == "block":
            self._begin(self._fence, unless_text_follows=True, source=self._opening + text[at:start])
            return start
        self._enter_code()
        return at

    def _enter_code(self) -> None:
        """Treat the code block, or the rest of it, as one without calls."""
        if self._held is None:
            self._put(self._opening)
        self._line = ""
        self._step = self._in_code

    # --- blocks -------------------------------------------------------------------------------------------------

    def _begin(self, fence: str, *, unless_text_follows: bool, source: str = "") -> None:
        """Begin a block. ``source`` is what was consumed of its code block."""
        if self._held is None and unless_text_follows and self._has_text:
            self._held = _Held()
        elif self._held is not None and not unless_text_follows:
            self._out += self._held.source
            self._held = None
        if self._held is not None:
            self._held.source.append(source)
        self._fence = fence
        end = re.compile(rf"\n[ \t]*{fence[0]}{{{len(fence)},}}[ \t]*\n") if fence else None
        self._reader = BlockReader(self._tools, end)
        self._step = self._in_block

    def _in_block(self, text: str, at: int, final: bool) -> int:
        reader = self._reader
        assert reader is not None
        after = reader.read(text, at, final=final)
        if reader.done:
            self._end_block(reader)
            self._begin_line()
            self._called = True
            self._step = self._after_block
        return after

    def _end_block(self, reader: BlockReader) -> None:
        (self._out if self._held is None else self._held.blocks).append(reader.block())
        self._reader = None

    def _after_block(self, text: str, at: int, final: bool) -> int:
        """Drop the layout after a block, and the closing fence of its code block."""
        space = _SPACE.match(text, at)
        assert space is not None
        start = space.end()
        self._read_line(space[0])
        if start == len(text):
            return start
        if not self._fence:
            self._step = self._in_text
            return start
        run = _RUN.match(text, start)
        if run is not None and run[0][0] == self._fence[0]:
            line_end = text.find("\n", run.end())
            rest = text[run.end() : line_end if line_end >= 0 else len(text)]
            if not rest.strip():
                if line_end < 0 and not final:
                    return start
                if len(run[0]) >= len(self._fence):
                    self._fence = ""
                    return line_end + 1 if line_end >= 0 else len(text)
        verdict = self._verdict(text, start, final, fresh=True) if text.startswith("<", start) else "text"
        if verdict == "more":
            return start
        if verdict == "block":
            self._begin(self._fence, unless_text_follows=self._held is not None)
        else:
            self._enter_code()
        return start

    def _verdict(self, text: str, at: int, final: bool, *, fresh: bool) -> _Verdict:
        """Decide whether a block begins here, or whether more text is needed to tell."""
        window = text[at : at + MAX_TAG_CHARS]
        open_ended = not final and len(window) < MAX_TAG_CHARS
        if open_ended and (
            _begins(window, "<tools") or (self._called and fresh and _begins(window, "<tool_result"))
        ):
            return "more"
        root = _ROOT.match(window)
        tag = START.match(window)
        if root is None:
            return "text"
        if tag is None:
            return "more" if open_ended and PARTIAL_TAG.match(window) else "text"
        if root[0] == "<tool":
            return self._verdict_of_lone(window, tag, open_ended) if fresh else "text"
        if tag[3]:
            return "text"
        inside = text[at + tag.end() : at + tag.end() + MAX_TAG_CHARS]
        layout = _LAYOUT.match(inside)
        assert layout is not None
        rest = inside[layout.end() :]
        if re.match(r"<tool[\s/>]", rest):
            return "block"
        partial = not rest or _begins(rest, "<tool>") or _PARTIAL_LAYOUT.match(rest)
        return "more" if not final and partial and len(inside) < MAX_TAG_CHARS else "text"

    def _verdict_of_lone(self, window: str, tag: re.Match[str], open_ended: bool) -> _Verdict:
        if named := _NAMED.search(tag[2]):
            return "block" if (named[1] or named[2] or named[3] or "").strip() in self._tools else "text"
        if child := _NAME_CHILD.match(window, tag.end()):
            return "block" if child[1].strip() in self._tools else "text"
        return "more" if open_ended and _PARTIAL_NAME.match(window, tag.end()) else "text"


def _begins(window: str, wanted: str) -> bool:
    return len(window) <= len(wanted) and wanted.startswith(window)
