"""Text of models and tools made harmless for a terminal: nothing in it moves the cursor or hides what is there."""

from __future__ import annotations

import re
from typing import Final

# Whole sequences go, so that coloured output of commands stays readable: CSI, strings to their end, the rest.
_SEQUENCE: Final = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-~]"
)
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# They make text look like other text: what is approved must be what is seen.
_DECEPTIVE: Final = re.compile("[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_TAB: Final = "    "


def safe(text: str) -> str:
    """``text`` without terminal control sequences; line breaks stay, other control characters become visible."""
    text = _SEQUENCE.sub("", text.replace("\r\n", "\n").replace("\t", _TAB))
    text = _CONTROL.sub(lambda found: "\n" if found[0] == "\r" else _picture(found[0]), text)
    return _DECEPTIVE.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


def exact(text: str) -> str:
    """``text`` with nothing left out: what is to be approved shows even what a terminal would not show."""
    text = _CONTROL.sub(lambda found: _picture(found[0]), text.replace("\t", _TAB))
    return _DECEPTIVE.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


def one_line(text: str) -> str:
    """``text`` made safe and put on one line."""
    return " ".join(safe(text).split())


def _picture(control: str) -> str:
    code = ord(control)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"
