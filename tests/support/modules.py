"""The imports of the project's modules, for tests of the architecture."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple


class Import(NamedTuple):
    """The import of a module, with the names that ``from`` takes from it."""

    module: str
    names: tuple[str, ...]
    for_types: bool
    """Whether the import is for type checkers alone."""


class Module(NamedTuple):
    """A module, parsed."""

    path: Path
    imports: tuple[Import, ...]
    """Absolute imports, also those in functions."""
    documented: bool
    """Whether the module is empty or has a docstring."""

    def imported(self, *, at_run_time: bool = True) -> set[str]:
        """Return the absolute names of the imported modules."""
        return {entry.module for entry in self.imports if not (at_run_time and entry.for_types)}


def parse_modules(root: Path) -> tuple[Module, ...]:
    """Parse all modules below a folder, which takes most of a second for the server's."""
    return tuple(_parse(path) for path in sorted(root.rglob("*.py")))


def _parse(path: Path) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return Module(path, tuple(_imports(tree.body, for_types=False)), not tree.body or bool(ast.get_docstring(tree)))


def _imports(statements: Sequence[ast.AST], *, for_types: bool) -> Iterator[Import]:
    """Yield the imports in statements. Expressions have none, and four times as many nodes."""
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, (), for_types) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module and not node.level:
                yield Import(node.module, tuple(alias.name for alias in node.names), for_types)
        else:
            checking = isinstance(node, ast.If) and _is_type_checking(node.test)
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                inner: Sequence[ast.AST] = getattr(node, field, ())
                if inner and not isinstance(node, ast.expr):
                    yield from _imports(inner, for_types=for_types or (checking and field == "body"))


def _is_type_checking(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "TYPE_CHECKING" for node in ast.walk(test))
