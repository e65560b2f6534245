"""Decide whether the tool calls of one session may run: by rules and approvals, then by a judging model, then by a
person.

Denied by default: a call that nothing allows, and that no attached client can be asked about, does not run. One
warning per session names the setting that would allow it.

Approvals for this session are kept here. Approvals for a location, or for everywhere, are kept by an
:class:`~jumpseat.agent.permissions.approvals.ApprovalStore`: the file ``approvals.json`` of
``jumpseat.store.location_approvals``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

import anyio.to_thread

from jumpseat.agent.permissions.approvals import (
    ApprovalRecord,
    ApprovalStore,
    StoredApprovals,
    approval_record,
    approved_commands,
    covers,
    has_changed,
    narrowest_approval,
)
from jumpseat.agent.permissions.disclosure import disclose
from jumpseat.agent.permissions.facts import gather_facts
from jumpseat.agent.permissions.judge import JudgeConfig
from jumpseat.agent.permissions.paths import PathScope, anchors_of
from jumpseat.agent.permissions.questions import (
    ALLOWED,
    ALLOWED_INSIDE,
    DENIED_BY_RULE,
    NOT_AVAILABLE,
    PermissionQuestions,
    Verdict,
    verdict_of,
)
from jumpseat.agent.permissions.rules import (
    ApprovedCommands,
    Facts,
    ResolvedPath,
    Rule,
    Rules,
    allows,
    first_match,
    first_possible_match,
)
from jumpseat.errors import StoreError
from jumpseat_protocol import events
from jumpseat_protocol.permissions import (
    AssistedApproval,
    PermissionDecision,
    PermissionRequest,
    ShellPermission,
)
from jumpseat_protocol.visible import on_one_line

MOVED: Final = (
    "The path now resolves to a different location than when permission was requested. Send the call again."
)

Mode: TypeAlias = Literal["manual", "assisted", "sandboxed", "allow-all"]

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


@dataclass(frozen=True, slots=True)
class ApprovalLimits:
    """Restrictions that a tool puts on the approval of one of its calls.

    With ``needs_person``, neither a mode nor a model can allow the call; an approval, a rule or a person must.
    ``scope`` is a text that stands for what the call does: a lasting approval of the call covers only calls with
    the same text.
    """

    needs_person: bool = False
    scope: str | None = None


UNGUARDED: Final = ApprovalLimits()

Judge: TypeAlias = Callable[[PermissionRequest, str | None], Awaitable[AssistedApproval]]
"""Asks a model for its opinion of a request: the named model, or the default one. Never raises."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Permission settings from outside of the session.

    ``rules`` returns the rules of a working directory, and warnings about them for the user. ``location_key``
    returns the key of a folder in ``approval_store``: the location that approvals are stored for. ``guarded`` are
    folders that no rule and no approval may open for writing. With a ``judge``, sessions start in the mode
    ``assisted``.
    """

    rules: Callable[[Path], tuple[Rules, list[str]]] = lambda _cwd: (Rules(), [])
    location_key: Callable[[Path], str] = str
    approval_store: ApprovalStore | None = None
    guarded: tuple[Path, ...] = ()
    judge: JudgeConfig | None = None


@dataclass(slots=True)
class SessionRules:
    """Rules that clients have set for this session alone.

    ``configured`` are the rules of ``session.permissions.configure``, ``added`` those of ``modifyRules``.
    ``location_key`` names the location whose approvals apply, if it is not that of the working directory.
    ``ignore_stored`` is set by a reset: approvals from other sessions no longer apply. ``readable`` are real paths
    of folders that file tools may read.
    """

    configured: Rules = field(default_factory=Rules)
    added: list[Rule] = field(default_factory=list[Rule])
    allow_reads: bool = False
    location_key: str | None = None
    ignore_stored: bool = False
    readable: list[str] = field(default_factory=list[str])


class Permissions:
    """The permission state of one session.

    ``emit`` publishes events. ``can_ask`` returns whether an attached client handles permission requests,
    ``may_run_unasked`` whether the operator allows calls that no client can be asked about (``--yolo``).
    """

    def __init__(
        self,
        emit: Callable[[events.EventPayload], object],
        can_ask: Callable[[], bool],
        may_run_unasked: Callable[[], bool],
        path_scope: PathScope | None = None,
        policy: Policy | None = None,
        judge: Judge | None = None,
    ) -> None:
        self._emit = emit
        self._can_ask = can_ask
        self._may_run_unasked = may_run_unasked
        self._policy = policy or Policy()
        self._judge = judge
        self.path_scope = path_scope or PathScope(Path.cwd)
        self.session_rules = SessionRules()
        self.mode: Mode = "assisted" if judge is not None and self._policy.judge is not None else "manual"
        self.judging_model: str | None = None
        self.questions = PermissionQuestions(emit)
        self._approvals: list[ApprovalRecord] = []
        self._warned = False
        self._policy_rules: tuple[Path, Rules] | None = None

    # --- deciding ------------------------------------------------------------------------------------------------

    async def facts_of(self, request: PermissionRequest, tool: str) -> Facts:
        """Gather the facts of a call of ``tool`` in a thread, because disks may be slow."""
        return await anyio.to_thread.run_sync(gather_facts, request, tool, self.path_scope, abandon_on_cancel=True)

    async def decide(
        self,
        request: PermissionRequest,
        tool: str = "",
        guard: ApprovalLimits = UNGUARDED,
        facts: Facts | None = None,
    ) -> Verdict:
        """Decide whether one call of ``tool`` may run; waits without limit for a client that is asked.

        ``facts`` are those of the request; they are gathered here if they are not given.
        """
        if facts is None:
            facts = gather_facts(request, tool, self.path_scope)
        if guard.scope is not None:
            facts = replace(facts, scope=guard.scope)
        elif isinstance(request, ShellPermission) and request.sandboxed is False:
            # Approvals cover such a command only as a whole.
            facts = replace(facts, scope=request.full_command_text)
        disclose(request, facts)
        rules, patterns, opinion = self._rules(), self.path_scope.rule_patterns, None
        if (rule := first_match(rules.deny, facts, patterns)) is not None:
            return Verdict("denied", f"{DENIED_BY_RULE}: {rule}")
        rule = first_match(rules.ask, facts, patterns) or first_possible_match(
            rules.deny + rules.ask, facts, patterns
        )
        if rule is None:
            if self._is_allowed(request, facts, rules, guard):
                return ALLOWED
            if _stays_inside(request) and self._trusts_sandbox(rules) and not guard.needs_person:
                return ALLOWED_INSIDE
            opinion = await self._opinion(request, facts, guard)
            if opinion is not None and opinion.recommendation == "approve":
                self.questions.publish_model_approval(request, opinion)
                return ALLOWED
        if not self._can_ask():
            if rule is None and not guard.needs_person and self._may_run_unasked():
                return ALLOWED
            self._warn_denied_unasked(_why_a_person_is_needed(rule, tool, guard))
            return verdict_of(NOT_AVAILABLE)
        self._warn_changed(facts)
        verdict = await self._ask(request, facts, opinion)
        if verdict.status == "allowed" and verdict.arguments is None and request.kind in ("read", "write"):
            # The question may have been open for a long time, while other calls ran and changed links.
            now = gather_facts(request, tool, self.path_scope)
            if now.paths != facts.paths:
                return Verdict("denied", MOVED)
        return verdict

    def denial_by_rule(self, facts: Facts) -> Verdict | None:
        """Return the denial of a call that a rule forbids, which nothing can overrule; ``None`` if no rule does."""
        rule = first_match(self._rules().deny, facts, self.path_scope.rule_patterns)
        return Verdict("denied", f"{DENIED_BY_RULE}: {rule}") if rule is not None else None

    def _is_allowed(self, request: PermissionRequest, facts: Facts, rules: Rules, guard: ApprovalLimits) -> bool:
        if self.approve_all and not guard.needs_person:
            return True
        if facts.protected or facts.kind == "hook":
            return False
        if facts.kind == "url" and self.path_scope.any_host:
            return True
        if self.session_rules.allow_reads and facts.kind in ("read", "url"):
            return True
        if facts.kind == "read" and facts.paths and all(map(self._is_readable, facts.paths)):
            return True
        stored = self._stored_approvals()
        approvals = [*self._approvals, *stored.approvals]
        if isinstance(request, ShellPermission) and request.request_sandbox_bypass:
            return covers(approvals, request, facts)
        allow = [*rules.allow, *self.session_rules.added, *stored.rules]
        # With a scope, approvals of the same commands with other arguments do not count.
        commands = approved_commands(approvals) if facts.scope is None else ApprovedCommands()
        return covers(approvals, request, facts) or allows(allow, facts, self.path_scope.rule_patterns, commands)

    def _trusts_sandbox(self, rules: Rules) -> bool:
        """Return whether commands run unasked as long as they are confined: by the mode, or by a rule."""
        allow = (*rules.allow, *self.session_rules.added, *self._stored_approvals().rules)
        return self.mode == "sandboxed" or any(rule.kind == "sandboxed" for rule in allow)

    def _is_readable(self, path: ResolvedPath) -> bool:
        return any(Path(path.real).is_relative_to(folder) for folder in self.session_rules.readable)

    def _rules(self) -> Rules:
        cwd = self.path_scope.cwd()
        if self._policy_rules is None or self._policy_rules[0] != cwd:
            rules, problems = self._policy.rules(cwd)
            self._policy_rules = cwd, rules
            for problem in problems:
                self._emit(events.SessionWarning(warning_type="permission", message=problem))
        return self._policy_rules[1] + self.session_rules.configured

    def _stored_approvals(self) -> StoredApprovals:
        """Read the approvals of this location and of everywhere; each time, because they may have been revoked."""
        store = self._policy.approval_store
        if store is None or self.session_rules.ignore_stored:
            return StoredApprovals()
        here, everywhere = store.read(self.location_key), store.read(None)
        return StoredApprovals([*here.approvals, *everywhere.approvals], here.rules)

    async def _opinion(
        self, request: PermissionRequest, facts: Facts, guard: ApprovalLimits
    ) -> AssistedApproval | None:
        if self.mode != "assisted" or self._judge is None:
            return None
        bypass = isinstance(request, ShellPermission) and request.request_sandbox_bypass
        if facts.protected or facts.kind == "hook" or guard.needs_person or bypass:
            return AssistedApproval(recommendation="excluded")
        return await self._judge(request, self.judging_model)

    # --- asking -------------------------------------------------------------------------------------------------

    async def _ask(self, request: PermissionRequest, facts: Facts, opinion: AssistedApproval | None) -> Verdict:
        async def settle(decision: PermissionDecision) -> PermissionDecision:
            return await self._keep_approval(decision, request, facts)

        return verdict_of(await self.questions.ask(request, opinion, settle))

    async def _keep_approval(
        self, decision: PermissionDecision, request: PermissionRequest, facts: Facts
    ) -> PermissionDecision:
        """Keep an approval that outlasts this call, and return the decision as it takes effect.

        If the client sends no approval, the narrowest one that covers the call applies. If none is safe, only this
        call is approved. The same holds if a person changed the arguments: nobody approved those the model sent.
        """
        if decision.kind not in _LASTING_DECISIONS:
            return decision
        once = decision.model_copy(update={"kind": "approve-once", "approval": None, "location_key": None})
        if decision.kind in ("approve-read-only-for-session", "approved-read-only-for-session"):
            folders = [
                path.real for folder in decision.directories or () if (path := self.path_scope.resolve(folder))
            ]
            if facts.kind != "read" or not folders:
                return once
            self.session_rules.readable += [
                folder for folder in folders if folder not in self.session_rules.readable
            ]
            return decision
        if decision.modified_args is not None and decision.approval is None:
            return once
        approval = decision.approval or (None if decision.domain else narrowest_approval(request))
        record = approval_record(approval, request, facts, decision.domain)
        if record is None:
            return once
        self._approvals.append(record)
        location = None
        if decision.kind == "approve-permanently":
            await self._store_approval(None, record)
            return once
        if decision.kind in ("approve-for-location", "approved-for-location"):
            location = decision.location_key or self.location_key
            await self._store_approval(location, record)
        if approval is None:
            # The protocol has no kind of approval for hosts.
            return once
        return decision.model_copy(update={"approval": approval, "location_key": location})

    async def _store_approval(self, location: str | None, record: ApprovalRecord) -> None:
        """Store an approval for a location, or for everywhere; a failure becomes a warning."""
        if self._policy.approval_store is None:
            return
        try:
            await anyio.to_thread.run_sync(
                self._policy.approval_store.add, location, record, abandon_on_cancel=True
            )
        except StoreError as error:
            self._emit(
                events.SessionWarning(
                    warning_type="permission",
                    message=f"The approval holds for this session only, because it could not be stored: {error}",
                )
            )

    def _warn_changed(self, facts: Facts) -> None:
        """Say why a person is asked again about an MCP tool that was approved before."""
        if has_changed([*self._approvals, *self._stored_approvals().approvals], facts):
            self._emit(
                events.SessionWarning(
                    warning_type="permission",
                    message=on_one_line(
                        f"The MCP server {facts.server} has changed the description or the parameters of its tool"
                        f" {facts.name} since the tool was approved."
                    ),
                )
            )

    def _warn_denied_unasked(self, reason: str) -> None:
        """Warn once per session that a call was denied because nobody could be asked."""
        if self._warned:
            return
        self._warned = True
        self._emit(
            events.SessionWarning(
                warning_type="permission",
                message=(
                    "A tool call was denied because no attached client handles permission requests."
                    f"{reason}"
                    " Register a permission handler, or start the server with --yolo (configuration key"
                    " permissions.allow_unasked; permissions.allow_old_clients is the same for clients that speak"
                    " protocol 2) to allow such calls."
                ),
            )
        )

    # --- changes by clients ------------------------------------------------------------------------------------

    @property
    def approve_all(self) -> bool:
        """Return whether calls are allowed unless a rule denies them or requires a person to decide."""
        return self.mode == "allow-all"

    def set_mode(self, mode: Mode, model: str | None = None) -> None:
        """Set the mode and publish the change. ``model`` judges calls in the mode ``assisted``."""
        previous, self.mode = self.mode, mode
        changed = (mode, model) != (previous, self.judging_model)
        self.judging_model = model
        if changed:
            self._emit(
                events.SessionPermissionsChanged(
                    mode=mode,
                    previous_mode=previous,
                    allow_all_permissions=mode == "allow-all",
                    previous_allow_all_permissions=previous == "allow-all",
                    assisted_approval_model=model,
                )
            )

    @property
    def can_judge(self) -> bool:
        """Return whether the session has a judge."""
        return self._judge is not None

    @property
    def location_key(self) -> str:
        """The key that approvals for this location are stored under."""
        return self.session_rules.location_key or self._policy.location_key(self.path_scope.cwd())

    def location_key_of(self, folder: Path) -> str:
        """Return the key that approvals for another folder are stored under."""
        return self._policy.location_key(folder)

    def reset(self, *, ignore_stored: bool = False) -> None:
        """Drop the approvals of the session; with ``ignore_stored``, ignore those of other sessions from now on."""
        self._approvals.clear()
        self.session_rules.added.clear()
        self.session_rules.readable.clear()
        self.session_rules.ignore_stored = self.session_rules.ignore_stored or ignore_stored

    def reload_rules(self) -> None:
        """Read the rules of the working directory again at the next call."""
        self._policy_rules = None

    def apply_location(self, folder: Path) -> tuple[bool, list[Rule]]:
        """Apply the approvals of another location; returns whether the location changed, and its rules."""
        key = self._policy.location_key(folder)
        changed = self.session_rules.location_key != key or self.session_rules.ignore_stored
        self.session_rules.location_key, self.session_rules.ignore_stored = key, False
        stored = self._policy.approval_store.read(key) if self._policy.approval_store else StoredApprovals()
        return changed, [*stored.rules, *(rule for record in stored.approvals for rule in record.rules())]

    async def add_location_approval(self, location: str, record: ApprovalRecord) -> None:
        """Store an approval for a location, and apply it to this session.

        Raises:
            StoreError: the approval cannot be stored.
        """
        if record.approval is not None and not record.anchors:
            named = record.approval.command_identifiers or ()
            record = replace(record, anchors=anchors_of(named, location))
        if self._policy.approval_store is not None:
            await anyio.to_thread.run_sync(self._policy.approval_store.add, location, record)
        self._approvals.append(record)

    async def change_rules(self, scope: str, add: list[Rule], remove: list[Rule], *, remove_all: bool) -> None:
        """Change the allow rules of the session or of its location. Removals also remove the approvals they match.

        ``scope`` is ``session`` or ``location``.

        Raises:
            StoreError: the rules of the location cannot be stored.
        """
        if scope == "location":
            if self._policy.approval_store is not None:
                change = partial(self._policy.approval_store.change_rules, remove_all=remove_all)
                await anyio.to_thread.run_sync(change, self.location_key, add, remove)
        else:
            rules = [] if remove_all else [*self.session_rules.added, *add]
            self.session_rules.added = [rule for rule in dict.fromkeys(rules) if rule not in remove]
        if remove_all:
            self._approvals.clear()
        self._approvals = [
            approval for approval in self._approvals if not any(rule in remove for rule in approval.rules())
        ]


def _stays_inside(request: PermissionRequest) -> bool:
    """Return whether the request is for a command that is confined."""
    return isinstance(request, ShellPermission) and bool(request.sandboxed) and not request.request_sandbox_bypass


def _why_a_person_is_needed(rule: Rule | None, tool: str, guard: ApprovalLimits) -> str:
    if rule is not None:
        return f" The rule {rule} requires a person to decide."
    return f" The tool {tool} requires a person to decide, or a rule that allows it." if guard.needs_person else ""
