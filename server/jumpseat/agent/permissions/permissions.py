"""Decide whether the tool calls of one session may run: by rules and approvals, then by a judging model, then by a
person.

Denied by default: a call that nothing allows, and that no attached client can be asked about, does not run. One
warning per session names the setting that would allow it.

:mod:`jumpseat.agent.permissions.session_approvals` keeps the approvals.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from jumpseat.agent.observation import Observers
from jumpseat.agent.permissions.approvals import (
    ApprovalStore,
    StoredApprovals,
    approved_commands,
    covers,
    has_changed,
)
from jumpseat.agent.permissions.judge import JudgeConfig
from jumpseat.agent.permissions.paths import PathScope, PatternsOfRules
from jumpseat.agent.permissions.questions import (
    ALLOWED,
    ALLOWED_INSIDE,
    APPROVED,
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
    RulePatterns,
    Rules,
    allows,
    first_match,
    first_possible_match,
    shows_only,
)
from jumpseat.agent.permissions.session_approvals import SessionApprovals
from jumpseat.agent.settings import HostPolicy
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol import events
from jumpseat_protocol.permissions import (
    AssistedApproval,
    PermissionDecision,
    PermissionRequest,
    ReadPermission,
    ShellPermission,
    UrlPermission,
    WritePermission,
)

if TYPE_CHECKING:
    # Few sessions have one.
    from jumpseat.agent.permissions.host_policy import EnforcedPolicy

MOVED: Final = (
    "The path now resolves to a different location than when permission was requested. Send the call again."
)

UNKNOWN_PROGRAM: Final = "The host's policy forbids programs, and what this line starts cannot be known"

MAX_AT_ONCE_CHARS: Final = 64 * 1024
"""Limit of a text whose characters are examined on the event loop; a longer one takes a thread."""

Mode: TypeAlias = Literal["manual", "assisted", "sandboxed", "allow-all"]

_ESCALATIONS: Final[Mapping[Mode, events.PermissionEscalation]] = {
    "allow-all": "allow_all",
    "sandboxed": "approve_all",
    "assisted": "assisted_approval",
}
"""The modes that a host's policy may forbid."""


class ApprovalLimits(Struct, frozen=True):
    """Restrictions that a tool puts on the approval of one of its calls.

    With ``needs_person``, neither a mode nor a model can allow the call; an approval, a rule or a person must.
    ``scope`` is a text that stands for what the call does: a lasting approval of the call covers only calls with
    the same text. With ``once``, no approval and no rule allows the call, and an approval of it does not last.
    """

    needs_person: bool = False
    scope: str | None = None
    once: bool = False


UNGUARDED: Final = ApprovalLimits()

Judge: TypeAlias = Callable[[PermissionRequest, str | None], Awaitable[AssistedApproval]]
"""Asks a model for its opinion of a request: the named model, or the default one. Never raises."""


class Policy(Struct, frozen=True):
    """Permission settings from outside of the session.

    ``rules`` returns the rules of a working directory, and warnings about them for the user. ``location_key``
    returns the key of a folder in ``approval_store``: the location that approvals are stored for. ``guarded`` are
    folders that no rule and no approval may open for writing. With a ``judge``, sessions start in the mode
    ``assisted``. ``is_trusted`` returns whether the user trusts a folder.
    """

    rules: Callable[[Path], tuple[Rules, list[str]]] = lambda _cwd: (Rules(), [])
    location_key: Callable[[Path], str] = str
    approval_store: ApprovalStore | None = None
    guarded: tuple[Path, ...] = ()
    judge: JudgeConfig | None = None
    is_trusted: Callable[[Path], bool] = lambda _folder: False


