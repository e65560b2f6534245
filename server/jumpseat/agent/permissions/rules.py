"""Rules on what may be done: what they say, and whether they match. Pure: nothing is looked up here.

A rule is a kind and an argument, written ``shell(git status)``. The two directions are judged differently. What
forbids (deny, ask) matches on every sign that the call may do it; what allows matches only where the call as a
whole, every part of it, does nothing else. What cannot be told apart is neither forbidden nor allowed: it is asked
about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from jumpseat.agent.shell.reach import Mention
from jumpseat.agent.shell.syntax import ShellSegment

Effect: TypeAlias = Literal["allow", "ask", "deny"]

KINDS: Final = ("shell", "read", "write", "url", "mcp", "memory", "custom-tool", "tool")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. ``base`` is what a relative path in it is relative to; empty: where the session works."""

    kind: str
    argument: str | None = None
    base: str = ""

    def __str__(self) -> str:
        return self.kind if self.argument is None else f"{self.kind}({self.argument})"


def parse_rule(text: str, base: str = "") -> Rule:
    """The rule that ``text`` writes down.

    Raises:
        ValueError: it is none; the text says what was expected.
    """
    found = _RULE.fullmatch(text.strip())
    if found is None or found[1] not in KINDS:
        raise ValueError(f"{text[:100]!r} is no rule: expected one of {', '.join(KINDS)}, as in shell(git status)")
    argument = found[2].strip() if found[2] is not None else None
    if argument == "" or (found[1] == "tool" and argument is None):
        raise ValueError(f"{text[:100]!r} is no rule: expected something between the parentheses")
    return Rule(found[1], argument, base)


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules by what they do. Deny wins over ask, and ask over allow."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    def __add__(self, other: Rules) -> Rules:
        return Rules(self.allow + other.allow, self.ask + other.ask, self.deny + other.deny)


@dataclass(frozen=True, slots=True)
class Place:
    """A path that a call touches: as it is ``given`` (absolute, without dots), and where it ``real``ly leads."""

    given: str
    real: str
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What a call would do, as far as is known before it runs.

    ``places`` are read, or written where ``writes`` says so; ``outside`` are those out of the folders the session
    may use. With ``any_host``, ``hosts`` need no allowance. ``opaque`` says that more may be run than is
    ``mentioned``, ``loose`` that more may be opened or loaded than is known. ``protected``: it may change what
    decides about later calls, so a person is to allow it. ``scope`` is the text that approvals hold for where they
    are not to hold for all calls of the tool.
    """

    kind: str
    tool: str
    segments: tuple[ShellSegment, ...] = ()
    mentioned: tuple[Mention, ...] = ()
    places: tuple[Place, ...] = ()
    outside: tuple[Place, ...] = ()
    hosts: tuple[str, ...] = ()
    any_host: bool = False
    server: str | None = None
    name: str | None = None
    writes: bool = False
    opaque: bool = False
    loose: bool = False
    protected: bool = False
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What people have approved of commands before: identifiers, real paths outside, and hosts."""

    identifiers: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()


NOTHING: Final = Known()

Anchor: TypeAlias = Callable[[Rule], Sequence[str]]
"""The absolute patterns that a path rule stands for: as written, and with its links followed."""


def forbids(rules: Iterable[Rule], facts: Facts, anchor: Anchor) -> Rule | None:
    """The first of ``rules`` that the call shows any sign of matching."""
    return next((rule for rule in rules if _shows(rule, facts, anchor)), None)


def may_touch(rules: Iterable[Rule], facts: Facts, anchor: Anchor) -> Rule | None:
    """The first of ``rules`` that the call might match though nothing shows it: it cannot go on unasked."""
    return next((rule for rule in rules if _hides(rule, facts, anchor)), None)


def allows(rules: Sequence[Rule], facts: Facts, anchor: Anchor, known: Known = NOTHING) -> bool:
    """Whether ``rules``, and of a command what is ``known``, together allow all that the call would do."""
    if any(rule.kind == "tool" and _tool(rule, facts) for rule in rules):
        return True
    same = [rule for rule in rules if rule.kind == facts.kind]
    match facts.kind:
        case "shell":
            return _allows_shell(rules, facts, anchor, known)
        case "read" | "write":
            return bool(facts.places) and all(_place_allowed(same, one, facts, anchor) for one in facts.places)
        case "url":
            return bool(facts.hosts) and all(any(_host(rule, host) for rule in same) for host in facts.hosts)
        case "mcp":
            return any(_mcp(rule, facts) for rule in same)
        case "custom-tool":
            return any(rule.argument is None or _name(rule, facts) for rule in same)
        case "memory":
            return bool(same)
        case _:
            # A hook that asks is answered by a person.
            return False


