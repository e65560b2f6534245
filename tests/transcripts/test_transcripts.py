"""The server sends exactly the messages of every recorded conversation, in order."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from jumpseat_testkit.transcript import read, write
from tests.transcripts import quotes
from tests.transcripts.play import FOLDER, UPDATE, check, transcripts

PLAIN = FOLDER / "plain.jsonl"


@pytest.mark.anyio
@pytest.mark.parametrize("path", transcripts(), ids=lambda path: path.stem)
async def test_a_conversation_equals_its_recording(path: Path, tmp_path: Path) -> None:
    await check(path, tmp_path)


@pytest.mark.skipif(UPDATE, reason="everything is written as it is")
@pytest.mark.anyio
async def test_an_unrecorded_message_fails(tmp_path: Path) -> None:
    whole = read(PLAIN)
    without = [line for line in whole if "assistant.turn_end" not in str(line)]
    (missed,) = [line for line in whole if line not in without]
    write(tmp_path / "without.jsonl", without)
    expected = re.escape(f"+ <- event assistant.turn_end {json.dumps(missed[1])}")
    with pytest.raises(AssertionError, match=expected):
        await check(tmp_path / "without.jsonl", tmp_path)


@pytest.mark.skipif(UPDATE, reason="everything is written as it is")
@pytest.mark.anyio
async def test_a_different_id_fails(tmp_path: Path) -> None:
    answer = {"id": 3, "result": {"messageId": "<id-3>"}}
    lines = [("<-", answer) if line[1].get("id") == 3 and line[0] == "<-" else line for line in read(PLAIN)]
    write(tmp_path / "confused.jsonl", lines)
    with pytest.raises(AssertionError, match=r'result\.messageId: expected "<id-3>", got "<id-4>"'):
        await check(tmp_path / "confused.jsonl", tmp_path)


def test_the_quotes_in_the_page_of_the_protocol_are_up_to_date() -> None:
    if UPDATE:
        quotes.write_quotes(FOLDER)
    assert quotes.quotes() == {path.stem: quotes.quoted(path) for path in transcripts()}
