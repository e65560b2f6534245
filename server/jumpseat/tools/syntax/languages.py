"""The languages whose syntax is checked. To add a language, add one entry; its grammar is a requirement."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from jumpseat.tools.syntax.exact import toml_errors, yaml_errors
from jumpseat.tools.syntax.html_tags import html_errors
from jumpseat.tools.syntax.lenient import Check, indentation_errors, mismatched_jsx, stray_end, unended_css
from jumpseat.tools.syntax.lexemes import SignsOf, signs_of_css
from jumpseat.tools.syntax.parsing import SyntaxProblem

if TYPE_CHECKING:
    from tree_sitter import Language


class Syntax(Struct, frozen=True):
    """A language: the suffixes of its files, the package of its grammar, and what its grammar gets wrong.

    ``function`` returns the grammar. ``errors`` takes the place of a grammar. Files that ``otherwise`` can
    parse have no errors: two languages share the suffix, of which files with one of the ``words`` are probably in
    the first. ``also`` finds errors that the grammar does not report.
    ``gaps`` matches errors that are due to the grammar: two lines and the message. Files ``in_templates`` may be
    written in a template language. Where a parser ``resumes``, an error hides none that follow.
    With ``macros``, programs define syntax of their own.
    ``signs_of`` finds brackets and quotes without a partner in files whose errors ``gaps`` would hide.
    """

    suffixes: tuple[str, ...]
    package: str = ""
    function: str = "language"
    errors: Callable[[bytes], list[SyntaxProblem] | None] | None = None
    otherwise: Syntax | None = None
    words: tuple[bytes, ...] = ()
    also: Check | None = None
    gaps: re.Pattern[bytes] = re.compile(rb"\{%|%\}|<%|%>")
    in_templates: bool = False
    resumes: bool = False
    macros: bool = False
    signs_of: SignsOf | None = None


_C: Final = Syntax((".c",), "tree_sitter_c", macros=True)

LANGUAGES: Final[Mapping[str, Syntax]] = {
    "bash": Syntax((".sh", ".bash"), "tree_sitter_bash"),
    "c": _C,
    "c or c++": Syntax(
        (".h",),
        "tree_sitter_cpp",
        otherwise=_C,
        words=(b"::", b"\nclass ", b"\nnamespace ", b"\ntemplate", b"\nusing ", b"public:", b"private:"),
        macros=True,
    ),
    "c++": Syntax(
        (".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx", ".cppm", ".ixx"),
        "tree_sitter_cpp",
        gaps=re.compile(rb"^\s*+(?:export\s++)?(?:module|import)\b"),
        macros=True,
    ),
    "c#": Syntax(
        (".cs",), "tree_sitter_c_sharp", gaps=re.compile(rb"^\s*+(?:else[ \t]*+\n\s*+)?#|'#endif' is missing")
    ),
    "css": Syntax(
        (".css",),
        "tree_sitter_css",
        also=unended_css,
        signs_of=signs_of_css,
        gaps=re.compile(rb"! important|url\([^()'\"]++\)|^\s*+[*_]\w|progid:|--[\w*]|^\s*+@|;\s*+;|.{2000}"),
        in_templates=True,
    ),
    "go": Syntax((".go",), "tree_sitter_go"),
    "html": Syntax(
        (".html", ".htm"),
        errors=html_errors,
        gaps=re.compile(rb"(?!)"),
        resumes=True,
        in_templates=True,
    ),
    "java": Syntax((".java",), "tree_sitter_java", gaps=re.compile(rb"\bimport module\b")),
    "javascript": Syntax(
        (".js", ".mjs", ".cjs", ".jsx"),
        "tree_sitter_javascript",
        also=mismatched_jsx,
        gaps=re.compile(rb"\bas (?:\w++),?\s*+\}|\bimport (?:defer|source) "),
    ),
    "json": Syntax((".json", ".jsonc"), "tree_sitter_json"),
    "python": Syntax(
        (".py", ".pyi"),
        "tree_sitter_python",
        also=indentation_errors,
        gaps=re.compile(rb"^\s*+(?:async def|def|class|type)\s++\w++\[[^\]=]*+="),
    ),
    "ruby": Syntax((".rb", ".rake", ".gemspec"), "tree_sitter_ruby", also=stray_end),
    "rust": Syntax((".rs",), "tree_sitter_rust", gaps=re.compile(rb"\bsafe (?:fn|static)\b")),
    "toml": Syntax((".toml",), errors=toml_errors),
    "tsx": Syntax((".tsx",), "tree_sitter_typescript", "language_tsx", also=mismatched_jsx),
    "typescript": Syntax(
        (".ts", ".mts", ".cts"),
        "tree_sitter_typescript",
        "language_typescript",
        gaps=re.compile(
            rb"(?:^|[<,])\s*+(?:in|out) \w|\bglobal \{|\bimport\(|\}\s*+\?\s*+:|\bexport type \*|\bimport defer "
            rb"|\bdefault abstract\b"
        ),
    ),
    "yaml": Syntax((".yaml", ".yml"), errors=yaml_errors, in_templates=True),
}

_BY_SUFFIX: Final = {suffix: name for name, syntax in LANGUAGES.items() for suffix in syntax.suffixes}


def language_of(name: str) -> str | None:
    """Return the language of the file ``name``; ``None`` if its syntax is not checked."""
    suffix = re.search(r"\.[a-z]+\Z", name[-12:].lower())
    return None if suffix is None else _BY_SUFFIX.get(suffix[0])


@cache
def grammar(syntax: Syntax) -> Language:
    """Return the grammar of a language. Imports its package with the first use.

    Raises:
        ImportError: the package is not installed.
    """
    import tree_sitter

    function: Callable[[], object] = getattr(import_module(syntax.package), syntax.function)
    return tree_sitter.Language(function())
