"""The approvals that outlast their calls, as a person lists and revokes them. Pure."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Literal, TypeAlias

from msgspec import Struct

from jumpseat.agent.permissions.approvals import ApprovalRecord, StoredApprovals
from jumpseat.agent.permissions.rules import Rule

Scope: TypeAlias = Literal["session", "location", "everywhere"]


class Kept(Struct, frozen=True):
    """An approval or an allow rule, and where it holds."""

    scope: Scope
    item: ApprovalRecord | Rule

    @property
    def value(self) -> str:
        """The approval as text: equal for equal approvals."""
        value = [self.item.kind, self.item.argument] if isinstance(self.item, Rule) else self.item.to_json()
        return json.dumps(value, sort_keys=True)

    @property
    def id(self) -> str:
        """The same for the same approval in the same scope, in all processes."""
        return sha256(f"{self.scope} {self.value}".encode()).hexdigest()[:16]

    @property
    def rules(self) -> list[Rule]:
        return [self.item] if isinstance(self.item, Rule) else self.item.rules()


def list_kept(session: StoredApprovals, location: StoredApprovals, everywhere: StoredApprovals) -> list[Kept]:
    """Return all approvals, each once: an approval that is stored is not listed for the session as well."""
    stored = {kept.id: kept for kept in (*_kept("location", location), *_kept("everywhere", everywhere))}
    known = {kept.value for kept in stored.values()}
    own = {kept.id: kept for kept in _kept("session", session) if kept.value not in known}
    return [*own.values(), *stored.values()]


def _kept(scope: Scope, approvals: StoredApprovals) -> list[Kept]:
    items: list[ApprovalRecord | Rule] = [*approvals.approvals, *approvals.rules]
    return [Kept(scope, item) for item in items]
