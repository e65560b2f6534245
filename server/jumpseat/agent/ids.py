"""Ids of events, messages and runs."""

from __future__ import annotations

from random import SystemRandom
from typing import Final

_bits: Final = SystemRandom().getrandbits
_VARIANT: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def new_id() -> str:
    """Return a random UUID (version 4) as text, in half of the time of :func:`uuid.uuid4`: each delta has one."""
    digits = f"{_bits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"
