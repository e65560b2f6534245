"""Permission rules: their syntax, and how they match the facts of a call. Pure: no I/O.

A rule is a kind and an argument, written ``shell(git status)``. Restricting rules (deny, ask) and allow rules match
differently. A restricting rule matches on any sign that the call does what it names. Allow rules match only if they
cover every part of the call. A call that neither matches for certain requires a person to decide.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from jumpseat.agent.shell.effects import CommandWords
    from jumpseat.agent.shell.syntax import ShellSegment


def path_matches(pattern: str, path: str, *, whole: bool = False, fold: bool = False) -> bool:
    """Return whether ``pattern`` matches ``path`` or a folder above it; with ``whole``, everything in ``path`` too.

    ``fold`` ignores case.
    """
    if fold:
        pattern, path = pattern.casefold(), path.casefold()
    if whole and re.search(r"[*?]", pattern.removesuffix("/**")):
        return False
    return _compile(pattern).fullmatch(path) is not None


@lru_cache(maxsize=4096)
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern into an expression that takes linear time.

    What is between two ``**`` is searched name by name: if it does not begin in one name, it can only begin in a
    later one. A match is as short as possible, because a longer one would not help the rest of the pattern. Atomic
    groups keep it, so that no combinations are tried.
    """
    pattern = pattern.removesuffix("/**") if pattern != "/**" else ""
    # A folder covers everything in it; a pattern whose last part has wildcards covers matching names only.
    suffix = "(?:/.*)?" if not re.search(r"[*?]", pattern.rpartition("/")[2]) else ""
    # Several of these in a row match what one of them matches.
    pattern = re.sub(r"/\*\*/\*\*", "/**", re.sub(r"(?:\*\*/)+", "**/", re.sub(r"\*{3,}", "**", pattern)))
    pieces = re.split(r"(/\*\*/|\*\*)", pattern)
    out = _names(pieces[0], ends=len(pieces) == 1 or pieces[1] == "/**/")
    for index in range(1, len(pieces), 2):
        is_last = index == len(pieces) - 2
        whole_names = pieces[index] == "/**/"
        ends = is_last or pieces[index + 2] == "/**/"
        names = _names(pieces[index + 1], ends=ends, begins=whole_names)
        names += "" if not ends else r"\Z" if is_last and not suffix else "(?![^/])"
        out += f"{'/' if whole_names else ''}(?>(?:(?!{names})[^/]*+/)*+{names})"
    return re.compile((out if len(pieces) > 1 else out.removesuffix("/")) + suffix, re.DOTALL)


def _names(text: str, *, ends: bool, begins: bool = True) -> str:
    """Translate a part of a pattern without ``**``.

    ``begins`` means that its first name is complete at the beginning, ``ends`` that its last one is at the end.
    """
    names = text.split("/")
    out: list[str] = []
    for index, name in enumerate(names):
        parts = [re.escape(part).replace(r"\?", "[^/]") for part in name.split("*")]
        anchored = "" if index == 0 and not begins else parts.pop(0)
        complete = parts.pop() if parts and (ends or index < len(names) - 1) else None
        found = anchored + "".join(f"(?>[^/]*?{part})" for part in parts)
        out.append(found if complete is None else f"{found}[^/]*{complete}(?![^/])")
    return "/".join(out)


Effect: TypeAlias = Literal["allow", "ask", "deny"]

KINDS: Final = ("shell", "read", "write", "url", "mcp", "memory", "custom-tool", "tool", "sandboxed")


MAX_RULE_CHARS: Final = 4096
MAX_HOST_CHARS: Final = 255


class Rule(Struct, frozen=True):
    """A permission rule. Paths may be relative to ``base``, or to the working directory if ``base`` is empty.

    An ``exact`` rule allows the very text of a command, and no harmless variants of it.
    """

    kind: str
    argument: str | None = None
    base: str = ""
    exact: bool = False

    def __str__(self) -> str:
        return self.kind if self.argument is None else f"{self.kind}({self.argument})"


