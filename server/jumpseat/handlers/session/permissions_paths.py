"""``session.permissions.paths.*``: the folders that a session may use without approval."""

from __future__ import annotations

from pathlib import Path

from jumpseat.sessions.changes import folder_of
from jumpseat.sessions.context import Context
from jumpseat_protocol.permission_methods import (
    PathAllowedResult,
    PermissionPathParams,
    PermissionPathsResult,
)
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams


def list_paths(ctx: Context, params: SessionParams) -> PermissionPathsResult:
    """Return the allowed folders, and the primary one."""
    path_scope = ctx.registry.live(params.session_id).permissions.path_scope
    return PermissionPathsResult(
        directories=[str(folder) for folder in path_scope.folders()], primary=str(path_scope.main_folder)
    )


def add(ctx: Context, params: PermissionPathParams) -> SuccessResult:
    """Allow a folder.

    Raises:
        InvalidRequestError: there is no such folder.
    """
    session = ctx.registry.live(params.session_id)
    added = session.permissions.path_scope.added_folders
    folder = folder_of(session, params.path)
    if folder not in added:
        added.append(folder)
    return SuccessResult()


def update_primary(ctx: Context, params: PermissionPathParams) -> SuccessResult:
    """Make another folder the primary one. The working directory does not change, and stays allowed.

    Raises:
        InvalidRequestError: there is no such folder.
    """
    session = ctx.registry.live(params.session_id)
    session.permissions.path_scope.primary = folder_of(session, params.path)
    return SuccessResult()


def is_path_within_allowed_directories(ctx: Context, params: PermissionPathParams) -> PathAllowedResult:
    """Return whether a path is in an allowed folder, with symbolic links resolved."""
    path_scope = ctx.registry.live(params.session_id).permissions.path_scope
    place = path_scope.resolve(params.path)
    return PathAllowedResult(allowed=place is not None and path_scope.contains(place))


def is_path_within_workspace(ctx: Context, params: PermissionPathParams) -> PathAllowedResult:
    """Return whether a path is in the primary folder, with symbolic links resolved."""
    path_scope = ctx.registry.live(params.session_id).permissions.path_scope
    place, root = path_scope.resolve(params.path), path_scope.resolve(str(path_scope.main_folder))
    return PathAllowedResult(
        allowed=place is not None and root is not None and Path(place.real).is_relative_to(root.real)
    )
