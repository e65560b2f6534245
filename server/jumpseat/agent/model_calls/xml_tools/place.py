"""The places in the Markdown of an answer where a call may stand: not in a quotation or a comment."""

from __future__ import annotations

import re
from typing import Final

TAILS: Final = (
    *("<tool_response>", "<tool_result", "<tool_output>", "<function_result", "[TOOL_RESULTS]", "<|observation|>"),
    *("<|im_end|>", "<|im_start|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>", "<|start|>", "<|call|>"),
    *("</s>", "<|user|>", "<|endoftext|>", "<｜end▁of▁sentence｜>", "<｜tool▁outputs▁begin｜>", "<end_of_turn>"),
)
"""What may follow the last call: the end of the turn, or a result that the model invents. The rest is dropped."""

_HEAD_CHARS: Final = 200
_CODE_INDENT: Final = 4
_QUOTED: Final = re.compile(r"\s*+(?:(?:[-*+]|\d{1,9}[.)])\s++)*+>")
_ITEMS: Final = re.compile(r"\s*+(?:(?:[-*+]|\d{1,9}[.)])\s++)*+")
_SENTENCE_END: Final = frozenset(".!?…。\uff01\uff1f")


class Place:
    """The end of the text of an answer so far. Fenced code and calls are left out of it."""

    def __init__(self) -> None:
        self.shown = False
        """Whether there is anything but white space."""
        self.after_sentence = False
        """Whether the last character other than white space ends a sentence."""
        self._head = ""
        self._tail = ""
        self._last_is_blank = True
        self._last_is_code = False
        # In a comment, which ends with its line unless it has begun one.
        self._comment = False
        self._begins_line = False

    @property
    def begins_line(self) -> bool:
        """Return whether the line is blank so far."""
        return not self._head.strip()

    @property
    def may_open_code(self) -> bool:
        """Return whether a fence here opens a block of code: at the start of a line or of a list item."""
        return _ITEMS.fullmatch(self._head) is not None

    @property
    def is_example(self) -> bool:
        """Return whether a call here would be quoted or in a comment."""
        return self._comment or _QUOTED.match(self._head) is not None

    def add(self, text: str) -> None:
        """Go on after ``text``."""
        first, *rest = text.split("\n")
        self._add_to_line(first)
        for line in rest:
            self._end_line()
            self._add_to_line(line)
        if said := text.rstrip():
            self.shown = True
            self.after_sentence = said[-1] in _SENTENCE_END

    def pass_code(self) -> None:
        """Go on at the beginning of the line after fenced code, which is shown."""
        self.shown = True
        self.begin_line()

    def begin_line(self) -> None:
        """Go on as at the beginning of a line, after a call."""
        self._head = self._tail = ""
        self._last_is_blank = self._last_is_code = False

    @property
    def is_indented(self) -> bool:
        """Return whether the following text is indented code, after other text."""
        return (
            self.shown
            and (self._last_is_blank or self._last_is_code)
            and self.begins_line
            and len(self._head.expandtabs(_CODE_INDENT)) >= _CODE_INDENT
        )

    def _end_line(self) -> None:
        blank = self.begins_line
        # Blank lines in indented code belong to it.
        if not blank:
            indent = self._head[: len(self._head) - len(self._head.lstrip())]
            deep = len(indent.expandtabs(_CODE_INDENT)) >= _CODE_INDENT
            self._last_is_code = deep and (self._last_is_blank or self._last_is_code)
        self._last_is_blank = blank
        self._comment = self._comment and self._begins_line
        self._head = self._tail = ""

    def _add_to_line(self, part: str) -> None:
        if not part:
            return
        if len(self._head) < _HEAD_CHARS:
            self._head = (self._head + part)[:_HEAD_CHARS]
        joined = self._tail + part
        self._tail = joined[-3:]
        opened, closed = joined.rfind("<!--"), joined.rfind("-->")
        if opened > closed:
            self._begins_line = (self._comment and self._begins_line) or self._head.lstrip().startswith("<!--")
            self._comment = True
        elif closed >= 0:
            self._comment = False
