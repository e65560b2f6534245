"""The changes of files by a session's tools: record, show and undo them. ``rewinding.py`` goes back further."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.registry import SessionRegistry
from jumpseat.store.session.file_changes import Cause, Changes, FileChange, FileChangeLog, new_change
from jumpseat.store.session.sessions import as_typed
from jumpseat.tools.files import unified_diff
from jumpseat.tools.workspace_files import FileEdit, Files
from jumpseat_protocol import events
from jumpseat_protocol.changes import ChangedFile, ChangedFileState

PROMPT_CHARS: Final = 100
"""Length of the beginning of a prompt that its changes are shown with."""
UNDO: Final = "undo"
"""The source of the message that tells the model about an undo."""
_REASONS: Final[Mapping[ChangedFileState, str | None]] = {
    "as-left": None,
    "changed-since": "was changed since",
    "not-kept": "was too large to keep its earlier content",
}


class Undone(Struct):
    """The outcome of an undo: the paths of the files that are as before ``prompt``, and of those ``left`` alone.

    ``left`` has the reasons, which continue a sentence that begins with the path.
    """

    prompt: str
    undone: list[str] = field(default_factory=list[str])
    left: dict[str, str] = field(default_factory=dict[str, str])


def record_changes(
    log: FileChangeLog, session: Session, prompt: Prompt, edits: Iterable[FileEdit], call_id: str | None
) -> None:
    """Keep the changes of files with the session; ``call_id`` is the tool call that has made them, if known."""
    title = " ".join(session.services.secrets.mask(as_typed(prompt.text)).split())[:PROMPT_CHARS]
    title = title.encode("utf-8", "replace").decode()
    cause = Cause(prompt.interaction_id, title, session.history.latest_message_id)
    log.add(cause, (replace(_change_of(edit), call=call_id) for edit in edits))


def _change_of(edit: FileEdit) -> FileChange:
    if edit.kept:
        return new_change(edit.path, edit.place, edit.before, edit.after, edit.mode)
    return FileChange(
        edit.path, edit.place, None, None, "" if edit.exists else None, False, not edit.existed, edit.mode
    )


async def describe(session: Session, changes: Changes) -> list[ChangedFile]:
    """Return the changed files of one prompt with their diffs."""
    files = files_of(session, changes.files.values())
    return [
        ChangedFile(path=shown(change.path), state=await state_of(files, change), diff=await _diff(change))
        for change in changes.files.values()
    ]


async def undo(registry: SessionRegistry, session: Session) -> Undone | None:
    """Take back the changes of the latest prompt that has changes, and tell the model; ``None`` if there is none.

    Files that are not as the prompt left them are not touched. The next call takes back an earlier prompt.

    Raises:
        InvalidRequestError: a prompt is running, or the session is rewound.
    """
    log = registry.storage(session).changes
    with undoing(session):
        known = await anyio.to_thread.run_sync(log.read)
        if not known:
            return None
        changes = known[-1]
        outcome = Undone(changes.prompt)
        # A client that hangs up must not leave files of another time than the log.
        with anyio.CancelScope(shield=True):
            await take_back(registry, session, changes.files.values(), outcome)
            log.mark_undone(changes.interaction_id)
    announce(session, outcome)
    return outcome


@contextmanager
def undoing(session: Session) -> Generator[None]:
    """Let no prompt start inside of the block, which changes files.

    Raises:
        InvalidRequestError: a prompt is running, or the session is rewound.
    """
    if session.working:
        raise InvalidRequestError("a prompt is running, which may change files: wait or abort it first")
    if session.queue.is_held:
        raise InvalidRequestError("other changes of the session are being taken back: try again")
    with session.queue.held():
        yield


async def take_back(
    registry: SessionRegistry, session: Session, changes: Collection[FileChange], outcome: Undone
) -> list[Path]:
    """Restore the files that are as ``changes`` left them, and add the paths of all to ``outcome``.

    Returns:
        The paths of the restored files.
    """
    restored: list[Path] = []
    restorer = Restorer(registry, session, changes)
    for change in changes:
        reason = _REASONS[await state_of(restorer.files, change)]
        if reason is None:
            try:
                await restorer.write(change.path, change.before, change.mode)
            except (OSError, ValueError):
                reason = "cannot be written"
        if reason is None:
            restored.append(change.path)
            outcome.undone.append(shown(change.path))
        else:
            outcome.left[shown(change.path)] = reason
    return restored


def announce(session: Session, outcome: Undone) -> None:
    """Tell the model and the clients about an undo."""
    if outcome.undone:
        names = ", ".join(repr(name) for name in outcome.undone)
        session.add_context(f"The user has undone your changes to these files: {names}", UNDO)
    session.emit(events.SessionChangesUndone(undone=outcome.undone, left=list(outcome.left)))


class Restorer:
    """Gives files of a session earlier contents.

    A model may have written these, so they count as an edit of it: what they are part of is not run outside of the
    sandbox unasked.
    """

    def __init__(self, registry: SessionRegistry, session: Session, changes: Iterable[FileChange]) -> None:
        self.files = files_of(session, changes)
        self._registry = registry
        self._session = session

    async def write(self, path: Path, content: bytes | None, mode: int | None = None) -> None:
        """Give a file a content; ``None`` deletes it. A file that is created gets ``mode``, if that is known.

        Raises:
            OSError: the file cannot be changed.
            ValueError: the path is invalid.
        """
        files = self.files
        if content is None:
            await anyio.to_thread.run_sync(files.delete, path)
            return
        try:
            if (present := await anyio.to_thread.run_sync(files.mode, path)) is not None:
                await files.replace(path, content, present)
            else:
                await files.create(path, content, mode)
        finally:
            # Also after a failure: the editor may have written the file.
            self._registry.note_edit(self._session, files.place(path))


def files_of(session: Session, changes: Iterable[FileChange]) -> Files:
    """Return the files of a session. Those of ``changes`` are opened where they were changed; links are refused."""
    files = Files(session.clients.files())
    for change in changes:
        files.settle(change.path, change.place)
    return files


async def state_of(files: Files, change: FileChange) -> ChangedFileState:
    """Return whether a file is as a change left it."""
    if not change.kept:
        return "not-kept"
    return "as-left" if change.is_left_as(await current_content(files, change.path)) else "changed-since"


async def current_content(files: Files, path: Path) -> bytes | None:
    """Return the content of a file, unsaved changes included; ``None`` if it cannot be read or does not exist."""
    await files.open(path)
    try:
        return await anyio.to_thread.run_sync(files.read, path)
    except (OSError, ValueError):
        return None


async def _diff(change: FileChange) -> str:
    return await anyio.to_thread.run_sync(diff_of, change) if change.kept else ""


def diff_of(change: FileChange, name: str | None = None) -> str:
    """Return the unified diff of a change; ``name`` is shown in place of the path."""
    before = None if change.before is None else change.before.decode("utf-8", "surrogateescape")
    after = None if change.after is None else change.after.decode("utf-8", "surrogateescape")
    return unified_diff(name or str(change.path), before, after)


def shown(path: Path) -> str:
    """Return a path as text that JSON can hold."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
