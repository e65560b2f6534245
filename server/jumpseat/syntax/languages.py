"""The languages whose syntax is checked. To add a language, add one entry; its grammar is a requirement."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from tree_sitter import Language


class Syntax(Struct, frozen=True):
    """A language: the package of its grammar, the suffixes of its files, and what its grammar gets wrong.

    ``function`` returns the grammar. Files that ``otherwise`` can parse without errors have none: the same suffix
    has two languages. ``gaps`` matches the lines of errors that may be due to the grammar, ``foreign`` texts that
    are templates or dialects. With ``macros``, programs define syntax of their own.
    """

    package: str
    suffixes: tuple[str, ...]
    function: str = "language"
    otherwise: str = ""
    gaps: str = ""
    foreign: str = ""
    macros: bool = False


TEMPLATE: Final = r"\{\{|\{%|<%|<\?php"
"""Marks of template languages."""

LANGUAGES: Final[Mapping[str, Syntax]] = {
    "bash": Syntax("tree_sitter_bash", (".sh", ".bash"), foreign=r"\A#!.*\b(?:zsh|fish|ksh)\b"),
    "c": Syntax("tree_sitter_c", (".c", ".h"), otherwise="cpp", macros=True),
    "cpp": Syntax("tree_sitter_cpp", (".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx"), macros=True),
    "csharp": Syntax("tree_sitter_c_sharp", (".cs",), gaps=r"^\s*#"),
    "css": Syntax("tree_sitter_css", (".css",), gaps=r"! important|url\(|^\s*[*_]", foreign=TEMPLATE),
    "go": Syntax("tree_sitter_go", (".go",)),
    "html": Syntax("tree_sitter_html", (".html", ".htm"), foreign=TEMPLATE + r"|\A---|\A\s*<\?xml"),
    "java": Syntax("tree_sitter_java", (".java",)),
    "javascript": Syntax("tree_sitter_javascript", (".js", ".mjs", ".cjs", ".jsx"), foreign=r"@flow\b"),
    "json": Syntax("tree_sitter_json", (".json", ".jsonc")),
    "python": Syntax("tree_sitter_python", (".py", ".pyi")),
    "ruby": Syntax("tree_sitter_ruby", (".rb", ".rake", ".gemspec")),
    "rust": Syntax("tree_sitter_rust", (".rs",)),
    "toml": Syntax("tree_sitter_toml", (".toml",)),
    "tsx": Syntax("tree_sitter_typescript", (".tsx",), function="language_tsx"),
    "typescript": Syntax(
        "tree_sitter_typescript",
        (".ts", ".mts", ".cts"),
        function="language_typescript",
        gaps=r"\b(?:in|out) \w|\bglobal \{|import\(",
    ),
    "yaml": Syntax("tree_sitter_yaml", (".yaml", ".yml"), foreign=TEMPLATE),
}

_BY_SUFFIX: Final = {suffix: name for name, syntax in LANGUAGES.items() for suffix in syntax.suffixes}


def language_of(name: str) -> str | None:
    """Return the language of the file ``name``; ``None`` if its syntax is not checked."""
    suffix = re.search(r"\.[a-z]+\Z", name[-12:].lower())
    return None if suffix is None else _BY_SUFFIX.get(suffix[0])


@cache
def grammar(language: str) -> Language:
    """Return the grammar of a language. Imports its package with the first use.

    Raises:
        ImportError: the package is not installed.
    """
    import tree_sitter

    syntax = LANGUAGES[language]
    function: Callable[[], object] = getattr(import_module(syntax.package), syntax.function)
    return tree_sitter.Language(function())
