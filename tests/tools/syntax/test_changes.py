"""Errors that a change brings are reported, and nothing else is."""

from __future__ import annotations

from jumpseat.tools.syntax.changes import new_problems
from jumpseat.tools.syntax.languages import LANGUAGES
from jumpseat.tools.syntax.versions import MOST_BYTES, Version, Versions
from tests.support.cases import check_each

GO = "package a\n\nfunc f() {\n\treturn\n}\n\nfunc g() {\n\treturn\n}\n"
VALID = {
    ".sh": 'f() {\n  for x in "$@"; do echo "$x"; done\n}\n',
    ".c": "#define M(x) do { x; } while (0)\nint f(int a) {\n  M(a++);\n  return a;\n}\n",
    ".h": "#pragma once\nclass A {\n public:\n  int f() const { return 1; }\n};\n",
    ".cpp": 'auto f() {\n  return R"x(()x";\n}\n',
    ".cs": "namespace A;\nclass B(int c) { int D => c; }\n",
    ".css": "a {\n  color: red;\n  b { margin: 0 }\n}\n",
    ".go": GO,
    ".html": "<!doctype html>\n<ul>\n<li>a<br>\n<li>b</ul>\n<p>{{ x }}</p>\n",
    ".java": 'record A(int b) {\n  String c() { return """\n    d"""; }\n}\n',
    ".js": "const A = () => <b c={1}>d</b>;\nimport d from 'e' with { type: 'json' };\n",
    ".json": '{\n  "a": [1, 2]\n}\n',
    ".py": "try:\n    a\nexcept B, C:\n    type X[T = int] = T\nd = t'{a}'\n",
    ".rb": "def f\n  [1].each do |x|\n    puts x if x.end?\n  end\nend\n",
    ".rs": "fn f<'a>(x: &'a str) -> Option<&'a str> {\n    Some(x)\n}\n",
    ".toml": '[a]\nb = ["c"]\n',
    ".tsx": "const a = (x: X) => <b>{x as Y}</b>;\n",
    ".ts": "interface A<out T> {\n  b: T;\n}\nlet c = d satisfies E;\n",
    ".yaml": "a:\n  - b: ${{ c }}\n    d: [1, 2]\n",
}
BREAKS = {
    ".sh": ("done\n", "\n"),
    ".c": ("  return a;\n}", "  return a;\n"),
    ".h": ("return 1; }", "return 1;"),
    ".cpp": ("f() {", "f( {"),
    ".cs": ("B(int", "Bint"),
    ".css": ("0 }", "0"),
    ".go": ("f() {", "f() "),
    ".html": ("</ul>", ""),
    ".java": ("int b)", "int b"),
    ".js": ("'e'", "'e"),
    ".json": ("1, 2", "1 2"),
    ".py": ("    a\n", "a\n"),
    ".rb": ("do |x|", "|x|"),
    ".rs": ("Some(x)", "Some(x"),
    ".toml": ('"c"', '"c'),
    ".tsx": ("</b>", ""),
    ".ts": ("b: T;\n}", "b: T;\n"),
    ".yaml": ("[1, 2]", "[1, 2"),
}


def brought(name: str, before: str | None, after: str) -> list[tuple[int, str]]:
    """Return the lines and the messages of the errors of a change."""
    found = new_problems(name, None if before is None else before.encode(), after.encode())
    return [(problem.row + 1, problem.message) for problem in found]


def test_valid_files_of_all_languages_have_no_errors_and_broken_ones_have_one() -> None:
    assert {suffix for syntax in LANGUAGES.values() for suffix in syntax.suffixes[:1]} <= set(VALID)

    def check(suffix: str) -> None:
        text, (old, new) = VALID[suffix], BREAKS[suffix]
        for form in (text, text.replace("\n", "\r\n"), "\ufeff" + text):
            assert brought("a" + suffix, None, form) == []
            assert brought("a" + suffix, form, form + "\n") == []
        assert text.count(old) == 1
        assert brought("a" + suffix, text, text.replace(old, new))

    check_each({suffix: suffix for suffix in VALID}, check)


