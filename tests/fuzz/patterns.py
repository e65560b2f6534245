"""Find the regular expressions of the sources, and make up the inputs that each takes longest for.

A pattern that tries several ways to match the same characters, or that begins again at each of them, takes time
that grows with the square of the input or faster. The inputs repeat what a repetition of the pattern matches, after
what leads to it, and end with something that the pattern does not expect.
"""

# The parser of the standard library's patterns has no public name and no types.
# pyright: reportMissingTypeStubs=false, reportMissingImports=false, reportAttributeAccessIssue=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false
from __future__ import annotations

import ast
import importlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from re import _constants as codes
from re import _parser as parser
from types import ModuleType
from typing import Any, Final, TypeAlias

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = (
    "server/jumpseat",
    "protocol/jumpseat_protocol",
    "clients/python/jumpseat_client",
    "clients/python/jumpseat_terminal",
    "clients/python/jumpseat_transcript",
    "testkit/jumpseat_testkit",
)

_Use: TypeAlias = Callable[[re.Pattern[Any], Any], object]


def _first(function: str) -> _Use:
    return lambda pattern, text: getattr(pattern, function)(text) is None


def _every(pattern: re.Pattern[Any], text: Any) -> object:
    return all(True for _ in pattern.finditer(text))


_USES: Final[Mapping[str, _Use]] = {
    **{name: _first(name) for name in ("match", "fullmatch", "search")},
    **dict.fromkeys(("finditer", "findall", "sub", "subn", "split"), _every),
}
_ENDS: Final = ("\0", "\n", "a")
_GENERIC: Final = "a0_ \t\n-./\"'=<"
_MANY: Final = 20
"""The least repetitions that count as many."""
_SAMPLES: Final = 6

