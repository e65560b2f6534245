"""Choose among stored sessions: by id, folder, text and date."""

from __future__ import annotations

import os
import re
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from jumpseat.errors import InvalidRequestError
from jumpseat.store.session.event_log import read_log
from jumpseat.store.session.sessions import SessionFolder, SessionStore
from jumpseat.store.session.texts import find_words, texts_of
from jumpseat_protocol.sessions import SessionMetadata
from jumpseat_transcript.transcript import Transcript, Usage, build_transcript

_AGE: Final = re.compile(r"(\d{1,6})\s*([hdwmy])")
_UNITS_S: Final = {"h": 3600, "d": 86400, "w": 7 * 86400, "m": 30 * 86400, "y": 365 * 86400}


class Listed(Struct, frozen=True):
    """A stored session that was prompted."""

    metadata: SessionMetadata
    folder: SessionFolder

    @property
    def id(self) -> str:
        return self.metadata.session_id

    @property
    def cwd(self) -> str:
        return self.metadata.context.cwd if self.metadata.context is not None else ""

    @property
    def title(self) -> str:
        return self.metadata.name or self.metadata.summary or ""

    @property
    def marks(self) -> list[str]:
        """The reasons why pickers leave the session out."""
        marks = {"one-off": self.metadata.one_off, "unanswered": self.metadata.unanswered}
        return [name for name, is_set in marks.items() if is_set]


class Filter(Struct, frozen=True):
    """Sessions in ``folder`` or below, with all words of ``text``, changed between two times in Unix time."""

    folder: Path | None = None
    text: str | None = None
    since_s: float | None = None
    until_s: float | None = None

    def matches(self, session: Listed) -> bool:
        """Return whether a session is selected; its log is read only if a text is searched."""
        changed_s = datetime.fromisoformat(session.metadata.modified_time).timestamp()
        if self.since_s is not None and changed_s < self.since_s:
            return False
        if self.until_s is not None and changed_s >= self.until_s:
            return False
        if self.folder is not None and not _is_inside(session.cwd, self.folder):
            return False
        if self.text is None:
            return True
        return find_words(texts_of(session.folder), self.text.casefold().split()) is not None


def list_sessions(store: SessionStore, wanted: Filter) -> list[Listed]:
    """Return the selected sessions that were prompted, the last changed first."""
    listed = (Listed(metadata, store.folder(metadata.session_id)) for metadata in store.list())
    return [session for session in listed if wanted.matches(session)]


def find_session(store: SessionStore, text: str) -> SessionFolder:
    """Return the session with an id, the only one whose id begins with ``text``, or the last one for ``last``.

    Raises:
        InvalidRequestError: no session fits, or several do.
    """
    if text == "last":
        latest = store.last_id()
        if latest is None:
            raise InvalidRequestError("there are no sessions yet")
        return store.folder(latest)
    found = [folder for folder in store.iter_stored() if folder.path.name.startswith(text)]
    exact = [folder for folder in found if folder.path.name == text]
    if len(exact or found) != 1:
        what = f"{len(found)} sessions have" if found else "no session has"
        raise InvalidRequestError(f"{what} an id that begins with {text!r}; 'jumpseat sessions list' lists them")
    return (exact or found)[0]


def parse_time(text: str) -> float:
    """Return a time in Unix time: a date (``2026-01-31``), a date with a time, or an age (``7d``, ``12h``, ``2w``).

    Raises:
        ValueError: the text is neither.
    """
    try:
        return time.time() - parse_age(text)
    except ValueError:
        return datetime.fromisoformat(text).timestamp()


def parse_age(text: str) -> float:
    """Return an age in seconds: a number with ``h``, ``d``, ``w``, ``m`` (30 days) or ``y``.

    Raises:
        ValueError: the text is no age.
    """
    found = _AGE.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError(text)
    return timedelta(seconds=int(found[1]) * _UNITS_S[found[2]]).total_seconds()


def read_records(folder: SessionFolder) -> list[dict[str, Any]]:
    """Return the events of a session's log.

    Raises:
        StoreError: the log cannot be read.
    """
    return list(read_log(folder.log.path).records)


def read_transcript(folder: SessionFolder) -> Transcript:
    """Return the transcript of a session.

    Raises:
        StoreError: the log cannot be read.
    """
    workspace, records = folder.read_workspace(), read_records(folder)
    if workspace is None:
        return build_transcript(folder.path.name, records)
    usage = {
        model: Usage(used.calls, used.input_tokens, used.output_tokens, used.cache_read_tokens, used.dollars)
        for model, used in workspace.model_usage().items()
    }
    title = workspace.name or workspace.summary or ""
    return build_transcript(folder.path.name, records, title=title, folder=workspace.cwd, usage=usage)


def _is_inside(cwd: str, folder: Path) -> bool:
    path = os.path.normpath(cwd)
    return path == str(folder) or path.startswith(f"{str(folder).rstrip(os.sep)}{os.sep}")
