"""Find the constructs of a line by which a word becomes a program, or a value a command.

Bash runs commands in subscripts that it evaluates as arithmetic, looks programs up in tables that a line can fill,
and reads variables that change what other words mean. Node types that are not listed here are in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from jumpseat.agent.shell.grammar import nodes, parser
from jumpseat.agent.shell.programs import INTERPRETERS, SHELLS
from jumpseat.agent.shell.starters import DECIDING_VARIABLES

if TYPE_CHECKING:
    from tree_sitter import Node


class Doubt(Struct, frozen=True):
    """A word that may start a program which is not known, and why."""

    word: str
    why: str

    def __str__(self) -> str:
        return f"{self.word[:80]!r} {self.why}"


class Constructs(Struct):
    """The constructs of a line: the first ``doubt``, names of ``functions``, and paths in ``values``."""

    doubt: Doubt | None
    functions: frozenset[str]
    values: tuple[str, ...]
    commands: int


def find_constructs(line: str, obeyed: Callable[[str], bool]) -> Constructs:
    """Examine the constructs of a line. ``obeyed`` returns whether a variable is in the environment of commands."""
    walk = _Walk(line, obeyed)
    walk.run()
    return Constructs(walk.doubt, frozenset(walk.functions), tuple(walk.values), walk.commands)


class _Walk:
    def __init__(self, line: str, obeyed: Callable[[str], bool]) -> None:
        self.doubt: Doubt | None = None
        self.functions: set[str] = set()
        self.values: list[str] = []
        self.commands = 0
        self._obeyed = obeyed
        self._source = line.encode("utf-8", "replace")
        self._exports = re.search(r"\b(?:export|declare|typeset|local|readonly|env)\b|\bset\s+-[a-z]*[ak]", line)
        self._numeric = re.search(r"\b(?:read|mapfile|readarray|getopts)\b", line) is None
        self._arithmetic: list[str] = []

    def run(self) -> None:
        for node in nodes(parser().parse(self._source).root_node):
            if node.is_error or node.is_missing:
                self._doubt(node, "cannot be parsed with certainty")
            elif node.is_named:
                self._examine(node)
            if self.doubt is not None:
                return
        for text in self._arithmetic:
            if not self._numeric or not _NUMERIC.fullmatch(text):
                self.doubt = Doubt(text, "is evaluated as arithmetic, which may run commands in a subscript")

    def _examine(self, node: Node) -> None:
        text = self._text(node)
        match node.type:
            case "command":
                self.commands += 1
            case "variable_assignment":
                self._assignment(node, text)
            case "function_definition":
                self.functions.add(self._text(node.named_children[0]))
            case "expansion":
                if not _EXPANSION.match(text) or "[" in text:
                    self._doubt(node, "is an expansion that may name or run anything")
            case "arithmetic_expansion":
                self._arithmetic.append(re.sub(r"\A\$\(\(|\)\)\Z|\A\$\[|\]\Z", "", text))
            case "c_style_for_statement":
                self._arithmetic.append(text.partition("do")[0].removeprefix("for").strip(" \t\n;()"))
            case "compound_statement" if text.startswith("(("):
                self._arithmetic.append(text.strip("() \t\n"))
            case "test_command":
                if text.startswith("((") or (text.startswith("[[") and _COMPARES.search(text)):
                    inner = text.strip("()[] \t\n")
                    self._arithmetic += [
                        part.strip() for part in re.split(r"&&|\|\||-(?:eq|ne|lt|le|gt|ge)\b", inner)
                    ]
                if re.search(r"(?<!\S)-[vR](?!\S)", text):
                    self._doubt(node, "evaluates a name, which may run commands in a subscript")
            case "for_statement" | "select_statement":
                self._loop(node)
            case "declaration_command" | "unset_command":
                self._declaration(node)
            case kind if kind not in _PLAIN:
                self._doubt(node, "is a construct that is not judged")
            case _:
                pass

    def _assignment(self, node: Node, text: str) -> None:
        name, _, value = text.partition("=")
        name = name.removesuffix("+")
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            self._doubt(node, "sets an element of a table, which may name a program")
            return
        if DECIDING_VARIABLES.fullmatch(name):
            self._doubt(node, f"sets {name}, which decides what other words mean")
            return
        parent = node.parent.type if node.parent is not None else ""
        if not re.fullmatch(r"[\w.+:/,-]*", value):
            self._numeric = False
        if parent in ("command", "declaration_command") or self._exports or self._obeyed(name):
            plain = value.strip("'\"") if value[:1] in ("'", '"') and value[-1:] == value[:1] else value
            base = plain.rpartition("/")[2]
            if not _VALUE.fullmatch(plain) or base in SHELLS or INTERPRETERS.match(base):
                self._doubt(node, "sets a variable that a program may obey to more than a plain word")
            elif not _URL.match(plain):
                self.values.append(plain)

    def _loop(self, node: Node) -> None:
        name, *words = [self._text(child) for child in node.named_children if child.type != "do_group"]
        if not re.fullmatch(r"[a-z_]\w*", name):
            self._doubt(node, f"sets {name} to many values")
        if not all(re.fullmatch(r"[\w.+:/,-]*|\{\d+\.\.\d+\}", word) for word in words):
            self._numeric = False

    def _declaration(self, node: Node) -> None:
        for child in node.named_children:
            text = self._text(child)
            if child.type not in ("variable_assignment", "variable_name") and not re.fullmatch(
                r"-[xrgaAfFp]+|[a-z_]\w*", text
            ):
                self._doubt(node, "declares names in a way that is not judged")

    def _doubt(self, node: Node, why: str) -> None:
        self.doubt = self.doubt or Doubt(self._text(node), why)

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")


_PLAIN: Final = frozenset({
    "ansi_c_string", "array", "binary_expression", "brace_expression", "case_item", "case_statement",
    "command_name", "command_substitution", "comment", "compound_statement", "concatenation", "do_group",
    "elif_clause", "else_clause", "extglob_pattern", "file_descriptor", "file_redirect", "heredoc_body",
    "heredoc_content", "heredoc_end", "heredoc_redirect", "heredoc_start", "herestring_redirect", "if_statement",
    "list", "negated_command", "number", "parenthesized_expression", "pipeline", "postfix_expression",
    "process_substitution", "program", "raw_string", "redirected_statement", "regex", "simple_expansion",
    "special_variable_name", "string", "string_content", "subshell", "ternary_expression", "test_operator",
    "translated_string", "unary_expression", "variable_assignments", "variable_name", "while_statement", "word",
})  # fmt: skip
_EXPANSION: Final = re.compile(
    r"\$\{(?:#?[A-Za-z_]\w*|[0-9@*#?])(?:\}|:?[-+?]|##?|%%?|//?|\^\^?\}|,,?\}|:\d+(?::\d+)?\})"
)
_NUMERIC: Final = re.compile(r"(?:[\w\s+*/%()<>=!&|^?:,.;-]|\$(?=\w))*+")
_COMPARES: Final = re.compile(r"-(?:eq|ne|lt|le|gt|ge)\b")
_VALUE: Final = re.compile(r"[\w.,:+@%/=~-]*|[a-z][a-z0-9+]*://[\w.,:+@%/=~?&#-]*")
_URL: Final = re.compile(r"[a-z][a-z0-9+]*://")
