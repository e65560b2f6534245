"""The texts that tell models the state of a shell command. The log has these texts, too."""

from __future__ import annotations

from typing import Final

STARTED: Final = "<started in background with shellId: "
"""Followed by the id of the shell; no call waits for the command."""

RUNNING: Final = "<still running with shellId: "
"""Followed by the id of the shell; the command has outlasted the call."""

EXITED: Final = "<exited with exit code "
"""Followed by the exit code."""
