"""Version 2 of ACP, which is a draft: its messages, made from those of version 1. Pure.

Nothing of it is imported before an editor asks for that version.
"""

from __future__ import annotations

from typing import Final

DRAFT: Final = "2026-11-02"
"""The date of the draft: that of version 2.4.0 of the npm package ``@agentclientprotocol/sdk``, with its schema."""