def parse_rule(text: str, base: str = "") -> Rule:
    """Parse a rule such as ``shell(git status)``.

    Raises:
        ValueError: ``text`` is not a valid rule; the message says what was expected.
    """
    if len(text) > MAX_RULE_CHARS:
        raise ValueError(f"invalid rule {text[:100]!r}: expected at most {MAX_RULE_CHARS} characters")
    found = _RULE.fullmatch(text.strip())
    if found is None or found[1] not in KINDS:
        raise ValueError(
            f"invalid rule {text[:100]!r}: expected one of {', '.join(KINDS)}, as in shell(git status)"
        )
    argument = found[2].strip() if found[2] is not None else None
    if argument == "" or (found[1] == "tool" and argument is None):
        raise ValueError(f"invalid rule {text[:100]!r}: expected an argument in parentheses")
    return Rule(found[1], argument, base)


class Rules(Struct, frozen=True):
    """Rules by effect. Deny wins over ask, and ask over allow."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    def __add__(self, other: Rules) -> Rules:
        return Rules(self.allow + other.allow, self.ask + other.ask, self.deny + other.deny)


class ResolvedPath(Struct, frozen=True):
    """A path that a call touches: as ``given`` (absolute, normalized), and ``real``, with its links resolved."""

    given: str
    real: str
    is_folder: bool = False


CHANGING: Final = "files that may change"
"""The mark of files about which nothing is certain; no approval has it."""


class Facts(Struct, frozen=True):
    """The effects of a call, as far as they are known before it runs.

    ``paths`` are read, or written if ``writes`` is set; ``outside_paths`` are those outside of the session's
    folders. With ``any_host``, ``hosts`` need no approval. ``possible_commands`` are the words of every command
    that the call may run, and ``names`` those of programs that unknown commands may run. ``opaque`` means that the
    call may run others too, ``incomplete`` that it may touch other paths and hosts. ``protected`` means that it may
    change what decides about later calls, so that a person has to allow it; ``git_files`` are such files that
    ``git`` may write, and ``git_writes_unknown`` means that there may be others. ``git_programs`` are settings and
    hooks by which ``git`` runs programs; an approval has to have their ``git_mark``. If ``scope`` is set, an
    approval covers calls with the same scope only, rather than all calls of the tool. ``typed`` means input for a
    running program instead of a command line: no approval of a command covers it. ``text`` is a command line or
    such input, ``folder`` the real path of the working directory, and ``folders`` are those that its commands may
    run in; empty if they are not known. ``scratch`` are files in the ``/tmp`` of a sandbox that it only uses for
    output.
    """

    kind: str
    tool: str
    segments: tuple[ShellSegment, ...] = ()
    possible_commands: tuple[CommandWords, ...] = ()
    names: frozenset[str] = frozenset()
    paths: tuple[ResolvedPath, ...] = ()
    outside_paths: tuple[ResolvedPath, ...] = ()
    hosts: tuple[str, ...] = ()
    any_host: bool = False
    server: str | None = None
    name: str | None = None
    writes: bool = False
    opaque: bool = False
    incomplete: bool = False
    protected: bool = False
    git_files: tuple[str, ...] = ()
    git_writes_unknown: bool = False
    git_programs: tuple[str, ...] = ()
    git_mark: str = ""
    files_mark: str = ""
    scope: str | None = None
    typed: bool = False
    text: str = ""
    folder: str = ""
    folders: tuple[str, ...] = ()
    scratch: frozenset[str] = frozenset()

    @property
    def programs(self) -> frozenset[str]:
        """Return the real paths of programs that the line names by their paths."""
        return frozenset(segment.real_program for segment in self.segments if segment.real_program)


class ApprovedCommands(Struct, frozen=True):
    """Commands that were approved before.

    ``identifiers`` name them, each with the program or the folder that the approval is bound to; ``paths`` are real
    paths outside of the session's folders.
    """

    identifiers: frozenset[tuple[str, str]] = frozenset()
    paths: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    alike: frozenset[str] = frozenset()
    confined: bool = False

    def inside(self, facts: Facts) -> ApprovedCommands:
        """Return these commands, and those of a confined line that are like approved ones."""
        return replace(self.with_alike(facts), confined=True)

    def with_alike(self, facts: Facts) -> ApprovedCommands:
        """Return these commands, and those of a line that are like approved ones."""
        alike = {
            (segment.command.identifier, segment.anchor)
            for segment in facts.segments
            if self._is_alike(segment, segment.likeness.needs)
            or (
                segment.likeness.places
                and all(self._is_alike(segment, around) for around in segment.likeness.places)
            )
        }
        return replace(self, identifiers=self.identifiers | alike)

    def _is_alike(self, segment: ShellSegment, texts: Iterable[str]) -> bool:
        return not self.alike.isdisjoint(likenesses_here(segment, texts))


def shows_only(segments: Sequence[ShellSegment]) -> bool:
    """Return whether a line consists of commands that show the state of a service, and filters."""
    acting = [segment for segment in segments if not segment.filters]
    return bool(acting) and all(
        not segment.program and any(text.startswith(_SHOWS) for text in segment.likeness.needs)
        for segment in acting
    )


_SHOWS: Final = "(shows) "


def likenesses_here(segment: ShellSegment, texts: Iterable[str]) -> Iterator[str]:
    """Yield likenesses of a command, as an approval in its folder records them."""
    likeness = segment.likeness
    if segment.real_program and not segment.real_program.startswith(f"{segment.folder}/"):
        return
    moved = ""
    if likeness.moved:
        # Imported with the first such command.
        from jumpseat.agent.shell.likeness import is_own_folder

        moved = posixpath.relpath(posixpath.join(segment.folder, likeness.moved), segment.folder or "/")
        if moved != "." and not is_own_folder(moved):
            return
    for text in texts:
        folder = moved if text in likeness.bound and moved != "." else ""
        yield f"{segment.folder}\n{segment.real_program}\n{f'cd {folder} && ' if folder else ''}{text}"


NO_COMMANDS: Final = ApprovedCommands()


class RulePatterns(Protocol):
    """The absolute patterns of path rules, for the decisions about one call in the folder ``cwd``."""

    @property
    def cwd(self) -> str: ...

    def __call__(self, rule: Rule) -> Sequence[str]:
        """Return the patterns of a rule: as written, and last with its links resolved."""
        ...

    def written(self, rule: Rule) -> str:
        """Return the pattern of a rule as written."""
        ...

    def resolved(self, folder: str) -> str | None:
        """Return the real path of a folder; ``None`` if there is none."""
        ...


def first_match(rules: Iterable[Rule], facts: Facts, patterns: RulePatterns) -> Rule | None:
    """Return the first restricting rule that any part of the call matches."""
    return next((rule for rule in rules if _matches(rule, facts, patterns)), None)


def first_possible_match(rules: Iterable[Rule], facts: Facts, patterns: RulePatterns) -> Rule | None:
    """Return the first restricting rule that the call might match unseen, so that a person has to decide."""
    return next((rule for rule in rules if _might_match(rule, facts, patterns)), None)


def allows(
    rules: Sequence[Rule], facts: Facts, patterns: RulePatterns, approved: ApprovedCommands = NO_COMMANDS
) -> bool:
    """Return whether allow rules, and for a command line ``approved``, together cover every part of the call."""
    if any(rule.kind == "tool" and _matches_tool(rule, facts) for rule in rules):
        return True
    same = [rule for rule in rules if rule.kind == facts.kind]
    match facts.kind:
        case "shell":
            return _allows_shell(rules, facts, patterns, approved)
        case "read" | "write":
            return bool(facts.paths) and all(_path_allowed(same, path, facts, patterns) for path in facts.paths)
        case "url":
            return bool(facts.hosts) and all(
                any(_matches_host(rule, host) for rule in same) for host in facts.hosts
            )
        case "mcp":
            return any(_matches_mcp(rule, facts) for rule in same)
        case "custom-tool":
            return any(rule.argument is None or _matches_name(rule, facts) for rule in same)
        case "memory":
            return bool(same)
        case _:
            # Only a person answers a hook that asks.
            return False


def _allows_shell(rules: Sequence[Rule], facts: Facts, patterns: RulePatterns, approved: ApprovedCommands) -> bool:
    same = [rule for rule in rules if rule.kind == "shell"]
    if any(rule.argument is None for rule in same):
        return True
    # Filters do nothing to anything but the output of the other commands.
    acting = [segment for segment in facts.segments if not segment.filters] or facts.segments
    acting = [segment for segment in acting if not _only_shows(segment)] or acting
    # Rules alone cover no more than they say.
    confined = approved.confined and any(
        (segment.command.identifier, segment.anchor) in approved.identifiers for segment in acting
    )
    if confined:
        acting = [segment for segment in acting if not segment.likeness.beside] or acting
    if (
        facts.typed
        or not acting
        or not all(
            _is_approved(segment, approved) or any(_allows_segment(rule, segment, patterns) for rule in same)
            for segment in acting
        )
    ):
        return False
    prefix_rules = [rule for rule in same if _is_prefix_rule(rule)]
    if all(any(_allows_segment(rule, segment, patterns) for rule in prefix_rules) for segment in facts.segments):
        return True
    if facts.incomplete:
        return False
    # The outside paths and hosts that a command touches must be allowed as well.
    only_reads = all(segment.command.read_only for segment in facts.segments)
    kinds = ("read", "write") if only_reads else ("write",)
    path_rules = [rule for rule in rules if rule.kind in kinds and rule.argument is not None]
    url_rules = [rule for rule in rules if rule.kind == "url"]
    scratch = facts.scratch if confined else frozenset[str]()
    hosts = [host for host in facts.hosts if not (confined and host in _OWN_HOSTS)]
    return all(
        path.real in approved.paths or path.given in scratch or _path_allowed(path_rules, path, facts, patterns)
        for path in facts.outside_paths
    ) and (
        facts.any_host
        or all(host in approved.hosts or any(_matches_host(rule, host) for rule in url_rules) for host in hosts)
    )


def _is_approved(segment: ShellSegment, approved: ApprovedCommands) -> bool:
    # Imported here: the tables of commands are loaded with the first command.
    from jumpseat.agent.shell.extent import covering

    return any((name, segment.anchor) in approved.identifiers for name in covering(segment.command.identifier))


def _only_shows(segment: ShellSegment) -> bool:
    """Return whether a command shows nothing but its own words, or the working directory."""
    known = segment.command.clear and segment.command.identifier in _SHOWING
    return known and re.search(r"[*?\[{$~`]", _STATUS.sub("", segment.text)) is None


_STATUS: Final = re.compile(r"\$\?|\$\{PIPESTATUS\[\d\]\}")
_OWN_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""A sandbox has a localhost of its own."""

