"""What is written down of attachments: names for all, and the content of pictures."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.conversation import attachments
from jumpseat.agent.conversation.attachments import as_logged

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n and so on"


def shown(content: bytes, mime_type: str) -> dict[str, str]:
    return {"data": base64.b64encode(content).decode(), "mimeType": mime_type}


@pytest.mark.parametrize(
    ("content", "mime_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    ],
)
async def test_a_picture_comes_with_its_content_whatever_it_is_called(
    tmp_path: Path, content: bytes, mime_type: str
) -> None:
    (tmp_path / "notes.txt").write_bytes(content)
    item = {"type": "file", "path": "notes.txt", "displayName": "Notes"}
    assert await as_logged([item], tmp_path) == [{**item, "image": shown(content, mime_type)}]


async def test_what_is_no_picture_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "PICTURE_BYTES", len(PNG))
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "large.png").write_bytes(PNG + b"!")
    (tmp_path / "small.png").write_bytes(PNG)
    os.mkfifo(tmp_path / "pipe.png")
    paths: list[Any] = ["text.png", "large.png", "missing.png", "pipe.png", "\0", 7, None]
    others: list[dict[str, Any]] = [{"type": "file", "path": path, "displayName": "x"} for path in paths]
    others += [{"type": "directory", "path": "small.png", "displayName": "x"}, {"path": "small.png"}]
    picture = {"type": "file", "path": "small.png", "displayName": "x"}
    seen = await as_logged([*others, picture], tmp_path)
    assert seen == [*others, {**picture, "image": shown(PNG, "image/png")}]


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ({"type": "file", "path": "/a/b.txt"}, "b.txt"),
        ({"type": "file", "path": "/a/b.txt", "displayName": "c"}, "c"),
        ({"type": "file", "path": "/a/b.txt", "displayName": None}, "b.txt"),
        ({"type": "directory", "path": "/a/b/"}, "b"),
        ({"type": "directory", "path": "/"}, "/"),
        ({"type": "selection", "filePath": "/a/b.py", "text": "x"}, "b.py"),
    ],
)
async def test_what_a_client_has_not_named_is_named_by_its_path(
    tmp_path: Path, item: dict[str, Any], name: str
) -> None:
    assert await as_logged([item], tmp_path) == [{**item, "displayName": name}]


async def test_what_needs_no_name_gets_none(tmp_path: Path) -> None:
    others: list[dict[str, Any]] = [{"type": "blob", "data": "AA", "mimeType": "image/png"}, {"type": "x"}, {}]
    assert await as_logged(others, tmp_path) == others