def _allows_shell(rules: Sequence[Rule], facts: Facts, anchor: Anchor, known: Known) -> bool:
    same = [rule for rule in rules if rule.kind == "shell"]
    if any(rule.argument is None for rule in same):
        return True
    if not facts.segments or not all(
        one.command.identifier in known.identifiers or any(_segment(rule, one) for rule in same)
        for one in facts.segments
    ):
        return False
    wide = [rule for rule in same if _is_wide(rule)]
    if all(any(_segment(rule, one) for rule in wide) for one in facts.segments):
        return True
    if facts.loose:
        return False
    # What a command touches besides running must be allowed as well: places outside, and hosts.
    only_reads = all(one.command.read_only for one in facts.segments)
    kinds = ("read", "write") if only_reads else ("write",)
    path_rules = [rule for rule in rules if rule.kind in kinds and rule.argument is not None]
    url_rules = [rule for rule in rules if rule.kind == "url"]
    return all(
        place.real in known.places or _place_allowed(path_rules, place, facts, anchor) for place in facts.outside
    ) and (
        facts.any_host
        or all(host in known.hosts or any(_host(rule, host) for rule in url_rules) for host in facts.hosts)
    )


def _place_allowed(rules: Iterable[Rule], place: Place, facts: Facts, anchor: Anchor) -> bool:
    for rule in rules:
        if rule.argument is None:
            if place not in facts.outside:
                return True
        elif any(_path_matches(pattern, place.real, whole=place.is_folder) for pattern in anchor(rule)[-1:]):
            return True
    return False


def _segment(rule: Rule, segment: ShellSegment) -> bool:
    """Whether ``rule`` allows a command: by its name, or all of its text, or what the text begins with."""
    # One that is not clear is more than its own text: a redirection, a line that goes elsewhere.
    text = segment.text if segment.command.clear else segment.command.identifier
    argument = (rule.argument or "").strip()
    if _is_wide(rule):
        beginning = argument.removesuffix("*").rstrip()
        return _is_plain(text) and (text == beginning or text.startswith(f"{beginning} "))
    argument = argument.removesuffix(":*")
    if text == argument:
        return True
    if not segment.command.clear:
        return False
    identifier = segment.command.identifier
    return identifier == argument or identifier.startswith(f"{argument} ")


def _is_wide(rule: Rule) -> bool:
    return rule.argument is None or rule.argument.endswith(" *")


def _is_plain(text: str) -> bool:
    """Whether the text of a command holds nothing but words: no redirection, nothing that is expanded."""
    return not re.search(r"[<>$`\\\n;|&(){}]", text)


def _shows(rule: Rule, facts: Facts, anchor: Anchor) -> bool:
    match rule.kind:
        case "tool":
            return _tool(rule, facts)
        case "shell":
            return facts.kind == "shell" and (
                rule.argument is None or any(_mentions(rule.argument, words) for words in facts.mentioned)
            )
        case "read" | "write":
            if facts.kind not in (rule.kind, "shell"):
                return False
            if rule.argument is None:
                return facts.kind == rule.kind
            patterns = anchor(rule)
            return any(
                _path_matches(pattern, path, fold=True)
                for place in facts.places
                for path in (place.given, place.real)
                for pattern in patterns
            )
        case "url":
            if rule.argument is None:
                return facts.kind == "url" or bool(facts.hosts)
            return any(_host(rule, host, wide=True) for host in facts.hosts)
        case "mcp":
            return _mcp(rule, facts)
        case "custom-tool":
            return facts.kind == "custom-tool" and (rule.argument is None or _name(rule, facts))
        case _:
            return facts.kind == rule.kind


def _hides(rule: Rule, facts: Facts, anchor: Anchor) -> bool:
    if facts.kind == "shell":
        if rule.kind == "shell":
            return facts.opaque or any(_may_mention(rule.argument or "", words) for words in facts.mentioned)
        if rule.kind in ("read", "write", "url") and (facts.loose or facts.opaque):
            return True
        if rule.kind == "url":
            return any(_names_host(rule, words) for words in facts.mentioned)
    if rule.kind not in ("read", "write") or rule.argument is None or facts.kind not in (rule.kind, "shell"):
        return False
    # Who goes through a folder comes by what lies in it.
    roots = [_fixed_part(pattern) for pattern in anchor(rule)]
    folders = [path for place in facts.places if place.is_folder for path in (place.given, place.real)]
    return any(_is_in(root, folder) for root in roots for folder in folders)


