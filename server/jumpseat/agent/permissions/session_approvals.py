"""The approvals and the rules of one session: its own, and stored ones that apply to it.

Approvals for the session are kept here. Approvals for a location, or for everywhere, are kept by an
:class:`~jumpseat.agent.permissions.approvals.ApprovalStore`: the file ``approvals.json`` of
``jumpseat.store.user.location_approvals``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.agent.permissions.approvals import (
    ApprovalRecord,
    ApprovalStore,
    Kept,
    StoredApprovals,
    approval_record,
    list_kept,
    narrowest_approval,
)
from jumpseat.agent.permissions.paths import PathScope, anchors_of
from jumpseat.agent.permissions.rules import Facts, Rule, Rules
from jumpseat.errors import StoreError
from jumpseat_protocol import events
from jumpseat_protocol.permissions import PermissionDecision, PermissionRequest

_LASTING_DECISIONS: Final = frozenset(
    {
        "approve-for-session",
        "approve-for-location",
        "approve-permanently",
        "approve-read-only-for-session",
        "approved-for-session",
        "approved-for-location",
        "approved-read-only-for-session",
    }
)


class SessionRules(Struct):
    """Rules that clients have set for this session alone.

    ``configured`` are the rules of ``session.permissions.configure``, ``added`` those of ``modifyRules``.
    ``location_key`` names the location whose approvals apply, if it is not that of the working directory.
    ``ignore_stored`` is set by a reset, after which approvals from other sessions no longer apply. ``readable`` are
    real paths of folders that file tools may read.
    """

    configured: Rules = field(default_factory=Rules)
    added: list[Rule] = field(default_factory=list[Rule])
    allow_reads: bool = False
    location_key: str | None = None
    ignore_stored: bool = False
    readable: list[str] = field(default_factory=list[str])


class SessionApprovals:
    """The approvals of one session.

    ``emit`` publishes events. ``location_of`` returns the key of a folder in ``store``: the location that approvals
    are stored for. Without ``store``, all approvals hold for the session only.
    """

    def __init__(
        self,
        emit: Callable[[events.EventPayload], object],
        path_scope: PathScope,
        store: ApprovalStore | None,
        location_of: Callable[[Path], str],
    ) -> None:
        self._emit = emit
        self._path_scope = path_scope
        self._store = store
        self._location_of = location_of
        self.rules = SessionRules()
        self._records: list[ApprovalRecord] = []

    def current(self) -> StoredApprovals:
        """Return the approvals and allow rules of the session, of its location and of everywhere.

        The stored ones are read each time, because they may have been revoked.
        """
        if self._store is None or self.rules.ignore_stored:
            return StoredApprovals([*self._records], [*self.rules.added])
        here, everywhere = self._store.read(self.location_key), self._store.read(None)
        return StoredApprovals(
            [*self._records, *here.approvals, *everywhere.approvals], [*self.rules.added, *here.rules]
        )

    def kept(self) -> list[Kept]:
        """Return all approvals and added rules that apply, with where they hold."""
        own = StoredApprovals(self._records, self.rules.added)
        if self._store is None or self.rules.ignore_stored:
            return list_kept(own, StoredApprovals(), StoredApprovals())
        return list_kept(own, self._store.read(self.location_key), self._store.read(None))

    @property
    def location_key(self) -> str:
        """The key that approvals for this location are stored under."""
        return self.rules.location_key or self.location_key_of(self._path_scope.cwd())

    def location_key_of(self, folder: Path) -> str:
        """Return the key that approvals for another folder are stored under."""
        return self._location_of(folder)

    # --- decisions of people --------------------------------------------------------------------------------------

    def once(self, decision: PermissionDecision) -> PermissionDecision:
        """Return an approval without what would outlast its call; other decisions as they are."""
        if decision.kind not in _LASTING_DECISIONS:
            return decision
        return decision.model_copy(update={"kind": "approve-once", "approval": None, "location_key": None})

    async def keep(
        self, decision: PermissionDecision, request: PermissionRequest, facts: Facts
    ) -> PermissionDecision:
        """Keep an approval that outlasts its call, and return the decision as it takes effect.

        If the client sends no approval, the narrowest one that covers the call applies. If none is safe, only this
        call is approved. The same holds if a person changed the arguments: those of the model were not approved.
        """
        once = self.once(decision)
        if once is decision:
            return decision
        if decision.kind in ("approve-read-only-for-session", "approved-read-only-for-session"):
            folders = [
                path.real for folder in decision.directories or () if (path := self._path_scope.resolve(folder))
            ]
            if facts.kind != "read" or not folders:
                return once
            self.rules.readable += [folder for folder in folders if folder not in self.rules.readable]
            return decision
        if decision.modified_args is not None and decision.approval is None:
            return once
        approval = decision.approval or (None if decision.domain else narrowest_approval(request))
        record = approval_record(approval, request, facts, decision.domain)
        if record is None:
            return once
        self._records.append(record)
        location = None
        if decision.kind == "approve-permanently":
            await self._add_to_store(None, record)
            return once
        if decision.kind in ("approve-for-location", "approved-for-location"):
            location = decision.location_key or self.location_key
            await self._add_to_store(location, record)
        if approval is None:
            # The protocol has no kind of approval for hosts.
            return once
        return decision.model_copy(update={"approval": approval, "location_key": location})

    async def _add_to_store(self, location: str | None, record: ApprovalRecord) -> None:
        """Store an approval for a location, or for everywhere; a failure becomes a warning."""
        if self._store is None:
            return
        try:
            await anyio.to_thread.run_sync(self._store.add, location, record, abandon_on_cancel=True)
        except StoreError as error:
            self._emit(
                events.SessionWarning(
                    warning_type="permission",
                    message=f"The approval holds for this session only, because it could not be stored: {error}",
                )
            )

    # --- changes by clients ---------------------------------------------------------------------------------------

    def reset(self, *, ignore_stored: bool = False) -> None:
        """Drop the approvals of the session; with ``ignore_stored``, ignore those of other sessions from now on."""
        self._records.clear()
        self.rules.added.clear()
        self.rules.readable.clear()
        self.rules.ignore_stored = self.rules.ignore_stored or ignore_stored

    async def revoke(self, kept: Kept) -> None:
        """Remove one approval or rule, from the session and from where it is stored.

        Raises:
            StoreError: the stored approvals cannot be written.
        """
        if kept.scope != "session" and self._store is not None:
            location = self.location_key if kept.scope == "location" else None
            await anyio.to_thread.run_sync(self._store.remove, location, kept.item)
        self._records = [record for record in self._records if record != kept.item]
        if kept.scope == "session":
            self.rules.added = [rule for rule in self.rules.added if rule != kept.item]

    def apply_location(self, folder: Path) -> tuple[bool, list[Rule]]:
        """Apply the approvals of another location; return whether the location changed, and its rules."""
        key = self.location_key_of(folder)
        changed = self.rules.location_key != key or self.rules.ignore_stored
        self.rules.location_key, self.rules.ignore_stored = key, False
        stored = self._store.read(key) if self._store is not None else StoredApprovals()
        return changed, [*stored.rules, *(rule for record in stored.approvals for rule in record.rules())]

    async def add_for_location(self, location: str, record: ApprovalRecord) -> None:
        """Store an approval for a location, and apply it to this session.

        Raises:
            StoreError: the approval cannot be stored.
        """
        if record.approval is not None and not record.anchors:
            named = record.approval.command_identifiers or ()
            record = replace(record, anchors=anchors_of(named, location))
        if self._store is not None:
            await anyio.to_thread.run_sync(self._store.add, location, record)
        self._records.append(record)

    async def change_rules(self, scope: str, add: list[Rule], remove: list[Rule], *, remove_all: bool) -> None:
        """Change the allow rules of the session or of its location. Removals also remove the approvals they match.

        ``scope`` is ``session`` or ``location``.

        Raises:
            StoreError: the rules of the location cannot be stored.
        """
        removed = frozenset(remove)
        if scope == "location":
            if self._store is not None:
                change = partial(self._store.change_rules, remove_all=remove_all)
                await anyio.to_thread.run_sync(change, self.location_key, add, remove)
        else:
            rules = [] if remove_all else [*self.rules.added, *add]
            self.rules.added = [rule for rule in dict.fromkeys(rules) if rule not in removed]
        if remove_all:
            self._records.clear()
        self._records = [record for record in self._records if not any(rule in removed for rule in record.rules())]
