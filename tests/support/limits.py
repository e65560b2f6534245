"""The time limit of waits in tests: a guard against hanging, which only a failing test reaches."""

from __future__ import annotations

from typing import Final

WAIT_S: Final = 60.0
"""Seconds that a test waits for anything. Ten busy processes on each core must not exceed them."""