def test_tags_and_declarations_that_grammars_take_for_others_are_reported() -> None:
    cases = {
        "mismatched": ("a.jsx", "const a = <b><c>d</c></b>;\n", "</c>", "</e>", "expected </c> of line 1"),
        "stray": ("a.html", "<div>\n<p>a\n</div>\n", "<p>a\n", "<p>a\n</div>\n", "</div> closes no element"),
        "unclosed": ("b.html", "<div>\n<b>a</b>\n</div>\n", "a</b>", "a", "<b> is not closed"),
        "attribute": ("c.html", '<a href="b">c</a> <i class="d">e</i>\n', 'b">', "b>", "the tag <a> is not closed"),
        "end": ("d.html", "<div>\n</div>\n<p>\n", "</div>", "</div", "the tag </div> is not closed"),
        "comment": ("e.html", "<!-- a -->\n<p>b\n", "a -->", "a --", "the comment is not closed"),
        "template": ("f.html", "{% if a %}\n<b>\n</b>\n{% endif %}\n", "</b>", "</b", "the tag </b> is not closed"),
        "optional": ("g.html", "<dl><dt>ab</dt>\n<dd>c</dd></dl>\n", "</dt>", "dt>", "'</' is missing before"),
        "last": ("h.html", "<html><body>\na\n</body></html>\n", "</html>", "html>", "'</' is missing before"),
        "doctype": ("i.html", "<!doctype html>\n<html><p>a</html>\n", "l>", "l", "the tag <!DOCTYPE> is not"),
        "minified": ("b.css", "a{top:0;left:1px}b{top:1px}\n", "0;", "0", "';' is missing"),
        "variable": ("c.css", "a {\n  top: var(--b);\n  left: 0;\n}\n", "b);", "b)", "';' is missing"),
        "property": ("d.css", ":root {\n  /* c */\n  --a: 1px;\n  --b: 2px;\n}\n", "1px;", "1px", "';' is missing"),
        "css": ("a.css", "a {\n  x: url(b?c=d);\n  color: #ddd;\n  top: 0;\n}\n", "ddd;", "ddd", "';' is missing"),
    }  # fmt: skip

    def check(case: tuple[str, str, str, str, str]) -> None:
        name, text, old, new, message = case
        assert brought(name, text, text + "\n") == []
        assert [told for _, told in brought(name, text, text.replace(old, new, 1)) if told.startswith(message)]

    check_each(cases, check)


def test_what_looks_like_a_missing_sign_is_none() -> None:
    cases = {
        "a.html": "<ul><li>b > c</li>\n<li>map> </li></ul>\n<p>a -> p > d\n",
        "a.css": "a { background: url(data:b;c:d) }\nb:hover { --c: d:e; filter: progid:F.G(h=1); color: red }\n",
    }
    assert {name: brought(name, text, f"\n{text}") for name, text in cases.items()} == {name: [] for name in cases}


def test_an_old_error_is_not_reported_wherever_it_moves_and_a_new_one_is_if_another_one_goes() -> None:
    old = GO.replace("func f() {", "func f( {")
    assert brought("a.go", old, "// new\n\n" + old) == []
    swapped = "package a\n\nfunc g() {\n\treturn\n}\n\nfunc f( {\n\treturn\n}\n"
    assert brought("a.go", old, swapped) == []
    assert brought("a.go", old, old.replace("func g() {", "func g() }")) != []
    assert brought("a.go", old, old.replace("f( {", "ff( {")) == []
    assert brought("a.go", old, GO.replace("g() {", "g( {")) == [(7, "')' is missing")]


def test_an_error_that_the_parser_notices_far_away_is_reported_where_the_change_is() -> None:
    rest = "def g\n  1\nend\n" * 40
    found = brought("a.rb", "def f\n  if a\n    1\n  end\nend\n" + rest, "def f\n  if a\n    1\nend\n" + rest)
    assert [line for line, _ in found] == [4]


def test_dialects_have_no_errors() -> None:
    helm = "{{- if .a }}\nb: {{ .c }}\n  {{- toYaml .d | nindent 2 }}\n{{- end }}\n"
    assert brought("a.yaml", None, helm) == []
    assert brought("a.yaml", helm, helm + "e: 1\n") == []
    assert brought("tsconfig.json", None, '{\n  // note\n  "a": 1,\n}\n') == []
    assert brought("package.json", None, '{\n  "a": 1,\n}\n') != []
    macros = "FOO_BEGIN\nSTATIC_INLINE int f(BAR x) __THROW\n{\n  return x;\n}\n"
    assert brought("a.h", None, macros) == []
    assert brought("a.h", macros, macros.replace("return x;\n}", "return x;\n")) == [
        (5, "'{' is not closed in line 3")
    ]


def test_what_grammars_do_not_know_yet_is_no_error() -> None:
    texts = (
        (
            "a.css",
            "@media (width >= 600px) { a { color: red } }\n@container (400px <= width <= 700px) { b { top: 0 } }\n",
        ),
        ("b.css", "a { --x: {a:b}; --empty:; color: red;; }\n"),
        ("a.html", "<!doctype html><html><head><title>x</title><body><p>a<table><tr><td>b</table>\n"),
        ("b.html", "</div></body></html>\n"),
        ("c.html", "<!doctype html><html><body><div>\n"),
        (
            "d.html",
            "<svg><path d='a'/><![CDATA[<b>]]></svg><script>a < '<c>'</SCRIPT ><input b value=a/b?c=d>\n",
        ),
        ("c.css", "a { filter: progid:X.Y(a=b); b: url(data:c;d,e); f:hover g:focus { top: 0 } }\n"),
        ("a.tsx", "const a = <><b.c d={<e/>}></b.c></>;\n"),
        ("a.rs", 'unsafe extern "C" { pub safe fn f(); }\n'),
        ("a.ts", "export default abstract class {}\n"),
    )
    check_each({name: (name, text) for name, text in texts}, lambda case: _has_none(*case))


