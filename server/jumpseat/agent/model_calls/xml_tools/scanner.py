"""Find the calls in the streamed text of an answer and pass on the rest.

A block is ``<tools>`` with a ``<tool>`` in it, outside of code, or a lone ``<tool>`` that begins a line and names a
tool on offer. Either may be the content of a fenced code block that is labelled ``xml`` or has no label, which then
belongs to the block. Everything else is text, including other XML and XML in other code.

After other text, a block in a fence or indented as code, and a lone ``<tool>``, are calls only if they end the
answer, and ``<tools>`` is none if a sentence goes on around it: these are examples, and are shown.

The result does not depend on where the text is split. What may begin a block is held back, and so is a block that
depends on what follows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model_calls.xml_tools.place import TAILS, Place
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
_LONGEST_TAIL: Final = max(map(len, TAILS))
_GOES_ON: Final = frozenset(",.;:!?)]}|…。、\uff0c\uff1b\uff1a")
"""Characters with which a sentence goes on, or ends, after a block in it."""

_Verdict: TypeAlias = Literal["block", "text", "more"]


class Scanner:
    """Finds the calls in one answer. ``tools`` are the schemas of the tools on offer, by name."""

    def __init__(self, tools: Mapping[str, JsonObject]) -> None:
        self._tools = tools
        self._waiting = ""
        self._out: list[Piece] = []
        self._step = self._in_text
        self._place = Place()
        # The inline code of the current line.
        self._ticks = 0
        self._open_ticks = 0
        # The current code block: its fence, its opening line, and its current line.
        self._fence = ""
        self._opening = ""
        self._line = ""
        self._reader: BlockReader | None = None
        self._called = False
        # Blocks that may be examples, and their text; none if there is no such text. They are calls if the answer
        # ends after them, and maybe if a new sentence follows.
        self._undecided: list[Block] = []
        self._source: list[str] | None = None
        self._must_end = False
        self._in_line = False

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
            self._keep(self._reader.block())
            self._reader = None
        self._run()
        out, self._out = self._out, []
        return out

    def _go_through(self, text: str, *, final: bool) -> None:
        at = 0
        while at < len(text):
            step = self._step
            after = step(text, at, final)
            if after == at and step == self._step:
                break
            if self._source is not None:
                self._source.append(text[at:after])
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
            if self._called and self._place.begins_line and text.startswith("<tool_result", at):
                # The model continues with invented results.
                self._step = self._discard
                return at
            fresh = self._place.begins_line
            match "text" if self._place.is_example else self._verdict(text, at, final, fresh=fresh):
                case "block":
                    may_follow = text.startswith("<tools", at) and not self._place.is_indented
                    self._begin("", must_end=not may_follow)
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
        if not self._place.may_open_code:
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
        self._show_code(run[0])
        return run.end()

    def _show(self, text: str) -> None:
        self._decide(text)
        self._out.append(text)
        self._place.add(text)
        line = text.rpartition("\n")
        if line[1]:
            self._ticks = self._open_ticks = 0
        rest = line[2]
        if "`" in rest or self._ticks:
            for piece in _TICKS.findall(rest):
                if piece[0] == "`":
                    self._ticks += len(piece)
                else:
                    self._end_ticks()

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
        is_inline = tick >= 0 and (end < 0 or tick < end)
        end = tick if is_inline else end
        self._show_code(text[at : end if end >= 0 else len(text)])
        if is_inline:
            self._place.add(self._fence)
            self._ticks, self._open_ticks = 0, len(self._fence)
            self._step = self._in_text
        elif end >= 0:
            self._step = self._in_code
        return end if end >= 0 else len(text)

    def _in_code(self, text: str, at: int, _final: bool) -> int:
        """Consume a code block without calls up to its closing fence."""
        end = text.find("\n", at) + 1
        self._line = (self._line + text[at : end or len(text)])[:200]
        self._show_code(text[at : end or len(text)])
        if not end:
            return len(text)
        line, self._line = self._line.strip(), ""
        if len(line) >= len(self._fence) and not line.strip(self._fence[0]):
            self._step = self._in_text
            self._begin_line()
        return end

    def _show_code(self, text: str) -> None:
        self._decide(text)
        self._out.append(text)
        self._place.pass_code()

    def _begin_line(self) -> None:
        self._place.begin_line()
        self._ticks = self._open_ticks = 0

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
            self._begin(self._fence)
            return start
        self._enter_code()
        return at

    def _enter_code(self) -> None:
        """Treat the code block as one without calls."""
        if not self._show_undecided():
            self._show_code(self._opening)
        self._line = ""
        self._step = self._in_code

    # --- blocks -------------------------------------------------------------------------------------------------

    def _begin(self, fence: str, *, must_end: bool = True) -> None:
        place = self._place
        if self._must_end and not must_end:
            # A plain call below an example.
            self._show_undecided()
        if self._source is None and place.shown and (must_end or not place.after_sentence):
            self._source = [self._opening] if fence else []
            self._in_line = not fence and not place.begins_line
        self._must_end = self._must_end or (place.shown and must_end)
        self._fence = fence
        end = re.compile(rf"\n[ \t]*{fence[0]}{{{len(fence)},}}[ \t\r]*\n") if fence else None
        self._reader = BlockReader(self._tools, end)
        self._step = self._in_block

    def _in_block(self, text: str, at: int, final: bool) -> int:
        reader = self._reader
        assert reader is not None
        after = reader.read(text, at, final=final)
        if reader.done:
            self._keep(reader.block())
            self._reader = None
            self._begin_line()
            self._step = self._after_block
        return after

    def _after_block(self, text: str, at: int, final: bool) -> int:
        """Drop the layout after a block, and the closing fence of its code block."""
        space = _SPACE.match(text, at)
        assert space is not None
        start = space.end()
        self._place.add(space[0])
        if start == len(text) or (start > at and self._source is not None):
            return start
        if not self._fence:
            rest = text[start : start + _LONGEST_TAIL]
            if rest.startswith(TAILS):
                self._run()
                self._step = self._discard
            elif final or not any(tail.startswith(rest) for tail in TAILS):
                self._step = self._in_text
            return start
        run = _RUN.match(text, start)
        if run is not None and run[0][0] == self._fence[0]:
            line_end = text.find("\n", run.end())
            rest = text[run.end() : line_end if line_end >= 0 else len(text)].strip()
            if line_end < 0 and not final and any(tail.startswith(rest) for tail in TAILS):
                return start
            if rest.startswith(TAILS):
                self._run()
                self._step = self._discard
                return start
            if not rest and len(run[0]) >= len(self._fence):
                self._fence = ""
                self._begin_line()
                return line_end + 1 if line_end >= 0 else len(text)
        verdict = self._verdict(text, start, final, fresh=True) if text.startswith("<", start) else "text"
        if verdict == "more":
            return start
        if verdict == "block":
            self._begin(self._fence)
        else:
            self._enter_code()
        return start

    # --- examples -----------------------------------------------------------------------------------------------

    def _keep(self, block: Block) -> None:
        if self._source is not None:
            self._undecided.append(block)
        else:
            self._out.append(block)
            self._called = True

    def _run(self) -> None:
        """Take the undecided blocks as calls."""
        if self._source is not None:
            self._out += self._undecided
            self._called = True
        self._undecided, self._source, self._must_end = [], None, False

    def _decide(self, text: str) -> None:
        """Decide about the undecided blocks by the text that follows them."""
        if self._source is None or not text:
            return
        source = "".join(self._source)
        same_line = "\n" not in source[len(source.rstrip()) :]
        goes_on = text[0].islower() or text[0] in _GOES_ON or text.startswith("</") or (self._in_line and same_line)
        if self._must_end or goes_on:
            self._show_undecided()
        else:
            self._run()

    def _show_undecided(self) -> bool:
        """Show the undecided blocks as text; return whether there are any."""
        if self._source is None:
            return False
        source = "".join(self._source)
        self._undecided, self._source, self._must_end = [], None, False
        self._out.append(source)
        self._begin_line()
        self._place.shown = True
        self._place.add(source.rpartition("\n")[2])
        return True

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
