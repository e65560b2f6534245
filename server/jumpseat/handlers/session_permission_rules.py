"""``session.permissions.configure``, ``modifyRules`` and their like: what a client settles beforehand."""

from __future__ import annotations

from pathlib import Path

from jumpseat.agent.permissions.approvals import Remembered
from jumpseat.agent.permissions.rules import KINDS, Rule, Rules
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError, UnsupportedError
from jumpseat.handlers.context import Context
from jumpseat.handlers.session_permission_paths import folder_of
from jumpseat_protocol.permission_methods import (
    AddToolApprovalParams,
    LocationApplyResult,
    LocationParams,
    LocationResult,
    ModifyRulesParams,
    PathsConfig,
    PermissionsConfigureParams,
    SetRequiredParams,
    UnrestrictedUrlsParams,
)
from jumpseat_protocol.permissions import WireRule
from jumpseat_protocol.server import SuccessResult


def configure(ctx: Context, params: PermissionsConfigureParams) -> SuccessResult:
    """Replace what is given; all of it, or nothing where something is wrong."""
    session = ctx.registry.live(params.session_id)
    permissions = session.permissions
    if params.additional_content_exclusion_policies:
        raise UnsupportedError("session.permissions.configure with additionalContentExclusionPolicies")
    configured = permissions.own.configured
    allow, deny = configured.allow, configured.deny
    if params.rules is not None:
        urls = tuple(rule for rule in allow if rule.base == _OF_URLS)
        allow, deny = (*_rules(params.rules.approved), *urls), tuple(_rules(params.rules.denied))
    if params.urls is not None:
        allow = (
            *(rule for rule in allow if rule.base != _OF_URLS),
            *(Rule("url", one, _OF_URLS) for one in params.urls.initial_allowed),
        )
    if params.paths is not None:
        _set_paths(session, params.paths)
    permissions.own.configured = Rules(allow=allow, deny=deny)
    if params.urls is not None:
        permissions.grounds.any_host = params.urls.unrestricted
    if params.approve_all_read_permission_requests is not None:
        permissions.own.allow_reads = params.approve_all_read_permission_requests
    if params.approve_all_tool_permission_requests is not None:
        permissions.set_mode("allow-all" if params.approve_all_tool_permission_requests else "manual")
    return SuccessResult()


def _set_paths(session: Session, paths: PathsConfig) -> None:
    added = [folder_of(session, one) for one in paths.additional_directories]
    if paths.workspace_path is not None:
        # Allowed even before it exists.
        added.append(session.settings.cwd / paths.workspace_path)
    grounds = session.permissions.grounds
    grounds.added, grounds.primary = added, None
    grounds.unrestricted, grounds.with_temp = paths.unrestricted, paths.include_temp_directory


async def modify_rules(ctx: Context, params: ModifyRulesParams) -> SuccessResult:
    """Allow more, or take back what is allowed."""
    permissions = ctx.registry.live(params.session_id).permissions
    add, remove = _rules(params.add), _rules(params.remove)
    await permissions.change_rules(params.scope, add, remove, remove_all=params.remove_all)
    return SuccessResult()


def set_required(ctx: Context, params: SetRequiredParams) -> SuccessResult:
    """Say that this client answers permission requests, or no longer does."""
    session = ctx.registry.live(params.session_id)
    session.clients.set_handles_permissions(ctx.connection, params.required)
    return SuccessResult()


def set_unrestricted_mode(ctx: Context, params: UnrestrictedUrlsParams) -> SuccessResult:
    """Load whatever a call wants, or ask about hosts again."""
    ctx.registry.live(params.session_id).permissions.grounds.any_host = params.enabled
    return SuccessResult()


def locations_resolve(ctx: Context, params: LocationParams) -> LocationResult:
    """Where approvals for a folder are kept: its repository, else itself."""
    session = ctx.registry.live(params.session_id)
    return _location(session.permissions.locate(_folder(session, params.working_directory)))


def locations_apply(ctx: Context, params: LocationParams) -> LocationApplyResult:
    """Heed what was approved for a location from now on."""
    session = ctx.registry.live(params.session_id)
    permissions = session.permissions
    changed, rules = permissions.apply_location(_folder(session, params.working_directory))
    location = _location(permissions.location)
    return LocationApplyResult(
        location_key=location.location_key,
        location_type=location.location_type,
        changed=changed,
        applied_rule_count=len(rules),
        applied_directory_count=0,
        applied_rules=[WireRule(kind=rule.kind, argument=rule.argument) for rule in rules],
    )


async def locations_add_tool_approval(ctx: Context, params: AddToolApprovalParams) -> SuccessResult:
    """Approve something for a location, for good."""
    permissions = ctx.registry.live(params.session_id).permissions
    await permissions.add_location_approval(params.location_key, Remembered(params.approval))
    return SuccessResult()


# Marks the rules that came as hosts: they are replaced apart from the others.
_OF_URLS = "urls"


def _folder(session: Session, path: str) -> Path:
    if session.permissions.grounds.place(path) is None:
        raise InvalidRequestError(f"{path[:200]!r} is no path")
    return session.settings.cwd / path


def _location(key: str) -> LocationResult:
    git = Path(key) / ".git"
    return LocationResult(location_key=key, location_type="repo" if git.exists() else "dir")


def _rules(rules: list[WireRule]) -> list[Rule]:
    return [_rule(one.kind, one.argument or None) for one in rules]


def _rule(kind: str, argument: str | None) -> Rule:
    if kind == "tool" and argument is None:
        raise InvalidRequestError("a rule of the kind 'tool' needs the name of one")
    if kind in KINDS:
        return Rule(kind, argument)
    # Hosts name MCP servers so: the server is the kind, its tool the argument.
    return Rule("mcp", f"{kind}:{argument}" if argument else kind)