def _mentions(argument: str, words: Mention) -> bool:
    """Whether a command of these words is the one that a rule forbids: options may stand in between."""
    name, *rest = _wanted(argument)
    if not _is_program(name, words):
        return False
    left = iter(words[1:])
    return all(any(word == wanted for word in left) for wanted in rest)


def _may_mention(argument: str, words: Mention) -> bool:
    """Whether a command may be the one that a rule forbids, because the shell makes up the word that decides it."""
    name, *rest = _wanted(argument)
    if not rest or not _is_program(name, words):
        return False
    for word in words[1:]:
        if word is None:
            return True
        if rest and word == rest[0]:
            rest.pop(0)
        elif not word.startswith("-"):
            # It is another command for certain.
            return False
    return False


def _wanted(argument: str) -> list[str]:
    return argument.removesuffix("*").removesuffix(":").split() or [""]


def _is_program(name: str, words: Mention) -> bool:
    return words[0] is not None and words[0].rpartition("/")[2].casefold() == name.rpartition("/")[2].casefold()


def _names_host(rule: Rule, words: Mention) -> bool:
    """Whether a word names a host that a rule forbids, whatever the command does with it."""
    names = {name for word in words if word for name in re.split(r"[^\w.-]+", word) if "." in name}
    return any(_host(rule, name.casefold().strip("."), wide=True) for name in names)


def _tool(rule: Rule, facts: Facts) -> bool:
    return fnmatchcase(facts.tool, rule.argument or "")


def _name(rule: Rule, facts: Facts) -> bool:
    return facts.name is not None and fnmatchcase(facts.name, rule.argument or "")


def _mcp(rule: Rule, facts: Facts) -> bool:
    if facts.kind != "mcp" or facts.server is None:
        return False
    if rule.argument is None:
        return True
    server, colon, tool = rule.argument.partition(":")
    return server == facts.server and (not colon or fnmatchcase(facts.name or "", tool))


def _host(rule: Rule, host: str, *, wide: bool = False) -> bool:
    """Whether a rule means ``host``: the very same, or one below ``*.``; what forbids means those below it too."""
    if rule.argument is None:
        return True
    wanted = host_of(rule.argument) or rule.argument.casefold()
    if wanted.startswith("*."):
        return host.endswith(wanted[1:]) or (wide and host == wanted[2:])
    return host == wanted or (wide and host.endswith(f".{wanted}"))


def host_of(url: str) -> str | None:
    """The host that ``url`` leads to, in one spelling; ``None`` where that is not certain."""
    from urllib.parse import urlsplit

    try:
        # Browsers and programs differ on these: better to know nothing.
        if re.search(r"[\s\\\x00-\x1f]", url):
            return None
        host = urlsplit(url if "://" in url else f"//{url}").hostname
        if not host:
            return None
        host = host.rstrip(".").casefold()
        if not host.isascii():
            host = host.encode("idna").decode()
    except (UnicodeError, ValueError):
        return None
    return host if re.fullmatch(r"[*\w.:-]+", host, re.ASCII) else None


def _path_matches(pattern: str, path: str, *, whole: bool = False, fold: bool = False) -> bool:
    """Whether ``path`` is what ``pattern`` means, or lies in it; with ``whole``, all that lies in ``path`` too."""
    if fold:
        pattern, path = pattern.casefold(), path.casefold()
    if whole and re.search(r"[*?]", pattern.removesuffix("/**")):
        return False
    return _pattern(pattern).fullmatch(path) is not None


@lru_cache(maxsize=512)
def _pattern(pattern: str) -> re.Pattern[str]:
    out = ""
    pattern = pattern.removesuffix("/**") if pattern != "/**" else ""
    for piece in re.findall(r"/\*\*/|\*\*|\*|\?|[^*?/]+|/", pattern):
        out += {"/**/": "/(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(piece) or re.escape(piece)
    # A folder stands for all that lies in it; of a pattern for names, only what it was written for.
    last = pattern.rpartition("/")[2]
    return re.compile(out.rstrip("/") + ("(?:/.*)?" if not re.search(r"[*?]", last) else ""), re.DOTALL)


def _fixed_part(pattern: str) -> str:
    place = re.search(r"[*?]", pattern)
    return pattern if place is None else pattern[: place.start()].rpartition("/")[0] or "/"


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


_RULE: Final = re.compile(r"([a-z-]+)(?:\((.*)\))?", re.DOTALL)
