"""Attachments in the log: names for all, and the content of images."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.conversation import attachments
from jumpseat.agent.conversation.attachments import complete_attachments

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
async def test_an_image_is_logged_with_its_content_whatever_its_name(
    tmp_path: Path, content: bytes, mime_type: str
) -> None:
    (tmp_path / "notes.txt").write_bytes(content)
    item = {"type": "file", "path": "notes.txt", "displayName": "Notes"}
    assert await complete_attachments([item], tmp_path) == [{**item, "image": shown(content, mime_type)}]


async def test_other_files_are_logged_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MAX_IMAGE_BYTES", len(PNG))
    (tmp_path / "text.png").write_text("not an image")
    (tmp_path / "large.png").write_bytes(PNG + b"!")
    (tmp_path / "small.png").write_bytes(PNG)
    os.mkfifo(tmp_path / "pipe.png")
    paths: list[Any] = ["text.png", "large.png", "missing.png", "pipe.png", "\0", 7, None]
    others: list[dict[str, Any]] = [{"type": "file", "path": path, "displayName": "x"} for path in paths]
    others += [{"type": "directory", "path": "small.png", "displayName": "x"}, {"path": "small.png"}]
    picture = {"type": "file", "path": "small.png", "displayName": "x"}
    seen = await complete_attachments([*others, picture], tmp_path)
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
async def test_an_attachment_without_a_name_is_named_by_its_path(
    tmp_path: Path, item: dict[str, Any], name: str
) -> None:
    assert await complete_attachments([item], tmp_path) == [{**item, "displayName": name}]


async def test_attachments_without_a_path_get_no_name(tmp_path: Path) -> None:
    others: list[dict[str, Any]] = [{"type": "blob", "data": "AA", "mimeType": "image/png"}, {"type": "x"}, {}]
    assert await complete_attachments(others, tmp_path) == others