class Permissions:
    """The permission state of one session.

    ``emit`` publishes events. ``can_ask`` returns whether an attached client handles permission requests,
    ``may_run_unasked`` whether the operator allows a call that no client can be asked about (``--yolo``).
    ``host_policies`` returns the policies of the session's hosts, which are above all else. ``since`` is when the
    session began, in seconds since the epoch; now by default.
    """

    def __init__(
        self,
        emit: Callable[[events.EventPayload], object],
        can_ask: Callable[[], bool],
        may_run_unasked: Callable[[PermissionRequest], bool],
        path_scope: PathScope | None = None,
        policy: Policy | None = None,
        judge: Judge | None = None,
        observers: Observers | None = None,
        session_id: str = "",
        host_policies: Callable[[], Sequence[HostPolicy]] = tuple,
        since: float | None = None,
    ) -> None:
        self._emit = emit
        self._host_policies = host_policies
        self._since = time.time() if since is None else since
        self._enforced: EnforcedPolicy | None = None
        self._resolved: tuple[Facts, RulePatterns] | None = None
        self._can_ask = can_ask
        self._may_run_unasked = may_run_unasked
        self._policy = policy or Policy()
        self._judge = judge
        self.path_scope = path_scope or PathScope(Path.cwd)
        self.approvals = SessionApprovals(
            emit, self.path_scope, self._policy.approval_store, self._policy.location_key
        )
        self.mode: Mode = "assisted" if judge is not None and self._policy.judge is not None else "manual"
        self.judging_model: str | None = None
        self.judging_instructions = ""
        self.questions = PermissionQuestions(emit, observers, session_id)
        self._warned = False
        self._policy_rules: tuple[Path, Rules] | None = None

    # --- deciding ------------------------------------------------------------------------------------------------

    async def facts_of(self, request: PermissionRequest, tool: str) -> Facts:
        """Gather the facts of a call of ``tool`` in a thread, because disks may be slow."""
        return await anyio.to_thread.run_sync(_gather_facts, request, tool, self.path_scope, abandon_on_cancel=True)

    async def decide(
        self,
        request: PermissionRequest,
        tool: str = "",
        guard: ApprovalLimits = UNGUARDED,
        facts: Facts | None = None,
        asking: str | None = None,
        calls_behind: int = 0,
    ) -> Verdict:
        """Decide whether one call of ``tool`` may run; waits without limit for a client that is asked.

        ``facts`` are those of the request, and are gathered here by default. ``asking`` is a rule by which a person
        has to decide, if the request does not show it by itself. ``calls_behind`` is the number of calls of the
        same answer that wait for the decision, which people are told.
        """
        if facts is None:
            facts = _gather_facts(request, tool, self.path_scope)
        if guard.scope is not None:
            facts = replace(facts, scope=guard.scope)
        elif isinstance(request, ShellPermission) and request.sandboxed is False and not shows_only(facts.segments):
            # Approvals cover such a command only as a whole, unless it only looks.
            facts = replace(facts, scope=request.full_command_text)
        # Imported here: no call has to be judged before the first prompt.
        from jumpseat.agent.permissions.disclosure import disclose

        if _chars(request) > MAX_AT_ONCE_CHARS:
            await anyio.to_thread.run_sync(disclose, request, facts)
        else:
            disclose(request, facts)
        rules, patterns, opinion = self._rules(), self._patterns(facts), None
        if (denial := self.denial_by_rule(facts)) is not None:
            return denial
        managed = self.wants_person(request, facts)
        if managed is not None:
            request.managed_approval_required = True
        rule = managed or asking or _asking_rule(rules, facts, patterns)
        if rule is None:
            if (allowed := self._allowed_by(request, facts, rules, guard)) is not None:
                return allowed
            if _stays_inside(request) and self._trusts_sandbox(rules) and not guard.needs_person:
                return ALLOWED_INSIDE
            if _stays_inside(request) and self._allowed_by(request, facts, rules, guard, inside=True) is not None:
                return ALLOWED_INSIDE
            opinion = await self._opinion(request, facts, guard)
            if opinion is not None and opinion.recommendation == "approve":
                self.questions.publish_resolved(request, PermissionDecision(kind="approved"), opinion)
                return replace(ALLOWED, by="judge")
        if not self._can_ask():
            yolo = not self._bypass_disabled
            if rule is None and yolo and not guard.needs_person and self._may_run_unasked(request):
                return replace(ALLOWED, by="operator")
            self._warn_denied_unasked(_why_a_person_is_needed(rule, tool, guard, facts))
            return verdict_of(NOT_AVAILABLE)
        self._warn_changed(facts)
        verdict = await self._ask(request, facts, opinion, calls_behind, once=guard.once)
        if verdict.status == "allowed" and verdict.arguments is None and request.kind in ("read", "write"):
            # The question may have been open for a long time, while other calls ran and changed links.
            now = _gather_facts(request, tool, self.path_scope)
            if now.paths != facts.paths:
                return Verdict("denied", MOVED)
        return verdict

    def denial_by_rule(self, facts: Facts) -> Verdict | None:
        """Return the denial of a call that a rule forbids, which nothing can overrule; ``None`` if no rule does."""
        if (denial := self._denial_by_host(facts)) is not None:
            return denial
        patterns = self._patterns(facts)
        rule = first_match(self._rules().deny, facts, patterns) or _first_copy(self._rules().deny, facts)
        if rule is None:
            return None
        return Verdict("denied", f"{DENIED_BY_RULE}: {rule}", by="rule", reason=str(rule))

    def _denial_by_host(self, facts: Facts) -> Verdict | None:
        if (policy := self.host_policy) is None:
            return None
        # Imported with the first policy.
        from jumpseat.agent.permissions.true_names import first_copy, first_doubt

        rule = policy.denies(facts, self._patterns(facts)) or first_copy(policy.deny.shell, facts)
        if rule is not None:
            return Verdict("denied", f"{DENIED_BY_RULE} of the host's policy: {rule}", by="rule")
        if (doubt := first_doubt(policy.deny.shell, facts, self.path_scope, self._since)) is not None:
            return Verdict("denied", f"{UNKNOWN_PROGRAM}: {doubt}", by="rule")
        return None

    def check_host_policy(self, request: PermissionRequest) -> None:
        """Check that no host's policy forbids what a user wants. Their own rules are about the model.

        Raises:
            InvalidRequestError: a policy forbids it.
        """
        if self.host_policy is None:
            return
        if (denial := self._denial_by_host(_gather_facts(request, "", self.path_scope))) is not None:
            raise InvalidRequestError(denial.message)

    async def check_rules(self, request: PermissionRequest, tool: str) -> None:
        """Check a call of ``tool`` that neither the model nor a person makes.

        Raises:
            InvalidRequestError: a rule forbids it, or wants a person to decide.
        """
        facts = await self.facts_of(request, tool)
        if (denial := self.denial_by_rule(facts)) is not None:
            raise InvalidRequestError(denial.message)
        if (rule := self.asking_rule(request, facts)) is not None:
            raise InvalidRequestError(f"a person has to decide about it, by the rule {rule}")

    def wants_person(self, request: PermissionRequest, facts: Facts) -> str | None:
        """Return the rule of a host by which a person has to decide about each such call; ``None`` without one.

        Neither a hook, a mode nor an earlier approval takes the place of the person.
        """
        policy = self.host_policy
        return policy.wants_person(request, facts, self._patterns(facts)) if policy is not None else None

    def asking_rule(self, request: PermissionRequest, facts: Facts) -> str | None:
        """Return the rule, of a host or of the user, by which a person has to decide about a call."""
        return self.wants_person(request, facts) or _asking_rule(self._rules(), facts, self._patterns(facts))

    async def allows_unasked(self, request: PermissionRequest, tool: str) -> bool:
        """Return whether rules, approvals or the operator allow a call of ``tool`` without a question."""
        facts = await self.facts_of(request, tool)
        rules = self._rules()
        if self.denial_by_rule(facts) is not None or self.asking_rule(request, facts) is not None:
            return False
        if self._allowed_by(request, facts, rules, UNGUARDED) is not None:
            return True
        return not self._can_ask() and not self._bypass_disabled and self._may_run_unasked(request)

    def _allowed_by(
        self, request: PermissionRequest, facts: Facts, rules: Rules, guard: ApprovalLimits, *, inside: bool = False
    ) -> Verdict | None:
        """Return the verdict of what allows a call without a question; ``None`` if nothing does.

        With ``inside``, approvals also cover commands that are like the approved ones, which must not leave the
        sandbox.
        """
        if self.approve_all and not guard.needs_person:
            return Verdict("allowed", by="mode", reason=self.mode)
        if facts.protected or facts.kind == "hook" or guard.once or not self._knows_programs(facts):
            return None
        policy = self.host_policy
        if policy is not None and policy.allows(request, facts, self._patterns(facts)):
            return Verdict("allowed", by="rule", reason="the host's policy")
        if facts.kind == "url" and self.path_scope.any_host:
            return APPROVED
        if self.approvals.rules.allow_reads and facts.kind in ("read", "url"):
            return APPROVED
        if facts.kind == "read" and facts.paths and all(map(self._is_readable, facts.paths)):
            return APPROVED
        current = self._current_approvals(facts)
        if covers(current.approvals, request, facts):
            return APPROVED
        if isinstance(request, ShellPermission) and request.request_sandbox_bypass:
            return None
        # With a scope, approvals of the same commands with other arguments do not count.
        commands = approved_commands(current.approvals) if facts.scope is None else ApprovedCommands()
        if isinstance(request, ShellPermission) and request.sandboxed is False and facts.scope is None:
            commands = commands.with_alike(facts)
        commands = commands.inside(facts) if inside else commands
        allowing = [*self._lasting(rules.allow), *current.rules]
        patterns = self._patterns(facts)
        if not allows(allowing, facts, patterns, commands):
            return None
        if not allows(allowing, facts, patterns):
            # Rules alone do not cover the command.
            return APPROVED
        return Verdict("allowed", by="rule", reason=_covering_rule(allowing, facts, patterns))

    def _knows_programs(self, facts: Facts) -> bool:
        """Return whether a person has approved a command beside the programs that git would run for this one."""
        return not facts.git_mark or any(
            facts.git_mark in record.anchors for record in self.approvals.current().approvals
        )

    def _current_approvals(self, facts: Facts) -> StoredApprovals:
        current = self.approvals.current()
        if facts.files_mark:
            # The others were given when the project had other files.
            records = [record for record in current.approvals if facts.files_mark in record.anchors]
            current = StoredApprovals(records, current.rules)
        if self._bypass_disabled:
            records = [record for record in current.approvals if not record.of_whole_server]
            return StoredApprovals(records, self._lasting(current.rules))
        return current

    def _lasting(self, rules: Sequence[Rule]) -> list[Rule]:
        """Return the allow rules that count: all, unless a host forbids approving wholesale."""
        if not self._bypass_disabled:
            return [*rules]
        from jumpseat.agent.permissions.host_policy import is_wholesale

        return [rule for rule in rules if not is_wholesale(rule)]

    def _trusts_sandbox(self, rules: Rules) -> bool:
        """Return whether commands run unasked as long as they are confined: by the mode, or by a rule."""
        if self._bypass_disabled:
            return False
        allow = (*rules.allow, *self.approvals.current().rules)
        return self.mode == "sandboxed" or any(rule.kind == "sandboxed" for rule in allow)

    def _is_readable(self, path: ResolvedPath) -> bool:
        return any(Path(path.real).is_relative_to(folder) for folder in self.approvals.rules.readable)

    def _patterns(self, facts: Facts) -> RulePatterns:
        """Return the patterns of path rules, which are resolved once for the decisions about one call."""
        if self._resolved is None or self._resolved[0] is not facts:
            self._resolved = facts, PatternsOfRules(self.path_scope.cwd())
        return self._resolved[1]

    def _rules(self) -> Rules:
        cwd = self.path_scope.cwd()
        if self._policy_rules is None or self._policy_rules[0] != cwd:
            rules, problems = self._policy.rules(cwd)
            self._policy_rules = cwd, rules
            for problem in problems:
                self._emit(events.SessionWarning(warning_type="permission", message=problem))
        return self._policy_rules[1] + self.approvals.rules.configured

    async def _opinion(
        self, request: PermissionRequest, facts: Facts, guard: ApprovalLimits
    ) -> AssistedApproval | None:
        if self.mode != "assisted" or self._judge is None:
            return None
        bypass = isinstance(request, ShellPermission) and request.request_sandbox_bypass
        known = self._knows_programs(facts)
        if facts.protected or facts.kind == "hook" or guard.needs_person or guard.once or bypass or not known:
            return AssistedApproval(recommendation="excluded")
        return await self._judge(request, self.judging_model)

    # --- asking -------------------------------------------------------------------------------------------------

    async def _ask(
        self, request: PermissionRequest, facts: Facts, opinion: AssistedApproval | None, behind: int, *, once: bool
    ) -> Verdict:
        async def settle(decision: PermissionDecision) -> PermissionDecision:
            if once or request.managed_approval_required:
                return self.approvals.once(decision)
            return await self.approvals.keep(decision, request, facts)

        return verdict_of(await self.questions.ask(request, opinion, settle, behind))

    def _warn_changed(self, facts: Facts) -> None:
        """Emit the reason why a person is asked again about an MCP tool that was approved before."""
        if has_changed(self.approvals.current().approvals, facts):
            from jumpseat_protocol.visible import on_one_line

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
        """Warn once per session that a call was denied because no client could be asked."""
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
        return self.mode == "allow-all" and not self._bypass_disabled

    def set_mode(self, mode: Mode, model: str | None = None) -> None:
        """Set the mode and publish the change. ``model`` judges calls in the mode ``assisted``.

        Raises:
            InvalidRequestError: a host's policy forbids the mode.
        """
        if mode in _ESCALATIONS:
            self.check_escalation(_ESCALATIONS[mode])
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
    def host_policy(self) -> EnforcedPolicy | None:
        """The policies of the session's hosts, combined; ``None`` if there is none."""
        policies = self._host_policies()
        if not policies:
            return None
        if self._enforced is None or self._enforced.policies != tuple(policies):
            from jumpseat.agent.permissions.host_policy import enforced

            self._enforced = enforced(policies)
        return self._enforced

    @property
    def _bypass_disabled(self) -> bool:
        policy = self.host_policy
        return policy is not None and policy.bypass_disabled

    def check_escalation(self, escalation: events.PermissionEscalation) -> None:
        """Check that no host's policy forbids approving calls wholesale in the way ``escalation``.

        Raises:
            InvalidRequestError: a policy forbids it.
        """
        policy = self.host_policy
        if policy is None:
            return
        if escalation == "assisted_approval" and policy.assisted_disabled:
            setting = "permissions.disableAssistedPermissionsMode"
        elif escalation != "assisted_approval" and policy.bypass_disabled:
            setting = "permissions.disableBypassPermissionsMode"
        else:
            return
        message = f"{setting} of the host's policy forbids it: {escalation}"
        self._emit(events.SessionManagedSettingsEnforced(setting=setting, escalation=escalation, message=message))
        raise InvalidRequestError(message)

    def follow_host_policy(self) -> None:
        """Announce the policies of hosts, if there are any, and leave the modes that they forbid."""
        policy = self.host_policy
        if policy is None:
            return
        self._emit(policy.announcement())
        if policy.bypass_disabled:
            self.path_scope.any_host = self.path_scope.unrestricted = self.approvals.rules.allow_reads = False
        if (policy.bypass_disabled and self.mode in ("allow-all", "sandboxed")) or (
            policy.assisted_disabled and self.mode == "assisted"
        ):
            self.set_mode("manual")

    def reload_rules(self) -> None:
        """Read the rules of the working directory again at the next call."""
        self._policy_rules = None


