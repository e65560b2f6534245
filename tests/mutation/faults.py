"""Seeded faults: small changes to the server's code that a good test notices. Pure functions over source text.

Three kinds: a comparison is inverted, a line is removed, an ``await`` is dropped. Every kind yields a module that
still compiles, so that tests fail because of behaviour and not because of syntax.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["comparison", "line", "await"]

_OPPOSITES: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
# Statements that can be replaced by `pass`; removing a definition or an import would fail at import time.
_REMOVABLE: Final = (
    ast.Assign,
    ast.AugAssign,
    ast.Expr,
    ast.Raise,
    ast.Return,
    ast.Delete,
    ast.Continue,
    ast.Break,
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One change: the ``lines`` (first and last, from 1) of ``path`` become ``text``."""

    path: str
    kind: Kind
    lines: tuple[int, int]
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.lines[0]} {self.kind}: {' '.join(self.text.split())[:80]}"

    def applied_to(self, source: str) -> str:
        """Return ``source`` with the fault applied."""
        all_lines = source.splitlines(keepends=True)
        first, last = self.lines
        return "".join([*all_lines[: first - 1], self.text, *all_lines[last:]])


def faults_in(path: str, source: str) -> list[Fault]:
    """Return all faults that can be seeded into the functions of one module, in the order of the file."""
    found: dict[Fault, None] = {}
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for kind, node, text in _changes(function):
                found[_fault(path, source, kind, node, text)] = None
    return sorted(found, key=lambda fault: (fault.lines, fault.kind, fault.text))


def seeded(root: Path, folders: Sequence[str], count: int, seed: int) -> list[Fault]:
    """Return ``count`` faults drawn from the modules below ``folders`` of ``root``, the same for the same seed."""
    modules = sorted(path for folder in folders for path in (root / folder).rglob("*.py"))
    found = [fault for path in modules for fault in faults_in(str(path.relative_to(root)), path.read_text())]
    return random.Random(seed).sample(found, min(count, len(found)))


def _changes(function: ast.AST) -> Iterator[tuple[Kind, ast.expr | ast.stmt, str]]:
    for node in ast.walk(function):
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                turned = ast.Compare(left, [_OPPOSITES[type(op)]()], [right])
                yield "comparison", node, f"({ast.unparse(turned)})"
            case ast.Await(value=value):
                yield "await", node, f"({ast.unparse(value)})"
            case ast.Expr(value=ast.Constant()):
                pass  # a docstring, or the body of a protocol
            case ast.stmt() if isinstance(node, _REMOVABLE):
                yield "line", node, "pass"
            case _:
                pass


def _fault(path: str, source: str, kind: Kind, node: ast.expr | ast.stmt, text: str) -> Fault:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    lines = source.splitlines(keepends=True)
    first, last = lines[node.lineno - 1].encode(), lines[node.end_lineno - 1].encode()
    before, after = first[: node.col_offset].decode(), last[node.end_col_offset :].decode()
    return Fault(path, kind, (node.lineno, node.end_lineno), before + text + after)
