"""``session.permissions.*``: answers to permission requests, and the rules and modes that decide without asking."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio.to_thread

from jumpseat.agent.permissions.approvals import ApprovalRecord
from jumpseat.agent.permissions.questions import STORED_DECISIONS
from jumpseat.agent.permissions.rules import KINDS, Rule, Rules
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError, UnsupportedError
from jumpseat.sessions.changes import folder_of
from jumpseat.sessions.context import Context
from jumpseat_protocol.permission_methods import (
    AddToolApprovalParams,
    AllowAllParams,
    AllowAllResult,
    AllowAllSetResult,
    LocationApplyResult,
    LocationParams,
    LocationResult,
    ModifyRulesParams,
    PathAllowedResult,
    PathsConfig,
    PendingRequestsResult,
    PermissionModeParams,
    PermissionModeResult,
    PermissionModeSetResult,
    PermissionPathParams,
    PermissionPathsResult,
    PermissionsConfigureParams,
    ResetApprovalsParams,
    SetApproveAllParams,
    SetRequiredParams,
    TrustedResult,
    UnrestrictedUrlsParams,
)
from jumpseat_protocol.permissions import DecidedBy, HandlePendingPermissionRequestParams, WireRule
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import to_wire


def handle_pending_permission_request(ctx: Context, params: HandlePendingPermissionRequestParams) -> SuccessResult:
    """Answer a permission request. Only the first decision counts; ``no-result`` leaves the request to others.

    Raises:
        InvalidRequestError: the decision would be stored for all sessions, and the client may not do that.
    """
    session = ctx.registry.live(params.session_id)
    if params.result.kind in STORED_DECISIONS:
        ctx.require_all(f"the decision {params.result.kind!r}")
    if params.result.kind == "no-result":
        return SuccessResult(success=False)
    pending = session.permissions.questions.pending
    return SuccessResult(success=pending.answer(params.request_id, params.result, _decided_by(ctx, session)))


def _decided_by(ctx: Context, session: Session) -> DecidedBy | None:
    """Return the names of the calling client and of its token; ``None`` if it has neither."""
    attachment = session.clients.get(ctx.connection)
    client = attachment.name if attachment is not None else None
    token = ctx.connection.access.name if ctx.connection.access is not None else None
    return None if client is None and token is None else DecidedBy(client=client, token=token)


def set_approve_all(ctx: Context, params: SetApproveAllParams) -> SuccessResult:
    """Turn the approval of all calls on or off."""
    ctx.registry.live(params.session_id).permissions.set_mode("allow-all" if params.enabled else "manual")
    return SuccessResult()


def reset_session_approvals(ctx: Context, params: ResetApprovalsParams) -> SuccessResult:
    """Remove the approvals of the session. Stored approvals stay on the disk."""
    ctx.registry.live(params.session_id).permissions.approvals.reset(ignore_stored=params.include_location)
    return SuccessResult()


def pending_requests(ctx: Context, params: SessionParams) -> PendingRequestsResult:
    """Return the open permission requests, for clients that join late."""
    permissions = ctx.registry.live(params.session_id).permissions
    items: list[dict[str, Any]] = [
        {
            "requestId": question.id,
            "request": permissions.questions.prompt(question),
            "permissionRequest": to_wire(question.question),
        }
        for question in permissions.questions.pending.open()
    ]
    return PendingRequestsResult(items=ctx.process.secrets.mask(items))


def get_mode(ctx: Context, params: SessionParams) -> PermissionModeResult:
    """Return the mode: ``allow-all`` approves all calls, and in ``assisted`` a model judges them first."""
    return PermissionModeResult(mode=ctx.registry.live(params.session_id).permissions.mode)


async def set_mode(ctx: Context, params: PermissionModeParams) -> PermissionModeSetResult:
    """Change the mode while the session is live. The mode is not stored: a resumed session has the default.

    Raises:
        InvalidRequestError: the mode is ``sandboxed``, and the sandbox of this system lacks something.
    """
    permissions = ctx.registry.live(params.session_id).permissions
    if params.mode == "sandboxed" and (lacks := await ctx.registry.lacks_of_sandbox()):
        raise InvalidRequestError(f"the mode 'sandboxed' is not available on this system: {lacks}")
    permissions.set_mode(params.mode, params.assisted_approval_model if params.mode == "assisted" else None)
    return PermissionModeSetResult(mode=permissions.mode)


def get_allow_all(ctx: Context, params: SessionParams) -> AllowAllResult:
    """Return whether all calls are approved: ``getMode`` as SDK 1.0.6 calls it."""
    enabled = ctx.registry.live(params.session_id).permissions.approve_all
    return AllowAllResult(enabled=enabled, mode="on" if enabled else "off")


def set_allow_all(ctx: Context, params: AllowAllParams) -> AllowAllSetResult:
    """Turn the approval of all calls on or off: ``setMode`` as SDK 1.0.6 calls it.

    Raises:
        UnsupportedError: the mode is ``auto``.
    """
    permissions = ctx.registry.live(params.session_id).permissions
    if params.mode == "auto":
        raise UnsupportedError("session.permissions.setAllowAll with mode 'auto'")
    enabled = params.mode == "on" if params.mode else params.enabled
    permissions.set_mode("allow-all" if enabled else "manual")
    return AllowAllSetResult(enabled=enabled, mode="on" if enabled else "off")


def configure(ctx: Context, params: PermissionsConfigureParams) -> SuccessResult:
    """Replace the given parts of the configuration: all of them, or none if one is invalid."""
    session = ctx.registry.live(params.session_id)
    permissions = session.permissions
    if params.approve_all_tool_permission_requests or params.approve_all_read_permission_requests:
        permissions.check_escalation("approve_all")
    if params.paths is not None and params.paths.unrestricted:
        permissions.check_escalation("unrestricted_paths")
    if params.urls is not None and params.urls.unrestricted:
        permissions.check_escalation("unrestricted_urls")
    configured = permissions.approvals.rules.configured
    allow, deny = configured.allow, configured.deny
    if params.rules is not None:
        urls = tuple(rule for rule in allow if rule.base == _OF_URLS)
        allow, deny = (*_rules(params.rules.approved), *urls), tuple(_rules(params.rules.denied))
    if params.urls is not None:
        allow = (
            *(rule for rule in allow if rule.base != _OF_URLS),
            *(Rule("url", url, _OF_URLS) for url in params.urls.initial_allowed),
        )
    if params.paths is not None:
        _set_paths(session, params.paths)
    permissions.approvals.rules.configured = Rules(allow=allow, deny=deny)
    if params.urls is not None:
        permissions.path_scope.any_host = params.urls.unrestricted
    if params.assisted_approval_instructions is not None:
        permissions.judging_instructions = params.assisted_approval_instructions.strip()
    if params.approve_all_read_permission_requests is not None:
        permissions.approvals.rules.allow_reads = params.approve_all_read_permission_requests
    if params.approve_all_tool_permission_requests is not None:
        permissions.set_mode("allow-all" if params.approve_all_tool_permission_requests else "manual")
    return SuccessResult()


def _set_paths(session: Session, paths: PathsConfig) -> None:
    added = [folder_of(session, folder) for folder in paths.additional_directories]
    if paths.workspace_path is not None:
        # The folder need not exist yet.
        added.append(session.settings.cwd / paths.workspace_path)
    path_scope = session.permissions.path_scope
    path_scope.added_folders, path_scope.primary = added, None
    path_scope.unrestricted, path_scope.include_temp = paths.unrestricted, paths.include_temp_directory


async def modify_rules(ctx: Context, params: ModifyRulesParams) -> SuccessResult:
    """Add and remove approval rules, of the session or of its location.

    Raises:
        InvalidRequestError: a rule is invalid, or the client may not change those of a location.
    """
    permissions = ctx.registry.live(params.session_id).permissions
    if params.scope == "location":
        ctx.require_all("a rule of a location")
    add, remove = _rules(params.add), _rules(params.remove)
    await permissions.approvals.change_rules(params.scope, add, remove, remove_all=params.remove_all)
    return SuccessResult()


def set_required(ctx: Context, params: SetRequiredParams) -> SuccessResult:
    session = ctx.registry.live(params.session_id)
    session.clients.set_handles_permissions(ctx.connection, params.required)
    return SuccessResult()


# The origin of the rules that `urls` sets; they are replaced separately from `rules`.
_OF_URLS = "urls"


def _rules(rules: list[WireRule]) -> list[Rule]:
    return [_rule(rule.kind, rule.argument or None) for rule in rules]


def _rule(kind: str, argument: str | None) -> Rule:
    if kind == "tool" and argument is None:
        raise InvalidRequestError("a rule of kind 'tool' requires the name of a tool as its argument")
    if kind in KINDS:
        return Rule(kind, argument)
    # Hosts write rules for MCP servers like this: the server is the kind, its tool the argument.
    return Rule("mcp", f"{kind}:{argument}" if argument else kind)


def folder_trust_is_trusted(ctx: Context, params: PermissionPathParams) -> TrustedResult:
    session = ctx.registry.live(params.session_id)
    return TrustedResult(trusted=ctx.process.trust.is_trusted(session.settings.cwd / params.path))


async def folder_trust_add_trusted(ctx: Context, params: PermissionPathParams) -> SuccessResult:
    """Trust a folder in all sessions, and read the permission rules of this session again."""
    session = ctx.registry.live(params.session_id)
    await anyio.to_thread.run_sync(ctx.process.trust.add, session.settings.cwd / params.path)
    session.permissions.reload_rules()
    return SuccessResult()


def locations_resolve(ctx: Context, params: LocationParams) -> LocationResult:
    """Return the location that approvals for a folder are stored for: its repository, or the folder itself.

    Raises:
        InvalidRequestError: the path is invalid.
    """
    session = ctx.registry.live(params.session_id)
    return _location(session.permissions.approvals.location_key_of(_folder(session, params.working_directory)))


def locations_apply(ctx: Context, params: LocationParams) -> LocationApplyResult:
    """Apply the stored approvals of a folder's location to the session.

    Raises:
        InvalidRequestError: the path is invalid.
    """
    session = ctx.registry.live(params.session_id)
    permissions = session.permissions
    changed, rules = permissions.approvals.apply_location(_folder(session, params.working_directory))
    location = _location(permissions.approvals.location_key)
    return LocationApplyResult(
        location_key=location.location_key,
        location_type=location.location_type,
        changed=changed,
        applied_rule_count=len(rules),
        applied_directory_count=0,
        applied_rules=[WireRule(kind=rule.kind, argument=rule.argument) for rule in rules],
    )


async def locations_add_tool_approval(ctx: Context, params: AddToolApprovalParams) -> SuccessResult:
    """Store an approval for a location."""
    permissions = ctx.registry.live(params.session_id).permissions
    await permissions.approvals.add_for_location(params.location_key, ApprovalRecord(params.approval))
    return SuccessResult()


def _folder(session: Session, path: str) -> Path:
    if session.permissions.path_scope.resolve(path) is None:
        raise InvalidRequestError(f"invalid path {path[:200]!r}")
    return session.settings.cwd / path


def _location(key: str) -> LocationResult:
    git = Path(key) / ".git"
    return LocationResult(location_key=key, location_type="repo" if os.path.exists(git) else "dir")


def paths_list(ctx: Context, params: SessionParams) -> PermissionPathsResult:
    """Return the allowed folders, and the primary one."""
    path_scope = ctx.registry.live(params.session_id).permissions.path_scope
    return PermissionPathsResult(
        directories=[str(folder) for folder in path_scope.folders()], primary=str(path_scope.main_folder)
    )


def paths_add(ctx: Context, params: PermissionPathParams) -> SuccessResult:
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


def paths_update_primary(ctx: Context, params: PermissionPathParams) -> SuccessResult:
    """Make another folder the primary one. The working directory does not change, and stays allowed.

    Raises:
        InvalidRequestError: there is no such folder.
    """
    session = ctx.registry.live(params.session_id)
    session.permissions.path_scope.primary = folder_of(session, params.path)
    return SuccessResult()


def paths_is_path_within_allowed_directories(ctx: Context, params: PermissionPathParams) -> PathAllowedResult:
    """Return whether a path is in an allowed folder, with symbolic links resolved."""
    path_scope = ctx.registry.live(params.session_id).permissions.path_scope
    place = path_scope.resolve(params.path)
    return PathAllowedResult(allowed=place is not None and path_scope.contains(place))


def paths_is_path_within_workspace(ctx: Context, params: PermissionPathParams) -> PathAllowedResult:
    """Return whether a path is in the primary folder, with symbolic links resolved."""
    path_scope = ctx.registry.live(params.session_id).permissions.path_scope
    place, root = path_scope.resolve(params.path), path_scope.resolve(str(path_scope.main_folder))
    return PathAllowedResult(
        allowed=place is not None and root is not None and Path(place.real).is_relative_to(root.real)
    )


def urls_set_unrestricted_mode(ctx: Context, params: UnrestrictedUrlsParams) -> SuccessResult:
    """Allow or no longer allow calls to load from any host.

    Raises:
        InvalidRequestError: a host's policy forbids it.
    """
    permissions = ctx.registry.live(params.session_id).permissions
    if params.enabled:
        permissions.check_escalation("unrestricted_urls")
    permissions.path_scope.any_host = params.enabled
    return SuccessResult()
