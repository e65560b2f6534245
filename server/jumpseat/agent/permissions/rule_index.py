"""Find the few rules of a long list that may concern a call. Pure: no I/O.

A host may set a thousand rules, and each call is matched against all of them. An index leaves out only rules that
neither match the call nor might match it, so that the decision and the rule that is named stay the same.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from jumpseat.agent.permissions.rules import (
    Facts,
    Rule,
    RulePatterns,
    first_match,
    first_possible_match,
    fixed_part,
    host_of,
    hosts_in,
    root_of,
    rule_words,
)

_PATH_KINDS = ("read", "write")


class RuleIndex:
    """Rules in their order, by what a call must have for each of them."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._commands = defaultdict[str, list[int]](list)
        self._hosts = defaultdict[str, list[int]](list)
        self._paths = dict[str, list[int]]((kind, []) for kind in _PATH_KINDS)
        self._others: list[int] = []
        self._written: tuple[str, Mapping[str, _Written]] | None = None
        for number, rule in enumerate(rules):
            if rule.kind == "shell" and (name := rule_words(rule.argument or "")[0]):
                self._commands[_base_name(name)].append(number)
            elif rule.kind == "url" and rule.argument is not None:
                self._hosts[(host_of(rule.argument) or rule.argument.casefold()).removeprefix("*.")].append(number)
            elif rule.kind in self._paths and rule.argument is not None:
                self._paths[rule.kind].append(number)
            else:
                self._others.append(number)

    @property
    def shell(self) -> list[Rule]:
        """The rules for commands."""
        return [rule for rule in self._rules if rule.kind == "shell"]

    def first_match(self, facts: Facts, patterns: RulePatterns) -> Rule | None:
        """Return the first restricting rule that any part of the call matches."""
        return first_match(self.relevant(facts, patterns), facts, patterns)

    def first_possible_match(self, facts: Facts, patterns: RulePatterns) -> Rule | None:
        """Return the first restricting rule that the call might match unseen."""
        return first_possible_match(self.relevant(facts, patterns, inside=True), facts, patterns)

    def relevant(self, facts: Facts, patterns: RulePatterns, *, inside: bool = False) -> list[Rule]:
        """Return the rules that the call may match, and maybe others, in their order.

        With ``inside``, also those that something in a folder of the call may match.
        """
        found = {*self._others, *self._first_of_unknown(facts)}
        found.update(*(self._commands.get(name, ()) for name in _programs(facts)))
        found.update(*(self._hosts.get(suffix, ()) for host in _hosts(facts) for suffix in _suffixes(host)))
        for kind in _PATH_KINDS if facts.paths else ():
            if facts.kind in (kind, "shell") and self._paths[kind]:
                for table in self._tables(kind, patterns):
                    found |= table.relevant(facts, inside=inside)
        return [self._rules[number] for number in sorted(found)]

    def _first_of_unknown(self, facts: Facts) -> Iterator[int]:
        """Yield the first rule of each kind that any call may match whose effects are not known."""
        if facts.kind == "shell" and (facts.opaque or facts.incomplete):
            numbers = chain(*self._paths.values(), *self._hosts.values())
            if facts.opaque:
                numbers = chain(numbers, *self._commands.values())
            if (first := min(numbers, default=None)) is not None:
                yield first

    def _tables(self, kind: str, patterns: RulePatterns) -> Iterator[_Table]:
        if self._written is None or self._written[0] != patterns.cwd:
            written = {
                kind: _Written([(number, patterns.written(self._rules[number])) for number in numbers])
                for kind, numbers in self._paths.items()
            }
            self._written = patterns.cwd, written
        yield from self._written[1][kind].tables(patterns)


class _Table:
    """Patterns of rules, each with the number of its rule, by what they end and begin with."""

    def __init__(self, patterns: Iterable[tuple[int, str]]) -> None:
        self._names = defaultdict[str, list[int]](list)
        self._tails = defaultdict[str, list[int]](list)
        self._pieces: list[tuple[str, int]] = []
        beginnings: list[tuple[str, int]] = []
        for number, pattern in patterns:
            last = pattern.casefold().removesuffix("/**").rpartition("/")[2]
            parts = re.split(r"[*?]", last)
            # A pattern that ends with a name covers everything in that folder; any other one is for whole paths.
            if len(parts) == 1 or parts[-1]:
                (self._names if len(parts) == 1 else self._tails)[parts[-1]].append(number)
            else:
                rest = pattern[len(root_of(pattern)) :].casefold()
                self._pieces.append((max(re.split(r"[*?/]", rest), key=len), number))
            beginnings.append((fixed_part(pattern), number))
        self._beginnings = sorted(beginnings)
        self._lengths = {len(tail) for tail in self._tails}

    def relevant(self, facts: Facts, *, inside: bool) -> set[int]:
        """Return the numbers of patterns that may match a path of the call, or something in its folders."""
        found = set[int]()
        for path in facts.paths:
            for form in {path.given, path.real}:
                folded = form.casefold()
                found.update(*(self._names.get(name, ()) for name in folded.split("/")))
                found.update(*(self._tails.get(folded[len(folded) - n :], ()) for n in self._lengths))
                found.update(number for piece, number in self._pieces if piece in folded)
                if inside and path.is_folder:
                    found.update(self._inside(form.rstrip("/")))
        return found

    def _inside(self, folder: str) -> Iterator[int]:
        for start in (folder, f"{folder}/"):
            at = bisect_left(self._beginnings, (start, -1))
            while at < len(self._beginnings) and (
                self._beginnings[at][0] == start
                or (start[-1:] == "/" and self._beginnings[at][0].startswith(start))
            ):
                yield self._beginnings[at][1]
                at += 1


class _Written:
    """Patterns as they were written, and those whose folder is reached by links, which may change at any time."""

    def __init__(self, patterns: Sequence[tuple[int, str]]) -> None:
        self._table = _Table(patterns)
        self._linked: tuple[list[tuple[int, str]], _Table] = ([], _Table(()))
        self._roots = defaultdict[str, list[tuple[int, str]]](list)
        for number, pattern in patterns:
            root = root_of(pattern)
            self._roots[root].append((number, pattern[len(root) :]))

    def tables(self, patterns: RulePatterns) -> tuple[_Table, _Table]:
        linked = [
            (number, f"{real.rstrip('/')}{rest}" or "/")
            for root, rules in self._roots.items()
            if (real := patterns.resolved(root)) is not None and real != root
            for number, rest in rules
        ]
        if linked != self._linked[0]:
            self._linked = linked, _Table(linked)
        return self._table, self._linked[1]


def _programs(facts: Facts) -> set[str]:
    lines = (line for segment in facts.segments for line in (segment.text, segment.command.identifier))
    firsts = (line.split(maxsplit=1)[:1] for line in lines)
    words = (words[:1] for words in facts.possible_commands)
    return {*facts.names, *(_base_name(word) for word in chain(*firsts, *words) if word is not None)}


def _hosts(facts: Facts) -> set[str]:
    return {*facts.hosts, *chain(*map(hosts_in, facts.possible_commands))}


def _suffixes(host: str) -> Iterator[str]:
    """Yield a host and the domains that it is in."""
    yield host
    while (at := host.find(".")) >= 0:
        host = host[at + 1 :]
        yield host


def _base_name(program: str) -> str:
    return program.rpartition("/")[2].casefold()
