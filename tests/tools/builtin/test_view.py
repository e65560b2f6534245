from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from jumpseat.agent.blocks import ImageBlock
from jumpseat.tools.builtin import view
from tests.support.pictures import GIF, JPEG, WEBP
from tests.tools.session import call, permission, tool_session

pytestmark = pytest.mark.anyio

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("one", "1. one"),
        ("one\ntwo\n", "1. one\n2. two\n3. "),
        ("one\r\ntwo\r\n", "1. one\n2. two\n3. "),
        ("", "1. "),
        ("\ufeffone\fx\u2028y", "1. one\fx\u2028y"),
        (b"caf\xe9", "1. caf\ufffd"),
    ],
)
async def test_lines_are_numbered(tmp_path: Path, content: str | bytes, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(content if isinstance(content, bytes) else content.encode())
    async with tool_session(tmp_path) as ctx:
        assert (await call(ctx, "view", path="a.txt")).text == text
        assert (await call(ctx, "view", path=str(tmp_path / "a.txt"))).text == text


@pytest.mark.parametrize(
    ("view_range", "text", "ok"),
    [
        ([2, 4], "2. line2\n3. line3\n4. line4", True),
        ([5, -1], "5. line5\n6. ", True),
        ([6, 10**30], "6. ", True),
        ([1, 1], "1. line1", True),
        ([7, 9], "view_range [7, 9] is beyond the end of lines.txt, which has 6 lines.", False),
        ([0, 3], "view_range [0, 3] is not valid: 1 <= first <= last, or last -1 for the end.", False),
        ([3, 2], "view_range [3, 2] is not valid: 1 <= first <= last, or last -1 for the end.", False),
        ([-5, -2], "view_range [-5, -2] is not valid: 1 <= first <= last, or last -1 for the end.", False),
        ([3], "view_range must be two line numbers, [first, last], not [3].", False),
    ],
)
async def test_a_range_shows_its_lines_or_an_error(
    tmp_path: Path, view_range: list[int], text: str, ok: bool
) -> None:
    (tmp_path / "lines.txt").write_text("line1\nline2\nline3\nline4\nline5\n")
    async with tool_session(tmp_path) as ctx:
        outcome = await call(ctx, "view", path="lines.txt", view_range=view_range)
    assert (outcome.text, outcome.ok) == (text, ok)


async def test_a_directory_shows_its_entries(tmp_path: Path) -> None:
    (tmp_path / "dir" / "sub").mkdir(parents=True)
    (tmp_path / "dir" / "readme.txt").touch()
    (tmp_path / "dir" / ".hidden").touch()
    (tmp_path / os.fsdecode(b"dir/\xff")).touch()
    async with tool_session(tmp_path) as ctx:
        assert (await call(ctx, "view", path="dir")).text == ".hidden\nreadme.txt\nsub/\n\ufffd"
        assert (await call(ctx, "view", path="dir/sub/")).text == "(empty directory)"


async def test_an_image_reaches_the_model(tmp_path: Path) -> None:
    path = tmp_path / "test.png"
    path.write_bytes(PNG)
    async with tool_session(tmp_path) as ctx:
        outcome = await call(ctx, "view", path=str(path))
    assert outcome.text == "Viewed image file successfully."
    assert outcome.images == [
        ImageBlock(base64.b64encode(PNG).decode(), "image/png", label=f"Image file at path {path}")
    ]


async def test_images_are_detected_by_their_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with tool_session(tmp_path) as ctx:
        for content, mime_type in ((JPEG, "image/jpeg"), (GIF, "image/gif"), (WEBP, "image/webp")):
            (tmp_path / "x.dat").write_bytes(content[:-4])
            assert "broken" in (await call(ctx, "view", path="x.dat")).text
            (tmp_path / "x.dat").write_bytes(content)
            assert (await call(ctx, "view", path="x.dat")).images[0].mime_type == mime_type
        (tmp_path / "x.png").write_text("no image")
        assert (await call(ctx, "view", path="x.png")).text == "1. no image"
        monkeypatch.setattr(view, "MAX_IMAGE_BYTES", 3)
        too_large = await call(ctx, "view", path="x.dat")
    assert too_large.text == "Image x.dat is too large (42 bytes, at most 3). Make it smaller first."


async def test_anything_that_cannot_be_viewed_is_a_failure_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0")
    os.mkfifo(tmp_path / "pipe")
    async with tool_session(tmp_path) as ctx:
        for path, text in {
            "missing.txt": "Path missing.txt does not exist. Please provide a valid path.",
            "binary": "File binary is binary and cannot be shown as text. Use bash to inspect it.",
            "pipe": "Path pipe is neither a file nor a directory.",
            "a\0b": "'a\\x00b' is not a valid path. Please provide a valid path.",
            "binary/x": "Path binary/x cannot be accessed: Not a directory.",
            "x" * 300: f"Path {'x' * 300} cannot be accessed: File name too long.",
            "~nobody-of-that-name/x": "Path ~nobody-of-that-name/x does not exist. Please provide a valid path.",
        }.items():
            outcome = await call(ctx, "view", path=path)
            assert (outcome.text, outcome.status) == (text, "failure")


async def test_huge_files_and_endless_lines_are_shown_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "SHOWN_BYTES", 1000)
    (tmp_path / "big.txt").write_text("x" * 98 + "\n" + ("y" * 99 + "\n") * 10_000)
    (tmp_path / "line.txt").write_text("z" * 1_000_000)
    async with tool_session(tmp_path) as ctx:
        whole = await call(ctx, "view", path="big.txt")
        part = await call(ctx, "view", path="big.txt", view_range=[9_999, 10_000])
        line = await call(ctx, "view", path="line.txt")
    assert whole.text.endswith("y\n[Stopped after 1099 bytes. Continue with view_range [12, -1].]")
    assert part.text == f"9999. {'y' * 99}\n10000. {'y' * 99}"
    assert line.text.startswith("1. zzz")
    assert len(line.text) < 1100


async def test_reading_asks_for_the_absolute_path(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        request = permission(ctx, "view", path="a.txt")
    assert request is not None
    assert request.kind == "read"
    assert (request.path, request.intention) == (str(tmp_path / "a.txt"), "Read a.txt")