_SHOWING: Final = frozenset({"echo", "false", "pwd", "true"})


def _path_allowed(rules: Iterable[Rule], path: ResolvedPath, facts: Facts, patterns: RulePatterns) -> bool:
    for rule in rules:
        if rule.argument is None:
            if path not in facts.outside_paths:
                return True
        elif any(path_matches(pattern, path.real, whole=path.is_folder) for pattern in patterns(rule)[-1:]):
            return True
    return False


def _allows_segment(rule: Rule, segment: ShellSegment, patterns: RulePatterns) -> bool:
    """Return whether an allow rule covers a command: by its identifier, its whole text, or a prefix of its text."""
    if segment.real_program and rule.argument is not None:
        # A path names the program at that path, seen from the folder of the rule.
        program = rule.argument.split(maxsplit=1)[0]
        if "/" in program and segment.real_program != patterns(Rule("read", program, rule.base))[-1]:
            return False
    # The text of a command that is not clear is not all of it: a redirection, a line that changes folders.
    text = segment.text if segment.command.clear else segment.command.identifier
    argument = (rule.argument or "").strip()
    if _is_prefix_rule(rule):
        prefix = argument.removesuffix("*").rstrip()
        return _is_plain(text) and (text == prefix or text.startswith(f"{prefix} "))
    argument = argument.removesuffix(":*")
    if text == argument:
        return True
    if rule.exact or not segment.command.clear:
        return False
    identifier = segment.command.identifier
    return identifier == argument or identifier.startswith(f"{argument} ")


