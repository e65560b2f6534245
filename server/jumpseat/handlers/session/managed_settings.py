"""``session.managedSettings.*``: the policies that hosts have set for a session."""

from __future__ import annotations

from jumpseat.agent.permissions.host_policy import EnforcedPolicy
from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionManagedSettingsResolved
from jumpseat_protocol.sessions import SessionParams


def get(ctx: Context, params: SessionParams) -> SessionManagedSettingsResolved:
    """Return what is enforced."""
    policy = ctx.registry.live(params.session_id).permissions.host_policy
    return (policy or EnforcedPolicy()).announcement()
