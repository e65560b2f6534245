"""The recorded conversations of this folder, played with our server by :mod:`jumpseat_testkit.transcript`.

``UPDATE_TRANSCRIPTS=1 pytest tests/transcripts`` records the server's lines again, and updates the quotes in the
protocol's page; review the difference.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from jumpseat_testkit.differences import describe_differences
from jumpseat_testkit.transcript import Playback, play_transcript, read, write
from tests.support.forked import INSTALLED, executable

FOLDER: Final = Path(__file__).parent
UPDATE: Final = bool(os.environ.get("UPDATE_TRANSCRIPTS"))


def transcripts() -> list[Path]:
    """Return the paths of all recorded conversations."""
    return sorted(FOLDER.glob("*.jsonl"))


async def check(path: Path, folder: Path) -> None:
    """Play ``path`` with a server whose files are in ``folder``; fails unless it sends the recorded lines."""
    recorded = read(path)
    played = Playback()
    # To the forked server, being killed would be a closed connection first.
    program = INSTALLED if ("--", "kill") in recorded else executable()
    command = [program, "--headless", "--stdio", "--no-auto-login"]
    await play_transcript(recorded, folder, command, played)
    assert played.problems == []
    if UPDATE:
        write(path, played.lines)
    else:
        differs = describe_differences(recorded, played.lines)
        assert not differs, f"{path.name} (UPDATE_TRANSCRIPTS=1 writes it anew):\n{differs}"
