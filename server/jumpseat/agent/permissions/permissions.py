"""Who may do what in one session: rules and approvals first, then a judging model, then a person.

Denied by default: where nothing allows a call and no attached client can be asked, the call does not run, and
one warning per session names the setting that would allow it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

import anyio.to_thread

from jumpseat.agent.permissions.approvals import (
    ApprovalStore,
    Kept,
    Remembered,
    covered,
    known_of,
    narrowest,
    remember,
)
from jumpseat.agent.permissions.facts import PathScope, facts_of
from jumpseat.agent.permissions.judge import JudgeConfig
from jumpseat.agent.permissions.questions import (
    ALLOWED,
    DENIED_BY_RULE,
    NOT_AVAILABLE,
    PermissionQuestions,
    Verdict,
    verdict_of,
)
from jumpseat.agent.permissions.rules import Facts, Known, Place, Rule, Rules, allows, forbids, may_touch
from jumpseat.errors import StoreError
from jumpseat_protocol import events
from jumpseat_protocol.permissions import (
    AssistedApproval,
    PermissionDecision,
    PermissionRequest,
    ReadPermission,
    WritePermission,
)

MOVED: Final = "The path leads elsewhere now than when permission was asked. Send the call again."

Mode: TypeAlias = Literal["manual", "assisted", "allow-all"]

_REMEMBERED: Final = frozenset(
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
class Guard:
    """What a tool wants of those who decide on a call of it.

    ``in_person`` keeps the call from being allowed by what allows all calls, and by a model: an approval, a rule or
    a person has to. ``scope`` is a text that says what the call does; what is approved beyond the call holds for
    others of the same text only.
    """

    in_person: bool = False
    scope: str | None = None


UNGUARDED: Final = Guard()

Judge: TypeAlias = Callable[[PermissionRequest, str | None], Awaitable[AssistedApproval]]
"""Asks a model (the named one, or its own) what it makes of a request. Never raises."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What is settled outside of the session.

    ``rules`` are those of a working directory, with what people should know about them. ``locate`` gives the key
    that approvals for a location are kept under in ``store``. ``guarded`` is what no remembered allowance may
    change. With a ``judge``, a model judges from the start.
    """

    rules: Callable[[Path], tuple[Rules, list[str]]] = lambda _cwd: (Rules(), [])
    locate: Callable[[Path], str] = str
    store: ApprovalStore | None = None
    guarded: tuple[Path, ...] = ()
    judge: JudgeConfig | None = None


@dataclass(slots=True)
class OwnRules:
    """What clients have set for this session alone."""

    configured: Rules = field(default_factory=Rules)
    added: list[Rule] = field(default_factory=list[Rule])
    allow_reads: bool = False
    # The location whose approvals count, where it is not that of the working directory; none after a reset.
    location: str | None = None
    forget_kept: bool = False
    # Real paths of folders that file tools may read.
    readable: list[str] = field(default_factory=list[str])


class Permissions:
    """The permission state of one session.

    ``emit`` publishes events; ``can_ask`` says whether an attached client handles permissions;
    ``may_run_unasked`` whether the operator allows what no client can be asked about (``--yolo``).
    """

    def __init__(
        self,
        emit: Callable[[events.EventPayload], object],
        can_ask: Callable[[], bool],
        may_run_unasked: Callable[[], bool],
        grounds: PathScope | None = None,
        policy: Policy | None = None,
        judge: Judge | None = None,
    ) -> None:
        self._emit = emit
        self._can_ask = can_ask
        self._may_run_unasked = may_run_unasked
        self._policy = policy or Policy()
        self._judge = judge
        self.grounds = grounds or PathScope(Path.cwd)
        self.own = OwnRules()
        self.mode: Mode = "assisted" if judge is not None and self._policy.judge is not None else "manual"
        self.judging_model: str | None = None
        self.questions = PermissionQuestions(emit)
        self._approvals: list[Remembered] = []
        self._warned = False
        self._laid_down: tuple[Path, Rules] | None = None

    # --- judging ------------------------------------------------------------------------------------------------

    async def decide(self, request: PermissionRequest, tool: str = "", guard: Guard = UNGUARDED) -> Verdict:
        """Judge one call of ``tool``; waits for a client as long as the client takes."""
        facts = facts_of(request, tool, self.grounds)
        if guard.scope is not None:
            facts = replace(facts, scope=guard.scope)
        _show_where_it_leads(request, facts)
        rules, opinion = self._rules(), None
        if (rule := forbids(rules.deny, facts, self.grounds.anchor)) is not None:
            return Verdict("denied", f"{DENIED_BY_RULE}: {rule}")
        rule = forbids(rules.ask, facts, self.grounds.anchor) or may_touch(
            rules.deny + rules.ask, facts, self.grounds.anchor
        )
        if rule is None:
            if self._is_allowed(request, facts, rules, guard):
                return ALLOWED
            opinion = await self._opinion(request, facts, guard)
            if opinion is not None and opinion.recommendation == "approve":
                self.questions.note(request, opinion)
                return ALLOWED
        if not self._can_ask():
            if rule is None and not guard.in_person and self._may_run_unasked():
                return ALLOWED
            self._warn(_who_wants_a_person(rule, tool, guard))
            return verdict_of(NOT_AVAILABLE)
        verdict = await self._ask(request, facts, opinion)
        if verdict.status == "allowed" and verdict.arguments is None and request.kind in ("read", "write"):
            # A question may stay open for long, and other calls run meanwhile.
            now = facts_of(request, tool, self.grounds)
            if now.places != facts.places:
                return Verdict("denied", MOVED)
        return verdict

    def forbidden(self, request: PermissionRequest | None, tool: str) -> Verdict | None:
        """The denial of a call that a rule forbids, whoever else allows it; ``None`` where none does."""
        deny = self._rules().deny
        if not deny:
            return None
        facts = facts_of(request, tool, self.grounds) if request is not None else Facts("", tool)
        rule = forbids(deny, facts, self.grounds.anchor)
        return Verdict("denied", f"{DENIED_BY_RULE}: {rule}") if rule is not None else None

    def _is_allowed(self, request: PermissionRequest, facts: Facts, rules: Rules, guard: Guard) -> bool:
        if self.approve_all and not guard.in_person:
            return True
        if facts.protected or facts.kind == "hook":
            return False
        if facts.kind == "url" and self.grounds.any_host:
            return True
        if self.own.allow_reads and facts.kind in ("read", "url"):
            return True
        if facts.kind == "read" and facts.places and all(map(self._is_readable, facts.places)):
            return True
        kept = self._kept()
        approvals = [*self._approvals, *kept.approvals]
        allow = [*rules.allow, *self.own.added, *kept.rules]
        # With a scope, that the same programs were approved with other arguments says nothing.
        known = known_of(approvals) if facts.scope is None else Known()
        return covered(approvals, request, facts) or allows(allow, facts, self.grounds.anchor, known)

    def _is_readable(self, place: Place) -> bool:
        return any(Path(place.real).is_relative_to(folder) for folder in self.own.readable)

    def _rules(self) -> Rules:
        cwd = self.grounds.cwd()
        if self._laid_down is None or self._laid_down[0] != cwd:
            rules, problems = self._policy.rules(cwd)
            self._laid_down = cwd, rules
            for problem in problems:
                self._emit(events.SessionWarning(warning_type="permission", message=problem))
        return self._laid_down[1] + self.own.configured

    def _kept(self) -> Kept:
        """What was approved in other sessions; read each time, because it may have been taken back."""
        store = self._policy.store
        if store is None or self.own.forget_kept:
            return Kept()
        here, everywhere = store.read(self.location), store.read(None)
        return Kept([*here.approvals, *everywhere.approvals], here.rules)

    async def _opinion(self, request: PermissionRequest, facts: Facts, guard: Guard) -> AssistedApproval | None:
        if self.mode != "assisted" or self._judge is None:
            return None
        if facts.protected or facts.kind == "hook" or guard.in_person:
            return AssistedApproval(recommendation="excluded")
        return await self._judge(request, self.judging_model)

    # --- asking -------------------------------------------------------------------------------------------------

    async def _ask(self, request: PermissionRequest, facts: Facts, opinion: AssistedApproval | None) -> Verdict:
        async def settle(decision: PermissionDecision) -> PermissionDecision:
            return await self._remember(decision, request, facts)

        return verdict_of(await self.questions.ask(request, opinion, settle))

    async def _remember(
        self, decision: PermissionDecision, request: PermissionRequest, facts: Facts
    ) -> PermissionDecision:
        """Keep what was approved beyond this call; returns the decision as it came to be.

        Without an approval of the client's own, the narrowest one that covers the call again is meant. Where there
        is none that would be safe, the call alone is approved; so it is where a person has changed the call, for
        nobody has approved what the model sent.
        """
        if decision.kind not in _REMEMBERED:
            return decision
        once = decision.model_copy(update={"kind": "approve-once", "approval": None, "location_key": None})
        if decision.kind in ("approve-read-only-for-session", "approved-read-only-for-session"):
            folders = [place.real for one in decision.directories or () if (place := self.grounds.place(one))]
            if facts.kind != "read" or not folders:
                return once
            self.own.readable += [one for one in folders if one not in self.own.readable]
            return decision
        if decision.modified_args is not None and decision.approval is None:
            return once
        approval = decision.approval or (None if decision.domain else narrowest(request))
        kept = remember(approval, request, facts, decision.domain)
        if kept is None:
            return once
        self._approvals.append(kept)
        location = None
        if decision.kind == "approve-permanently":
            await self._keep(None, kept)
            return once
        if decision.kind in ("approve-for-location", "approved-for-location"):
            location = decision.location_key or self.location
            await self._keep(location, kept)
        if approval is None:
            # Hosts have no approval that the SDKs could read.
            return once
        return decision.model_copy(update={"approval": approval, "location_key": location})

    async def _keep(self, location: str | None, kept: Remembered) -> None:
        if self._policy.store is None:
            return
        try:
            await anyio.to_thread.run_sync(self._policy.store.add, location, kept, abandon_on_cancel=True)
        except StoreError as error:
            self._emit(
                events.SessionWarning(
                    warning_type="permission",
                    message=f"The approval holds for this session only, because it could not be kept: {error}",
                )
            )

    def _warn(self, because: str) -> None:
        if self._warned:
            return
        self._warned = True
        self._emit(
            events.SessionWarning(
                warning_type="permission",
                message=(
                    "A tool call was denied because no attached client handles permission requests."
                    f"{because}"
                    " Register a permission handler, or start the server with --yolo (configuration key"
                    " permissions.allow_unasked; permissions.allow_old_clients is the same for clients that speak"
                    " protocol 2) to allow such calls."
                ),
            )
        )

    # --- what clients change ------------------------------------------------------------------------------------

    @property
    def approve_all(self) -> bool:
        """Whether every call is allowed that no rule forbids, or wants a person to decide on."""
        return self.mode == "allow-all"

    def set_mode(self, mode: Mode, model: str | None = None) -> None:
        """Change how calls are decided on, and say so. ``model`` is the one that judges in ``assisted``."""
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
        """Whether there is a model to judge with."""
        return self._judge is not None

    @property
    def location(self) -> str:
        """The key that approvals for this location are kept under."""
        return self.own.location or self._policy.locate(self.grounds.cwd())

    def locate(self, folder: Path) -> str:
        """The key for another folder."""
        return self._policy.locate(folder)

    def reset(self, *, kept_too: bool = False) -> None:
        """Forget what was approved for the session; with ``kept_too``, no longer heed what others have approved."""
        self._approvals.clear()
        self.own.added.clear()
        self.own.readable.clear()
        self.own.forget_kept = self.own.forget_kept or kept_too

    def reload(self) -> None:
        """Read the rules of the working directory again when they are needed next."""
        self._laid_down = None

    def apply_location(self, folder: Path) -> tuple[bool, list[Rule]]:
        """Heed what was approved for another location; returns whether it is another one, and its rules."""
        key = self._policy.locate(folder)
        changed = self.own.location != key or self.own.forget_kept
        self.own.location, self.own.forget_kept = key, False
        kept = self._policy.store.read(key) if self._policy.store else Kept()
        return changed, [*kept.rules, *(rule for one in kept.approvals for rule in one.rules())]

    async def add_location_approval(self, location: str, kept: Remembered) -> None:
        """Approve something for a location, and for this session.

        Raises:
            StoreError: it cannot be kept.
        """
        if self._policy.store is not None:
            await anyio.to_thread.run_sync(self._policy.store.add, location, kept)
        self._approvals.append(kept)

    async def change_rules(self, scope: str, add: list[Rule], remove: list[Rule], *, remove_all: bool) -> None:
        """Change what is allowed for the session or for its location; of approvals, only removal is meant.

        Raises:
            StoreError: it cannot be kept.
        """
        if scope == "location":
            if self._policy.store is not None:
                change = partial(self._policy.store.change_rules, remove_all=remove_all)
                await anyio.to_thread.run_sync(change, self.location, add, remove)
        else:
            known = [] if remove_all else [*self.own.added, *add]
            self.own.added = [rule for rule in dict.fromkeys(known) if rule not in remove]
        if remove_all:
            self._approvals.clear()
        self._approvals = [one for one in self._approvals if not any(rule in remove for rule in one.rules())]


def _who_wants_a_person(rule: Rule | None, tool: str, guard: Guard) -> str:
    if rule is not None:
        return f" The rule {rule} wants a person to decide."
    return f" The tool {tool} wants a person to decide, or a rule that allows it." if guard.in_person else ""


def _show_where_it_leads(request: PermissionRequest, facts: Facts) -> None:
    """Tell who decides of a path that is another one by a link."""
    if isinstance(request, ReadPermission | WritePermission):
        (place,) = facts.places or (None,)
        request.resolved_path = place.real if place is not None and place.real != place.given else None
