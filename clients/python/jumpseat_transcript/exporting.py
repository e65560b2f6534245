"""Export a session: as Markdown, as an HTML page, or as its events, one per line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import orjson

from jumpseat_transcript.transcript import Transcript

Format: TypeAlias = Literal["md", "html", "jsonl"]

FORMATS: Final[tuple[Format, ...]] = ("md", "html", "jsonl")
_SUFFIXES: Final[Mapping[str, Format]] = {
    ".md": "md",
    ".markdown": "md",
    ".html": "html",
    ".htm": "html",
    ".jsonl": "jsonl",
}


class ExportError(Exception):
    """The file cannot be written."""


def format_of(path: Path | None) -> Format | None:
    """Return the format that the name of a file asks for; ``None`` if it asks for none."""
    return _SUFFIXES.get(path.suffix.lower()) if path is not None else None


def export(transcript: Transcript, records: Iterable[Mapping[str, Any]], wanted: Format) -> str:
    """Return a session in a format; ``records`` are its events."""
    match wanted:
        case "md":
            from jumpseat_transcript.as_markdown import as_markdown

            return as_markdown(transcript)
        case "html":
            # Imported late, as the parser of Markdown is needed here only.
            from jumpseat_transcript.as_html import as_html

            return as_html(transcript)
        case "jsonl":
            return "".join(orjson.dumps(record).decode() + "\n" for record in records)


def write_new_file(path: Path, text: str, *, replace: bool = False) -> None:
    """Write an export, which only its owner can read: sessions hold what tools have seen.

    Raises:
        ExportError: the file exists and is not to be replaced, or it cannot be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if replace else os.O_EXCL)
    try:
        with open(path, "w", encoding="utf-8", opener=lambda name, _: os.open(name, flags, 0o600)) as file:
            file.write(text)
    except FileExistsError:
        raise ExportError(f"{str(path)!r} exists already") from None
    except OSError as error:
        raise ExportError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
