"""``session.workspaces.diff``: what has changed in the repository a session works in."""

from __future__ import annotations

from jumpseat.errors import InvalidRequestError
from jumpseat.handlers.context import Context
from jumpseat.store.git_diff import FileChange, GitError, Repository
from jumpseat_protocol.state import DiffFileChange, DiffParams, DiffResult


async def diff(ctx: Context, params: DiffParams) -> DiffResult:
    """As asked for, or else what is not staged. What a session itself has changed is not kept track of."""
    session = ctx.registry.live(params.session_id)
    if params.include_contents and params.mode != "session":
        raise InvalidRequestError("includeContents goes with the mode 'session' only")
    if not session.settings.host_git:
        raise InvalidRequestError("git is switched off for this session")
    repository = await Repository.of(session.settings.cwd)
    result = DiffResult(
        requested_mode=params.mode, mode="unstaged", changes=[], is_fallback=params.mode != "unstaged"
    )
    try:
        if params.mode == "branch":
            result.base_branch = await repository.default_branch()
            changes = await _since_branching(
                repository, result.base_branch, ignore_whitespace=params.ignore_whitespace
            )
            if changes is not None:
                result.mode, result.is_fallback, result.changes = "branch", False, _wire(changes)
                return result
        elif params.mode == "session":
            result.unavailable_reason = "file-change-tracking-disabled"
        result.changes = _wire(await repository.unstaged(ignore_whitespace=params.ignore_whitespace))
    except GitError as error:
        raise InvalidRequestError(f"the changes cannot be told: {error}") from None
    return result


async def _since_branching(
    repository: Repository, branch: str | None, *, ignore_whitespace: bool
) -> list[FileChange] | None:
    if branch is None:
        return None
    try:
        return await repository.since_branching(branch, ignore_whitespace=ignore_whitespace)
    except GitError:
        return None


def _wire(changes: list[FileChange]) -> list[DiffFileChange]:
    return [
        DiffFileChange(
            path=one.path,
            diff=one.diff,
            change_type=one.type,
            old_path=one.old_path,
            is_truncated=one.is_truncated or None,
        )
        for one in changes
    ]
