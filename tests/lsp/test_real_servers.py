"""Seeded errors in the languages of well-known servers: all that an edit brings are told, none that were there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from tests.lsp.parts import DONE, project_with
from tests.support.language_servers import environ_with, require_server
from tests.support.limits import WAIT_S
from tests.support.server import running_server, scripted

pytestmark = pytest.mark.anyio


class Seeded(NamedTuple):
    """Edits of a project that has errors, with the words of the diagnostics that each edit brings.

    Words begin with the place.
    """

    server: str
    files: dict[str, str]
    edits: list[tuple[str, str, str, list[str]]]


LANGUAGES = {
    "Python": Seeded(
        "basedpyright-langserver",
        {
            "calc.py": "def rate(x: int) -> int:\n    return x\n\n\nold: str = 3\n",
            "report.py": "from calc import rate\n\nprint(rate(1), older)\n",
        },
        [
            (
                "calc.py",
                "def rate(x: int)",
                "# A rate.\n\n\ndef rate(x: int, y: int)",
                ["report.py:3: Argument"],
            ),
            ("calc.py", "return x", "return x + missing", ['calc.py:5: "missing"']),
            ("report.py", "rate(1)", "rate(1, 'a')", ["report.py:3: Argument of type"]),
            ("calc.py", "return x + missing", "return x", []),
        ],
    ),
    "TypeScript": Seeded(
        "typescript-language-server",
        {
            "tsconfig.json": '{"compilerOptions": {"strict": true}}',
            "calc.ts": "export function rate(x: number): number {\n  return x;\n}\nconst old: string = 3;\n",
            "report.ts": 'import { rate } from "./calc";\n\nconsole.log(rate(1), older);\n',
        },
        [
            ("calc.ts", "rate(x: number)", "rate(x: number, y: number)", ["report.ts:3: Expected 2"]),
            ("calc.ts", "return x;", "\n  return x + missing;", ["calc.ts:3: Cannot find name 'missing'"]),
            ("report.ts", "rate(1)", "rate(1, 'a')", ["report.ts:3: Argument of type"]),
            ("calc.ts", "return x + missing;", "return x;", []),
        ],
    ),
    "JavaScript": Seeded(
        "typescript-language-server",
        {
            "jsconfig.json": '{"compilerOptions": {"checkJs": true, "module": "esnext"}}',
            "calc.js": "export function rate(x) {\n  return x;\n}\nold();\n",
            "report.js": 'import { rate } from "./calc.js";\n\nrate(1);\nolder();\n',
        },
        [
            ("calc.js", "function rate(", "function rateOf(", ["report.js:1: "]),
            ("calc.js", "return x;", "return x + missing;", ["calc.js:2: Cannot find name 'missing'"]),
            ("report.js", "import { rate }", "import { rateOf as rate }", []),
        ],
    ),
    "Go": Seeded(
        "gopls",
        {
            "go.mod": "module example.com/m\n\ngo 1.21\n",
            "calc.go": "package m\n\nfunc Rate(x int) int {\n\treturn x\n}\n\nvar Old string = 3\n",
            "report.go": "package m\n\nvar Report = Rate(1) + older\n",
        },
        [
            ("calc.go", "Rate(x int)", "Rate(x int, y int)", ["report.go:3: not enough arguments"]),
            ("calc.go", "return x", "// Add.\n\treturn x + missing", ["calc.go:5: undefined: missing"]),
            ("report.go", "Rate(1)", 'Rate(1, "a")', ["report.go:3: cannot use"]),
            ("calc.go", "return x + missing", "return x", []),
        ],
    ),
    "C": Seeded(
        "clangd",
        {
            "calc.h": "int rate(int x);\n",
            "calc.c": '#include "calc.h"\n\nint rate(int x) { return x; }\nint old = older;\n',
            "report.c": '#include "calc.h"\n\nint report(void) { return rate(1); }\nint old = oldest;\n',
        },
        [
            (
                "report.c",
                "rate(1)",
                "rate(1) + missing",
                ["report.c:3: Use of undeclared identifier 'missing'"],
            ),
            (
                "calc.h",
                "rate(int x)",
                "rate(int x, int y)",
                ["calc.c:3: Conflicting types", "report.c:3: Too few arguments"],
            ),
            ("calc.c", "rate(int x) {", "rate(int x, int y) {", []),
        ],
    ),
    "C++": Seeded(
        "clangd",
        {
            "calc.hpp": "struct Rate {\n  int value;\n};\n",
            "report.cpp": '#include "calc.hpp"\n\nint report(Rate rate) { return rate.value; }\nint old = older;\n',
        },
        [
            ("report.cpp", "rate.value", "rate.missing", ["report.cpp:3: No member named 'missing'"]),
            ("report.cpp", "rate.missing", "rate.value", []),
            ("calc.hpp", "int value", "int amount", ["report.cpp:3: No member named 'value'"]),
        ],
    ),
    "Rust": Seeded(
        "rust-analyzer",
        {
            "Cargo.toml": '[package]\nname = "m"\nversion = "0.1.0"\nedition = "2021"\n',
            "src/lib.rs": "pub mod calc;\n\npub fn report() -> i32 {\n    calc::rate(1) + older\n}\n",
            "src/calc.rs": "pub fn rate(x: i32) -> i32 {\n    x\n}\n",
        },
        [
            # It loads a project for half a minute, and tells further errors too late to be waited for.
            ("src/calc.rs", "rate(x: i32)", "rate(x: i32, y: i32)", ["src/lib.rs:4: "]),
        ],
    ),
}


class Asked(NamedTuple):
    """A function: where it is called and defined, by ``PATH:LINE``, and what the outline of its file has."""

    server: str
    symbol: str
    call: str
    definition: str
    outlined: str


TOOLS = {
    "Python": Asked("basedpyright-langserver", "rate", "report.py:3", "calc.py:1", "1: function rate"),
    "TypeScript": Asked("typescript-language-server", "rate", "report.ts:3", "calc.ts:1", "1: function rate"),
    "Go": Asked("gopls", "Rate", "report.go:3", "calc.go:3", "3: function Rate"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("language", TOOLS)
async def test_definitions_uses_and_symbols_are_found_and_renamed(language: str, tmp_path: Path) -> None:
    asked = TOOLS[language]
    programs = require_server(asked.server)
    project = project_with(tmp_path, LANGUAGES[language].files)
    config = f"trusted_folders = [{json.dumps(str(project))}]\n[permissions]\nallow_unasked = true\n"
    config += "[lsp.other]\ndisabled = true\n"
    call, definition = asked.call.split(":")[0], asked.definition.split(":")[0]
    async with running_server(tmp_path, config=config, env=environ_with(programs), limit_s=400) as server:
        session = await server.wire.create(scripted(DONE), workingDirectory=str(project))

        async def lsp(operation: str, path: str, **more: str | int) -> str:
            params = {
                "sessionId": session,
                "name": "lsp",
                "arguments": {"operation": operation, "path": path, **more},
            }
            text: str = (await server.wire.call("session.tools.execute", params))["textResultForLlm"]
            return text

        line = int(asked.call.split(":")[1])
        found = await lsp("definition", call, symbol=asked.symbol, line=line)
        assert asked.definition in found, found
        uses = await lsp("references", definition, symbol=asked.symbol)
        assert asked.call in uses
        assert asked.definition in uses
        assert asked.outlined in await lsp("symbols", definition)
        renamed = await lsp("rename", definition, symbol=asked.symbol, new_name="price")
        assert call in renamed, renamed
        assert definition in renamed
        for path, place in ((call, asked.call), (definition, asked.definition)):
            assert "price" in (project / path).read_text().splitlines()[int(place.split(":")[1]) - 1]


@pytest.mark.thorough
@pytest.mark.parametrize("language", LANGUAGES)
async def test_seeded_errors_are_told_and_old_ones_are_not(language: str, tmp_path: Path) -> None:
    seeded = LANGUAGES[language]
    programs = require_server(seeded.server)
    project = project_with(tmp_path, seeded.files)
    config = (
        f"trusted_folders = [{json.dumps(str(project))}]\n"
        "[permissions]\nallow_unasked = true\n[lsp]\nwait_s = 60.0\n"
    )
    async with running_server(tmp_path, config=config, env=environ_with(programs), limit_s=200) as server:
        session = await server.wire.create(scripted(DONE), workingDirectory=str(project))

        async def call(name: str, **arguments: str) -> str:
            params = {"sessionId": session, "name": name, "arguments": arguments}
            text: str = (await server.wire.call("session.tools.execute", params))["textResultForLlm"]
            return text

        for path, old, new, expected in seeded.edits:
            text = await call("edit", path=path, old_str=old, new_str=new)
            assert text.startswith(f"File {path} updated with changes.")
            told = places(text)
            with anyio.fail_after(WAIT_S):
                # What a busy server finds late is in a later result.
                while not all(any(matches(words, line) for line in told) for words in expected):
                    told += places(await call("view", path=path))
            assert len(told) == len(expected), told


def places(text: str) -> list[str]:
    """Return the places and messages of the problems in a result."""
    told = text.partition("may have brought:\n")[2].splitlines()
    return [line for line in told if not line.startswith("  ")]


def matches(words: str, line: str) -> bool:
    place, _, message = words.partition(" ")
    return line.startswith(place) and message in line