def _is_prefix_rule(rule: Rule) -> bool:
    return rule.argument is None or rule.argument.endswith(" *")


def _is_plain(text: str) -> bool:
    """Return whether the text of a command consists of words only: no redirection, no expansion."""
    return not re.search(r"[<>$`\\\n;|&(){}]", text)


def _matches(rule: Rule, facts: Facts, patterns: RulePatterns) -> bool:
    match rule.kind:
        case "tool":
            return _matches_tool(rule, facts)
        case "shell":
            return facts.kind == "shell" and (
                rule.argument is None or any(is_command(rule.argument, words) for words in facts.possible_commands)
            )
        case "read" | "write":
            if facts.kind not in (rule.kind, "shell"):
                return False
            if rule.argument is None:
                return facts.kind == rule.kind
            absolute = patterns(rule)
            return any(
                path_matches(pattern, form, fold=True)
                for path in facts.paths
                for form in (path.given, path.real)
                for pattern in absolute
            )
        case "url":
            if rule.argument is None:
                return facts.kind == "url" or bool(facts.hosts)
            return any(_matches_host(rule, host, subdomains=True) for host in facts.hosts)
        case "mcp":
            return _matches_mcp(rule, facts)
        case "custom-tool":
            return facts.kind == "custom-tool" and (rule.argument is None or _matches_name(rule, facts))
        case _:
            return facts.kind == rule.kind


