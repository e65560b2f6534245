"""Make text of models and tools safe for a terminal: it cannot move the cursor or hide other text."""

from __future__ import annotations

import re
from typing import Final

from jumpseat_protocol.visible import visible

# Whole sequences are removed, so that coloured output stays readable: CSI, control strings up to their end, others.
_SEQUENCE: Final = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-~]"
)
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Characters that make text look like other text: users must see exactly what they approve.
_DECEPTIVE: Final = re.compile("[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_TAB: Final = "    "


def safe(text: str) -> str:
    """Remove terminal control sequences; keep line breaks and make other control characters visible."""
    text = _SEQUENCE.sub("", text.replace("\r\n", "\n").replace("\t", _TAB))
    text = _CONTROL.sub(lambda found: "\n" if found[0] == "\r" else _control_picture(found[0]), text)
    return _DECEPTIVE.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


def exact(text: str) -> str:
    """Make all characters visible and remove nothing, for text that the user is to approve."""
    return visible(text.replace("\t", _TAB))


def one_line(text: str) -> str:
    """Return ``text`` made safe and joined to one line."""
    return " ".join(safe(text).split())


def _control_picture(control: str) -> str:
    code = ord(control)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"
