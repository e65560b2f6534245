"""The recorded conversations of this folder, played with our server by :mod:`jumpseat.script.transcript`.

``UPDATE_TRANSCRIPTS=1 pytest tests/transcripts`` writes the server's lines anew, and what the protocol's page
quotes of them; read the difference before you keep it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from jumpseat.script.differences import describe_differences
from jumpseat.script.play import OUR_SERVER
from jumpseat.script.transcript import Playback, play_transcript, read, write

FOLDER: Final = Path(__file__).parent
UPDATE: Final = bool(os.environ.get("UPDATE_TRANSCRIPTS"))


def transcripts() -> list[Path]:
    """All recorded conversations."""
    return sorted(FOLDER.glob("*.jsonl"))


async def check(path: Path, folder: Path) -> None:
    """Play ``path`` with a server whose files are in ``folder``: it sends what is recorded, and nothing else."""
    recorded = read(path)
    played = Playback()
    await play_transcript(recorded, folder, OUR_SERVER, played)
    assert played.problems == []
    if UPDATE:
        write(path, played.lines)
    else:
        differs = describe_differences(recorded, played.lines)
        assert not differs, f"{path.name} (UPDATE_TRANSCRIPTS=1 writes it anew):\n{differs}"
