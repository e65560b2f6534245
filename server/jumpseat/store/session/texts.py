"""Search the texts of stored sessions: their titles, folders, prompts and answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson
from msgspec import Struct

from jumpseat.store.session.sessions import SessionFolder
from jumpseat_protocol.events import AssistantMessage, UserMessage, decode_payload

_EXCERPT: Final = 160
"""The number of characters of an excerpt."""

_KINDS: Final = (UserMessage.type.encode(), AssistantMessage.type.encode())


class Text(Struct, frozen=True):
    """A text of a session, and the id of its event if it is a prompt or an answer."""

    text: str
    event_id: str | None = None


def texts_of(folder: SessionFolder) -> Iterator[Text]:
    """Yield the title, the working directory, the prompts and the answers of a session, if they can be read."""
    workspace = folder.read_workspace()
    if workspace is not None:
        yield Text(workspace.name or workspace.summary or "")
        yield Text(workspace.cwd)
    try:
        with folder.log.path.open("rb") as lines:
            for line in lines:
                # Most lines of a log are other events, which need not be decoded.
                if any(kind in line for kind in _KINDS):
                    yield from _text_in(line)
    except OSError:
        return


def find_words(texts: Iterable[Text], words: Iterable[str]) -> Text | None:
    """Return an excerpt of the first text with one of the words; ``None`` unless all of them are in the texts.

    ``words`` are folded.
    """
    missing = set(words)
    excerpt: Text | None = None
    for one in texts:
        folded = one.text.casefold()
        found = {word for word in missing if word in folded}
        if found and excerpt is None:
            excerpt = Text(_excerpt(one.text, min(folded.find(word) for word in found)), one.event_id)
        missing -= found
        if not missing:
            return excerpt or Text("")
    return None


def _text_in(line: bytes) -> Iterator[Text]:
    try:
        record: Any = orjson.loads(line)
        match decode_payload(record["type"], record.get("data")):
            case UserMessage(content=text, source=None) | AssistantMessage(content=text):
                event_id = record.get("id")
                yield Text(text, event_id if isinstance(event_id, str) else None)
            case _:
                pass
    except (ValueError, TypeError, KeyError, AttributeError):
        # A damaged line, such as the end of a log whose server was killed.
        return


def _excerpt(text: str, at: int) -> str:
    begin = max(0, at - _EXCERPT // 4)
    part = " ".join(text[begin : begin + _EXCERPT].split())
    return f"{'…' if begin else ''}{part}{'…' if begin + _EXCERPT < len(text) else ''}"