SIZES: Final = (16, 24, 32, 512, 8192)
"""Lengths of inputs. Short ones come first, because the time may grow exponentially."""
LEAST_S: Final = 0.02
"""Processor time below which no growth is measured."""
FAST_S: Final = LEAST_S / (SIZES[-1] // SIZES[-2]) ** 2 / 2
"""Processor time of the last size but one, for which the last takes less than :data:`LEAST_S` if it is quadratic.

Most inputs take less, and most of the time of a search is that of the last size.
"""
MOST_GROWTH: Final = 9
"""The limit of the growth for four times the length: 4 is linear, 16 quadratic."""


@dataclass(frozen=True)
class Found:
    """A regular expression in a source file, and the functions that it is used with."""

    place: str
    pattern: re.Pattern[Any]
    uses: frozenset[str]


@dataclass(frozen=True)
class Unknown:
    """A regular expression that is put together at run time. ``source`` is the expression in the source file."""

    place: str
    source: str


def find_patterns(examples: Mapping[str, Mapping[str, str]]) -> Iterator[Found | Unknown]:
    """Yield the regular expressions of all modules.

    ``examples`` are expressions for the variables of functions from which patterns are put together, by file.
    """
    # Walked once: there are a million nodes.
    modules = {
        path: list(ast.walk(ast.parse(path.read_text())))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    shared = _attributes(modules.values())
    for path, nodes in modules.items():
        calls = [node for node in nodes if isinstance(node, ast.Call) and _function(node) is not None]
        if not calls:
            continue
        # A private name belongs to its module.
        own = _attributes([nodes])
        module = importlib.import_module(_module_name(path))
        assigned = dict(_assigned(nodes))
        for call in calls:
            function = _function(call)
            assert function is not None
            place = f"{path.relative_to(ROOT)}:{call.lineno}"
            given = examples.get(str(path.relative_to(ROOT)), {})
            pattern = _evaluate(module, given, call, function)
            if pattern is None:
                yield Unknown(place, ast.unparse(call.args[0]))
                continue
            if function == "compile":
                name = assigned.get(call, "")
                found = (own if name.startswith("_") else shared).get(name, frozenset[str]()) & _USES.keys()
                uses = found or frozenset({"finditer"})
            else:
                uses = frozenset({function})
            yield Found(place, pattern, uses)


def _module_name(path: Path) -> str:
    package = next(package for package in PACKAGES if path.is_relative_to(ROOT / package))
    parts = path.relative_to((ROOT / package).parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _function(call: ast.Call) -> str | None:
    """Return the name of the function of ``re`` that is called."""
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re":
        return function.attr if function.attr in {*_USES, "compile"} else None
    return None


def _assigned(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls whose results have a name, with the name."""
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
            yield node.value, name


def _attributes(modules: Iterable[Iterable[ast.AST]]) -> dict[str, frozenset[str]]:
    """Return the attributes that are used of each name, in the nodes of any module."""
    found: dict[str, set[str]] = {}
    for nodes in modules:
        for node in nodes:
            if isinstance(node, ast.Attribute):
                name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
                found.setdefault(name, set()).add(node.attr)
    return {name: frozenset(used) for name, used in found.items()}


def _evaluate(
    module: ModuleType, given: Mapping[str, str], call: ast.Call, function: str
) -> re.Pattern[Any] | None:
    place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(function, 2)
    flags = (
        [call.args[place]] if len(call.args) > place else [key.value for key in call.keywords if key.arg == "flags"]
    )
    names = vars(module) | {name: eval(value, vars(module)) for name, value in given.items()}
    try:
        values = [eval(compile(ast.Expression(node), "", "eval"), names) for node in (call.args[0], *flags)]
        return re.compile(*values)
    except NameError:
        return None


# --- inputs -------------------------------------------------------------------------------------------------------


def hostile(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield a beginning, what is repeated, and an end."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(
        source, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    )
    alphabet = "".join(dict.fromkeys(_GENERIC + "".join(_literals(tree))))
    seen: set[tuple[str, str]] = set()
    for before, repeated in _repetitions(list(tree), "", alphabet):
        # The beginning of a match again and again, too: each may run up to the end of the input.
        for pair in ((before, repeated), ("", repeated), ("", before + repeated), ("", before)):
            if pair[1] and pair not in seen:
                seen.add(pair)
                for end in _ENDS:
                    yield *pair, end


def _literals(items: Any) -> Iterator[str]:
    for code, value in items:
        if code in (codes.LITERAL, codes.NOT_LITERAL):
            yield chr(value)
        elif code == codes.RANGE:
            yield chr(value[0])
        elif code == codes.IN:
            yield from _literals(value)
        elif (below := _below(code, value)) is not None:
            for tree in below:
                yield from _literals(tree)


def _below(code: Any, value: Any) -> list[Any] | None:
    """Return the parts of a group, a repetition, an alternative or an assertion."""
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return [value[2]]
    if code == codes.SUBPATTERN:
        return [value[3]]
    if code == codes.BRANCH:
        return list(value[1])
    if code == codes.ATOMIC_GROUP:
        return [value]
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [value[1]]
    if code == codes.GROUPREF_EXISTS:
        return [tree for tree in value[1:] if tree is not None]
    return None


def _repetitions(items: list[Any], before: str, alphabet: str) -> Iterator[tuple[str, str]]:
    """Yield each repetition: what leads to it, and examples of what it repeats."""
    for code, value in items:
        below = _below(code, value) or []
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT) and int(value[1]) >= _MANY:
            for example in islice(dict.fromkeys(_examples(value[2], alphabet)), _SAMPLES * 3):
                yield before, example
        for tree in below:
            yield from _repetitions(list(tree), before, alphabet)
        before += next(iter(_examples([(code, value)], alphabet)), "")


def _examples(items: Any, alphabet: str) -> list[str]:
    """Return a few texts that the items match."""
    found = [""]
    for code, value in items:
        texts = _examples_of(code, value, alphabet) or [""]
        found = [text + more for text in found for more in texts][: _SAMPLES * 3]
    return found


def _examples_of(code: Any, value: Any, alphabet: str) -> list[str]:
    if code == codes.LITERAL:
        return [chr(value)]
    if code in (codes.IN, codes.ANY, codes.NOT_LITERAL):
        return [character for character in alphabet if _is_in(code, value, character)]
    if code in (codes.ASSERT, codes.ASSERT_NOT, codes.AT):
        return [""]
    below = _below(code, value)
    if below is None:
        return [""]
    texts = [text for tree in below for text in _examples(tree, alphabet)]
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        least = value[0]
        return [text * least for text in texts] if least else ["", *texts]
    return texts


def _is_in(code: Any, value: Any, character: str) -> bool:
    if code == codes.ANY:
        return character != "\n"
    if code == codes.NOT_LITERAL:
        return ord(character) != value
    negated = bool(value) and value[0][0] == codes.NEGATE
    return any(_is_item(item, character) for item in value) != negated


def _is_item(item: Any, character: str) -> bool:
    code, value = item
    if code == codes.LITERAL:
        return ord(character) == value
    if code == codes.RANGE:
        return value[0] <= ord(character) <= value[1]
    if code == codes.CATEGORY:
        return _category(str(value)).fullmatch(character) is not None
    return False


@cache
def _category(name: str) -> re.Pattern[str]:
    letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[name.rpartition("_")[2]]
    return re.compile("\\" + (letter.upper() if "_NOT_" in name else letter))


# --- time ---------------------------------------------------------------------------------------------------------


def slowest(pattern: re.Pattern[Any], uses: Iterable[str]) -> str | None:
    """Return the input for which the time grows faster than in proportion, as a Python expression."""
    for use in sorted(set(map(_USES.__getitem__, uses)), key=str):
        for before, repeated, end in hostile(pattern):
            if _grows(pattern, use, before, repeated, end):
                return f"{before!r} + {repeated!r} * n + {end!r}"
    return None


def _grows(pattern: re.Pattern[Any], use: _Use, before: str, repeated: str, end: str) -> bool:
    def took(size: int) -> float:
        text = before + repeated * (size // len(repeated)) + end
        data = text.encode("utf-8", "surrogateescape") if isinstance(pattern.pattern, bytes) else text
        started = time.thread_time()
        use(pattern, data)
        return time.thread_time() - started

    for size in SIZES:
        once = took(size)
        if size == SIZES[-2] and once < FAST_S:
            return False
        if once < LEAST_S:
            continue
        # Again, because the time of one run may be that of something else.
        long = min(took(size) for _ in range(4))
        if long >= LEAST_S and (size <= 32 or long > MOST_GROWTH * max(took(size // 4) for _ in range(2))):
            return True
    return False
