"""``jumpseat.changes.*``: the changes that the file tools of a session have made."""

from __future__ import annotations

import anyio.to_thread

from jumpseat.sessions.context import Context
from jumpseat.sessions.file_changes import describe
from jumpseat.sessions.file_changes import undo as undo_latest
from jumpseat_protocol.changes import ChangesListParams, ChangesListResult, ChangesUndoResult, PromptChanges
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