def _might_match(rule: Rule, facts: Facts, patterns: RulePatterns) -> bool:
    if facts.kind == "shell":
        if rule.kind == "shell":
            argument = rule.argument or ""
            return (
                facts.opaque
                or any(_may_be_command(argument, words) for words in facts.possible_commands)
                or facts.names.issuperset(word.rpartition("/")[2].casefold() for word in rule_words(argument))
            )
        if rule.kind in ("read", "write", "url") and (facts.incomplete or facts.opaque):
            return True
        if rule.kind == "url":
            return any(_contains_host(rule, words) for words in facts.possible_commands)
    if rule.kind not in ("read", "write") or rule.argument is None or facts.kind not in (rule.kind, "shell"):
        return False
    # A call that works on a folder may touch everything in it.
    roots = [fixed_part(pattern) for pattern in patterns(rule)]
    folders = [form for path in facts.paths if path.is_folder for form in (path.given, path.real)]
    return any(_is_inside(root, folder) for root in roots for folder in folders)


def is_command(argument: str, words: CommandWords) -> bool:
    """Return whether a command is the one that a restricting rule names; options may stand between its words."""
    name, *rest = rule_words(argument)
    if not _is_program(name, words):
        return False
    left = iter(words[1:])
    return all(any(word == expected for word in left) for expected in rest)


def _may_be_command(argument: str, words: CommandWords) -> bool:
    """Return whether a command may be the one that a restricting rule names, once the shell expands its words."""
    name, *rest = rule_words(argument)
    if not rest or not _is_program(name, words):
        return False
    for word in words[1:]:
        if word is None:
            return True
        if rest and word == rest[0]:
            rest.pop(0)
        elif not word.startswith("-"):
            # Certainly another command.
            return False
    return False


