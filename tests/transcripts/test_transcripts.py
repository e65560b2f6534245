"""Every recorded conversation is what goes over the wire: all messages, in their order, and none besides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts.play import check, transcripts


@pytest.mark.anyio
@pytest.mark.parametrize("path", transcripts(), ids=lambda path: path.stem)
async def test_a_recorded_conversation_goes_as_it_is_recorded(path: Path, tmp_path: Path) -> None:
    await check(path, tmp_path)
