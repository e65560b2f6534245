"""Reading a log from any place in it, forward and backward."""

from __future__ import annotations

import io
import random
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from jumpseat.store.session.log_lines import BLOCK_BYTES, backward, find, forward


class CountedFile(io.FileIO):
    """A file that counts the bytes that are read from it."""

    count = 0

    def readinto(self, buffer: Any) -> int | None:
        size = super().readinto(buffer)
        self.count += size or 0
        return size


def line(number: int, size: int = 10) -> bytes:
    return orjson.dumps({"type": "x", "id": f"id-{number}", "data": "é" * size}) + b"\n"


def test_both_directions_yield_the_valid_lines_of_any_log() -> None:
    chance = random.Random(5)
    for _ in range(30):
        lines = [
            chance.choice((line(number, chance.choice((1, 100, BLOCK_BYTES))), b"not JSON\r\n", b"\n", b"[1]\n"))
            for number in range(chance.randrange(12))
        ]
        content = b"".join(lines)
        content = content.removesuffix(b"\n") if chance.random() < 0.3 else content
        valid = [orjson.loads(part) for part in lines if part.startswith(b"{")]
        found = list(forward(io.BytesIO(content), 0))

        assert [found_line.record for found_line in found] == valid
        assert list(backward(io.BytesIO(content), len(content))) == found[::-1]
        for number, (begin, end, record) in enumerate(found, 1):
            assert orjson.loads(content[begin:end]) == record
            assert list(forward(io.BytesIO(content), begin)) == found[number - 1 :]
            for offset in (end, None, begin, 0, 1 << 60):
                assert find(io.BytesIO(content), offset, number, record["id"]) == end
                assert find(io.BytesIO(content), offset, number, "other") is None


def test_a_page_reads_its_own_part_of_a_long_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"".join(map(line, range(50_000))))
    lines = list(forward(io.BytesIO((tmp_path / "log").read_bytes()), 0))
    middle = lines[25_000]
    raw = CountedFile(tmp_path / "log")
    with io.BufferedReader(raw) as file:
        assert find(file, middle.begin, 25_000, "id-24999") == middle.begin
        assert list(islice(forward(file, middle.begin), 100)) == lines[25_000:25_100]
        assert list(islice(backward(file, middle.begin), 100)) == lines[24_900:25_000][::-1]
    assert raw.count < 4 * BLOCK_BYTES