def rule_words(argument: str) -> list[str]:
    """Return the words of the command that a restricting rule names."""
    return argument.removesuffix("*").removesuffix(":").split() or [""]


def _is_program(name: str, words: CommandWords) -> bool:
    return words[0] is not None and words[0].rpartition("/")[2].casefold() == name.rpartition("/")[2].casefold()


def _contains_host(rule: Rule, words: CommandWords) -> bool:
    """Return whether any word contains a host that a restricting rule names."""
    return any(_matches_host(rule, name, subdomains=True) for name in hosts_in(words))


@lru_cache(maxsize=256)
def hosts_in(words: CommandWords) -> frozenset[str]:
    """Return what may be a host in the words of a command."""
    names = (name for word in words if word for name in re.split(r"[^\w.-]+", word) if "." in name)
    return frozenset(name.casefold().strip(".") for name in names)


def _matches_tool(rule: Rule, facts: Facts) -> bool:
    return fnmatchcase(facts.tool, rule.argument or "")


def _matches_name(rule: Rule, facts: Facts) -> bool:
    return facts.name is not None and fnmatchcase(facts.name, rule.argument or "")


def _matches_mcp(rule: Rule, facts: Facts) -> bool:
    if facts.kind != "mcp" or facts.server is None:
        return False
    if rule.argument is None:
        return True
    server, colon, tool = rule.argument.partition(":")
    return server == facts.server and (not colon or fnmatchcase(facts.name or "", tool))


def _matches_host(rule: Rule, host: str, *, subdomains: bool = False) -> bool:
    """Return whether a rule covers ``host``: the same host, or a subdomain of a rule that begins with ``*.``.

    With ``subdomains``, as for restricting rules, every rule covers the subdomains of its host.
    """
    if rule.argument is None:
        return True
    expected = host_of(rule.argument) or rule.argument.casefold()
    if expected.startswith("*."):
        return host.endswith(expected[1:]) or (subdomains and host == expected[2:])
    return host == expected or (subdomains and host.endswith(f".{expected}"))


def host_of(url: str) -> str | None:
    """Return the normalized host of ``url``, which may lack a scheme; ``None`` if the host is not certain."""
    from urllib.parse import urlsplit

    try:
        # Programs read these characters differently.
        if re.search(r"[\s\\\x00-\x1f]", url):
            return None
        if "://" not in url:
            # An IPv6 address without brackets would be read as a host and a port.
            url = f"//[{url}]" if re.fullmatch(r"[^/\[]*:[^/\[]*:[^/\[]*", url) else f"//{url}"
        parts = urlsplit(url)
        host = parts.hostname
        # Raises ValueError for a port that is no number.
        _ = parts.port
        if not host or len(host) > MAX_HOST_CHARS:
            return None
        host = host.rstrip(".").casefold()
        if not host.isascii():
            host = host.encode("idna").decode()
    except (UnicodeError, ValueError):
        return None
    return host if re.fullmatch(r"[*\w.:-]+", host, re.ASCII) else None


def fixed_part(pattern: str) -> str:
    """Return the folder that everything lies in that a pattern matches."""
    wildcard = re.search(r"[*?]", pattern)
    return pattern if wildcard is None else pattern[: wildcard.start()].rpartition("/")[0] or "/"


def root_of(pattern: str) -> str:
    """Return the beginning of a pattern up to its first name with wildcards, without the slash in between."""
    names = pattern.split("/")
    first = next((n for n, name in enumerate(names) if "*" in name or "?" in name), len(names))
    return "/".join(names[:first])


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


_RULE: Final = re.compile(r"([a-z-]+)(?:\((.*)\))?", re.DOTALL)