def _stays_inside(request: PermissionRequest) -> bool:
    """Return whether the request is for a command that is confined."""
    return isinstance(request, ShellPermission) and bool(request.sandboxed) and not request.request_sandbox_bypass


def _chars(request: PermissionRequest) -> int:
    """Return the length of the text that a question about a call shows."""
    match request:
        case WritePermission():
            return len(request.diff) + len(request.file_name)
        case ShellPermission():
            return len(request.full_command_text)
        case ReadPermission():
            return len(request.path)
        case UrlPermission():
            return len(request.url)
        case _:
            return 0


def _covering_rule(rules: Sequence[Rule], facts: Facts, patterns: RulePatterns) -> str:
    """Return the first rule that allows the whole call; empty if it takes several together."""
    return next((str(rule) for rule in rules if allows([rule], facts, patterns)), "")


def _first_copy(rules: Sequence[Rule], facts: Facts) -> Rule | None:
    """Return the first rule whose program a line runs under another name, or names by its path."""
    if not any(rule.kind == "shell" for rule in rules):
        return None
    from jumpseat.agent.permissions.true_names import first_copy

    return first_copy(rules, facts)


def _asking_rule(rules: Rules, facts: Facts, patterns: RulePatterns) -> str | None:
    """Return the rule by which a person has to decide about a call; ``None`` if there is none."""
    rule = (
        first_match(rules.ask, facts, patterns)
        or first_possible_match(rules.deny + rules.ask, facts, patterns)
        or _first_copy(rules.ask, facts)
    )
    return None if rule is None else str(rule)


def _why_a_person_is_needed(rule: str | None, tool: str, guard: ApprovalLimits, facts: Facts) -> str:
    if rule is not None:
        return f" The rule {rule} requires a person to decide."
    if facts.git_programs:
        return " Git may run programs that the repository names, and its folder is not trusted."
    return f" The tool {tool} requires a person to decide, or a rule that allows it." if guard.needs_person else ""


def _gather_facts(request: PermissionRequest, tool: str, scope: PathScope) -> Facts:
    # Imported here: the parser of shell commands is needed with the first call.
    from jumpseat.agent.permissions.facts import gather_facts

    return gather_facts(request, tool, scope)
