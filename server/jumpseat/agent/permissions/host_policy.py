"""The policies that hosts set for a session: ``managedSettings`` of ``session.create`` and ``session.resume``.

They are above everything else that decides about a call. Their rules have a syntax of their own: a selector
(``Shell``, ``Read``, ``Edit``, ``Domain``) with a command, a path or a host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from jumpseat.agent.permissions.rule_index import RuleIndex
from jumpseat.agent.permissions.rules import (
    MAX_RULE_CHARS,
    Facts,
    Rule,
    RulePatterns,
    Rules,
    allows,
    host_of,
)
from jumpseat.agent.settings import HostPolicy
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol.events import SessionManagedSettingsResolved
from jumpseat_protocol.permissions import PermissionRequest, UrlPermission
from jumpseat_protocol.sessions import ManagedPermissions

UNLISTED: Final = "managedSettings.permissions.allow"
"""The reason for a question about a call that the policy does not list."""

MOST_RULES: Final = 1000
"""Limit on the rules of one effect: each call is matched against all of them."""

_SELECTORS: Final[Mapping[str, str]] = {
    "shell": "shell",
    "bash": "shell",
    "powershell": "shell",
    "read": "read",
    "edit": "write",
    "write": "write",
    "domain": "url",
}
_RULE: Final = re.compile(r"([A-Za-z]+)(?:\((.*)\))?", re.DOTALL)


def rules_of(policy: HostPolicy) -> Rules:
    """Return the rules of a policy.

    Raises:
        InvalidRequestError: a rule is invalid, or is one that cannot be enforced.
    """
    given = policy.permissions
    parsed: dict[str, tuple[Rule, ...]] = {}
    for effect, texts in (("deny", given.deny), ("ask", given.ask), ("allow", given.allow or ())):
        try:
            if len(texts) > MOST_RULES:
                raise ValueError(f"{len(texts)} rules, expected at most {MOST_RULES}")
            allowing = effect == "allow"
            parsed[effect] = tuple(rule for text in texts for rule in _parse(text, policy, allowing=allowing))
        except ValueError as error:
            raise InvalidRequestError(f"managedSettings.permissions.{effect}: {error}") from None
    return Rules(**parsed)


def _parse(text: str, policy: HostPolicy, *, allowing: bool) -> list[Rule]:
    found = _RULE.fullmatch(text.strip()) if len(text) <= MAX_RULE_CHARS else None
    kind = _SELECTORS.get(found[1].casefold()) if found is not None else None
    if found is None or kind is None:
        raise ValueError(
            f"invalid rule {text[:100]!r}: expected Shell, Read, Edit or Domain, as in Shell(git push *)"
        )
    argument = found[2].strip() if found[2] is not None else "*"
    match kind:
        case "shell":
            return [_shell_rule(text, argument)]
        case "url":
            return _host_rules(text, argument, allowing=allowing)
        case _:
            return [_path_rule(text, Rule(kind, argument), policy, allowing=allowing)]


def _path_rule(text: str, rule: Rule, policy: HostPolicy, *, allowing: bool) -> Rule:
    pattern = rule.argument or ""
    if not pattern or re.search(r"[\[\]{}]|^!", pattern):
        raise ValueError(f"invalid rule {text[:100]!r}: expected a path, in which only * ** and ? are wildcards")
    if pattern.startswith("//"):
        path = pattern[1:]
    elif pattern.startswith("/"):
        path = f"{policy.root}{pattern}"
    elif pattern.startswith("~/"):
        path = pattern
    elif pattern.startswith("./"):
        path = f"{policy.cwd}{pattern[1:]}"
    else:
        # The rule does not say where such a path begins: one that forbids applies in every folder.
        pattern = "**" if pattern == "*" else pattern
        path = f"{policy.root}/{pattern}" if allowing else f"/**/{pattern}"
    return Rule(rule.kind, path)


def _shell_rule(text: str, argument: str) -> Rule:
    if argument.endswith(":*"):
        argument = f"{argument.removesuffix(':*')} *"
    command = argument.removesuffix("*").rstrip()
    if "*" in command or (command and argument.endswith("*") and not argument.endswith(" *")):
        raise ValueError(
            f"invalid rule {text[:100]!r}: expected a command, or the beginning of one with ' *' after it"
        )
    if not argument:
        raise ValueError(f"invalid rule {text[:100]!r}: expected a command in the parentheses")
    return Rule("shell", argument, exact=True) if command else Rule("shell")


def _host_rules(text: str, argument: str, *, allowing: bool) -> list[Rule]:
    if argument == "*":
        return [Rule("url")]
    name = argument.removeprefix("*.")
    host = host_of(name)
    if host is None or "*" in host or (allowing and host != name.casefold()):
        raise ValueError(f"invalid rule {text[:100]!r}: expected a host, or *. and a host for its subdomains, too")
    return [Rule("url", host), *([Rule("url", f"*.{host}")] if argument.startswith("*.") else ())]


class EnforcedPolicy(Struct, frozen=True):
    """All policies of a session together: each restricts, and what all of them allow is allowed.

    ``allowed`` are the rules of each host that lists what is allowed.
    """

    policies: tuple[HostPolicy, ...] = ()
    deny: RuleIndex = RuleIndex(())
    ask: RuleIndex = RuleIndex(())
    allowed: tuple[RuleIndex, ...] = ()
    bypass_disabled: bool = False
    assisted_disabled: bool = False

    def denies(self, facts: Facts, patterns: RulePatterns) -> Rule | None:
        """Return the rule that forbids a call; ``None`` if none does."""
        return self.deny.first_match(facts, patterns)

    def wants_person(self, request: PermissionRequest, facts: Facts, patterns: RulePatterns) -> str | None:
        """Return the rule by which a person has to decide about each such call; ``None`` if there is none."""
        # Imported with the first policy.
        from jumpseat.agent.permissions.true_names import first_copy

        rule = (
            self.ask.first_match(facts, patterns)
            or self.deny.first_possible_match(facts, patterns)
            or self.ask.first_possible_match(facts, patterns)
            or first_copy(self.ask.shell, facts)
        )
        if rule is not None:
            return str(rule)
        listed = facts.kind not in _SELECTORS.values() or not self.allowed or self.allows(request, facts, patterns)
        return None if listed else UNLISTED

    def allows(self, request: PermissionRequest, facts: Facts, patterns: RulePatterns) -> bool:
        """Return whether the policy allows a call without a question."""
        if not self.allowed or (isinstance(request, UrlPermission) and not _is_https(request.url)):
            return False
        return all(allows(rules.relevant(facts, patterns), facts, patterns) for rules in self.allowed)

    def announcement(self) -> SessionManagedSettingsResolved:
        """Return the event that tells clients what is enforced."""
        every = [policy.permissions for policy in self.policies]
        lists = [permissions.allow for permissions in every if permissions.allow is not None]
        permissions = ManagedPermissions(
            deny=list(dict.fromkeys(rule for one in every for rule in one.deny)),
            ask=list(dict.fromkeys(rule for one in every for rule in one.ask)),
            allow=[rule for rule in lists[0] if all(rule in other for other in lists)] if lists else None,
            disable_bypass_permissions_mode="disable" if self.bypass_disabled else None,
            disable_assisted_permissions_mode=self.assisted_disabled,
        )
        return SessionManagedSettingsResolved(
            source="client" if every else "none",
            managed_keys=["permissions"] if every else [],
            settings={"permissions": permissions.wire()} if every else None,
            bypass_permissions_disabled=self.bypass_disabled,
            client_managed=bool(every),
            permissions_allow_intersected=len(lists) > 1,
        )


def _is_https(url: str) -> bool:
    """Return whether a URL has the origin that the host of a rule stands for."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        return parts.scheme == "https" and parts.port in (None, 443)
    except ValueError:
        return False


def is_wholesale(rule: Rule) -> bool:
    """Return whether a rule allows whatever a server offers, any tool, or all commands in a sandbox."""
    match rule.kind:
        case "mcp":
            return not (rule.argument or "").partition(":")[2].strip("*")
        case "tool":
            return not (rule.argument or "").strip("*?")
        case kind:
            return kind == "sandboxed"


def enforced(policies: Sequence[HostPolicy]) -> EnforcedPolicy:
    """Combine the policies of all hosts of a session.

    Raises:
        InvalidRequestError: a rule is invalid, or is one that cannot be enforced.
    """
    restricting = Rules()
    allowed: list[RuleIndex] = []
    for policy in policies:
        rules = rules_of(policy)
        restricting += Rules(ask=rules.ask, deny=rules.deny)
        if policy.permissions.allow is not None:
            allowed.append(RuleIndex(rules.allow))
    every = [policy.permissions for policy in policies]
    return EnforcedPolicy(
        tuple(policies),
        RuleIndex(restricting.deny),
        RuleIndex(restricting.ask),
        tuple(allowed),
        any(one.disable_bypass_permissions_mode is not None for one in every),
        any(one.disable_assisted_permissions_mode for one in every),
    )