def _has_none(name: str, text: str) -> None:
    assert brought(name, None, text) == []


def test_texts_that_no_parser_can_finish_are_not_reported() -> None:
    texts = {".py": "(", ".json": "[", ".html": "<a>", ".cpp": "<", ".yaml": "[", ".toml": "a = [", ".rb": "end "}
    for suffix, text in texts.items():
        new_problems("a" + suffix, text.encode(), (text * 60_000).encode())
    assert brought("a.py", None, "(" * 1_100_000) == []
    assert brought("a.sh", None, "\0" * 200_000) == []


def test_only_what_has_changed_is_parsed_again_and_the_errors_are_the_same() -> None:
    versions = Versions()
    text = "".join(f"def f{number}():\n    return [{number}]\n\n\n" for number in range(50))

    def brought_now(before: str, after: str) -> set[int]:
        found = new_problems("a.py", before.encode(), after.encode(), versions)
        return {problem.row + 1 for problem in found}

    longer = text.replace("[7]", "[\n        7,\n    ]")
    broken = longer.replace("[40]", "[40")
    moved = "import os\n\n" + broken
    assert brought_now(text, longer) == set()
    version = versions.find("a.py", "tree_sitter_python", longer.encode())
    assert version is not None
    assert version.found == []
    assert brought_now(longer, broken) == {164}
    # An old error moves, and another one is made.
    assert brought_now(broken, moved) == set()
    assert brought_now(moved, moved.replace("def f3():", "def f3()")) == {15, 16}
    assert brought_now(moved, moved.replace("[40", "[40]")) == set()
    # Changed by somebody else meanwhile.
    assert brought_now("a = 1\n", "a = (\n") == {1}


def test_versions_take_little_memory() -> None:
    versions = Versions()
    for number in range(10):
        versions.note(f"{number}.py", "tree_sitter_python", Version(b"#" * (MOST_BYTES // 3), []))
    assert [
        number
        for number in range(10)
        if versions.find(f"{number}.py", "tree_sitter_python", b"#" * (MOST_BYTES // 3))
    ] == [7, 8, 9]


SIGNS = {
    "a bracket where the preprocessor decides": (
        "a.h",
        "#if A\nint f(int a) {\n#else\nint f() {\n#endif\n  return (1);\n}\n",
        ("(1)", "(1"),
        (6, "'(' is not closed"),
    ),
    "a bracket of a definition": (
        "a.h",
        "X Y Z(\n#define SQUARE(x) ((x) * (x))\n",
        ("((x)", "(x)"),
        (2, "the brackets of this definition do not fit"),
    ),
    "a quote between macros": (
        "a.c",
        'BEGIN int a\nEND(x) X Y Z\nint f() { return g("b"); }\n',
        ('"b"', '"b'),
        (3, "the string is not closed"),
    ),
    "a bracket of a custom property": (
        "a.css",
        "a {\n  color: var(--b);\n}\n",
        ("b)", "b"),
        (2, "'(' is not closed"),
    ),
    "a quote in a line that the grammar does not know": (
        "a.css",
        '@x y;\na[b="c"] {\n  --d: e;\n}\n',
        ('"c"', 'c"'),
        (2, "the string is not closed"),
    ),
    "a semicolon within a line": (
        "a.css",
        "a { margin: 0; padding: 0; color: red; }\n",
        ("0; color", "0 color"),
        (1, "';' is missing before this declaration"),
    ),
}


def test_signs_without_a_partner_are_found_where_no_grammar_can_parse() -> None:
    def check(case: tuple[str, str, tuple[str, str], tuple[int, str]]) -> None:
        name, before, replaced, problem = case
        assert brought(name, before, before.replace(*replaced, 1)) == [problem]

    check_each(SIGNS, check)
    text = "#if A\nint f(int a) {\n#else\nint f() {\n#endif\n  return 1;\n}\n"
    assert brought("a.h", text, text + "/* it's (unfinished */\n// :-(\n") == []
    assert brought("a.h", text, text + "#if B\nint g(int a) {\n#else\nint g() {\n#endif\n}\n") == []
    assert brought("a.css", "a { b: c }\n", "a { b: c }\n/* isn't :( */\nd:hover { e: f }\n") == []


def test_a_bracket_that_is_closed_again_is_no_error_beside_an_old_one() -> None:
    macros = "int old( {\n}\nint f(int x) {\n  return g(x);\n}\n"
    texts = [
        ("a.c", macros, "g(x)", "g(x"),
        ("a.cpp", macros, "g(x);\n}\n", "g(x);\n"),
        ("a.h", "#if A\nint h(int a) {\n#else\nint h() {\n#endif\n}\n" + macros, "g(x)", "g(x"),
        ("a.css", ".a {\n  b: rgb(1);\n}\n", "rgb(1)", "rgb(1"),
    ]
    for name, whole, old, new in texts:
        broken = whole.replace(old, new)
        assert brought(name, whole, broken), name
        assert brought(name, broken, whole) == [], name
