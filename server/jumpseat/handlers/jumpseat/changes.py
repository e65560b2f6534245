"""``jumpseat.changes.*``: the changes that the file tools of a session have made."""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread

from jumpseat.errors import SessionInUseError, SessionNotFoundError
from jumpseat.sessions.changesets import Changesets, described_of_log
from jumpseat.sessions.context import Context
from jumpseat.sessions.file_changes import describe
from jumpseat.sessions.file_changes import undo as undo_latest
from jumpseat_protocol.changes import (
    ChangesFilesParams,
    ChangesFilesResult,
    ChangesListParams,
    ChangesListResult,
    ChangesUndoFilesParams,
    ChangesUndoFilesResult,
    ChangesUndoResult,
    LeftFile,
    PromptChanges,
)
from jumpseat_protocol.sessions import SessionParams


async def list_(ctx: Context, params: ChangesListParams) -> ChangesListResult:
    """Return the latest prompts that changed files, with the diffs of the files. Commands are not tracked."""
    session = ctx.registry.live(params.session_id)
    known = await anyio.to_thread.run_sync(ctx.registry.storage(session).changes.read)
    return ChangesListResult(
        prompts=[
            PromptChanges(
                interaction_id=changes.interaction_id,
                prompt=changes.prompt,
                files=await describe(session, changes),
            )
            for changes in reversed(known[-params.limit :])
        ]
    )


async def undo(ctx: Context, params: SessionParams) -> ChangesUndoResult:
    """Take back the changes of the latest prompt that has changes, in files that are as it left them.

    Raises:
        InvalidRequestError: a prompt is running.
    """
    outcome = await undo_latest(ctx.registry, ctx.registry.live(params.session_id))
    if outcome is None:
        return ChangesUndoResult()
    return ChangesUndoResult(prompt=outcome.prompt, undone=outcome.undone, left=list(outcome.left))


async def files(ctx: Context, params: ChangesFilesParams) -> ChangesFilesResult:
    """Return the files that a session, or one of its prompts, has changed; also of a session that is not open.

    Raises:
        SessionNotFoundError: there is no such session.
    """
    try:
        session = ctx.registry.live(params.session_id)
    except (SessionNotFoundError, SessionInUseError):
        log = ctx.registry.store.get_existing(params.session_id).changes
        return ChangesFilesResult(files=await described_of_log(log, params.interaction_id))
    return ChangesFilesResult(files=await Changesets(ctx.registry, session).described(params.interaction_id))


async def undo_files(ctx: Context, params: ChangesUndoFilesParams) -> ChangesUndoFilesResult:
    """Take back the changes of a session, of one of its prompts, or of one file.

    Raises:
        InvalidRequestError: a prompt is running, or the session is rewound.
        UnknownItemError: the file was not changed.
    """
    sets = Changesets(ctx.registry, ctx.registry.live(params.session_id))
    outcome = await sets.undo(params.interaction_id, None if params.path is None else Path(params.path))
    left = [LeftFile(path=path, reason=reason) for path, reason in outcome.left.items()]
    return ChangesUndoFilesResult(undone=outcome.undone, left=left)
