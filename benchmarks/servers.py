"""Measure which errors the results of edits have with real language servers, through jumpseat.

    python -m benchmarks.servers [LANGUAGE...]

In a project of two files with old errors, each of ten edits brings one error, and the next one takes it back. Prints
how many errors were in the result of their edit, in a later one, or in none, how many results had errors that no
edit had brought, quantiles of the time of an edit, and the processes that are left after the server has ended. The
exit code is 1 if an error was not told or something was told that was not new. Edits begin when the language server
has told the first error, which can take a minute.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
from tests.lsp.parts import DONE, project_with
from tests.support.language_servers import require_server
from tests.support.server import RunningServer, running_server, scripted

LATER_S: Final = 20.0
"""How long a later result is waited for."""

FIRST_S: Final = 120.0
SETTLED_S: Final = 3.0
"""Pause after the first edits, in which the server becomes quiet; also time for processes to end."""

PYTHON: Final = {
    "shop.py": """\
from dataclasses import dataclass


@dataclass
class Item:
    name: str
    price: int


def total(items: list[Item], rate: int) -> int:
    result = 0
    for item in items:
        result += item.price * rate
    return result


def cheapest(items: list[Item]) -> Item:
    return min(items, key=lambda item: item.price)


old: str = 3
""",
    "report.py": """\
from shop import Item, cheapest, total

items = [Item("a", 1)]
print(total(items, 2), cheapest(items).name)
print(older)
""",
}
TYPESCRIPT: Final = {
    "tsconfig.json": '{"compilerOptions": {"strict": true}}',
    "shop.ts": """\
export interface Item {
  name: string;
  price: number;
}

export function total(items: Item[], rate: number): number {
  let result = 0;
  for (const item of items) {
    result += item.price * rate;
  }
  return result;
}

export function cheapest(items: Item[]): Item {
  return items.reduce((a, b) => (a.price < b.price ? a : b));
}

const old: string = 3;
""",
    "report.ts": """\
import { Item, cheapest, total } from "./shop";

const items: Item[] = [{ name: "a", price: 1 }];
console.log(total(items, 2), cheapest(items).name);
console.log(older);
""",
}
GO: Final = {
    "go.mod": "module example.com/m\n\ngo 1.21\n",
    "shop.go": """\
package m

type Item struct {
\tName  string
\tPrice int
}

func Total(items []Item, rate int) int {
\tresult := 0
\tfor _, item := range items {
\t\tresult += item.Price * rate
\t}
\treturn result
}

func Cheapest(items []Item) Item {
\tbest := items[0]
\tfor _, item := range items {
\t\tif item.Price < best.Price {
\t\t\tbest = item
\t\t}
\t}
\treturn best
}

var Old string = 3
""",
    "report.go": """\
package m

import "fmt"

var Items = []Item{{"a", 1}}

func Report() {
\tfmt.Println(Total(Items, 2), Cheapest(Items).Name)
\tfmt.Println(older)
}
""",
}
RUST: Final = {
    "Cargo.toml": '[package]\nname = "m"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": """\
pub mod shop;

use shop::{cheapest, total, Item};

pub fn report() -> i32 {
    let items = vec![Item { name: String::new(), price: 1 }];
    total(&items, 2) + cheapest(&items).price
}

pub fn old() -> i32 {
    older
}
""",
    "src/shop.rs": """\
pub struct Item {
    pub name: String,
    pub price: i32,
}

pub fn total(items: &[Item], rate: i32) -> i32 {
    let mut result = 0;
    for item in items {
        result += item.price * rate;
    }
    result
}

pub fn cheapest(items: &[Item]) -> &Item {
    let mut best = &items[0];
    for item in items {
        if item.price < best.price {
            best = item;
        }
    }
    best
}
""",
}
C: Final = {
    "shop.h": """\
struct item {
  const char *name;
  int price;
};

int total(const struct item *items, int count, int rate);
""",
    "shop.c": """\
#include "shop.h"

int total(const struct item *items, int count, int rate) {
  int result = 0;
  for (int i = 0; i < count; i++) {
    result += items[i].price * rate;
  }
  return result;
}

int old = older;
""",
    "report.c": """\
#include "shop.h"

int report(void) {
  struct item items[] = {{"a", 1}};
  return total(items, 1, 2) + items[0].price;
}

int old = oldest;
""",
}
CPP: Final = {
    "shop.hpp": """\
#pragma once

struct Item {
  const char *name;
  int price;
};

int total(const Item *items, int count, int rate);
""",
    "shop.cpp": """\
#include "shop.hpp"

int total(const Item *items, int count, int rate) {
  int result = 0;
  for (int i = 0; i < count; i++) {
    result += items[i].price * rate;
  }
  return result;
}

int old = older;
""",
    "report.cpp": """\
#include "shop.hpp"

int report() {
  Item items[] = {{"a", 1}};
  return total(items, 1, 2) + items[0].price;
}

int old = oldest;
""",
}


class Language(NamedTuple):
    """A project, and edits of it with the place where each one brings an error."""

    server: str
    files: dict[str, str]
    edits: list[tuple[str, str, str, str]]


LANGUAGES: Final = {
    "Python": Language(
        "basedpyright-langserver",
        PYTHON,
        [
            ("shop.py", "return result", "return resul", "shop.py:14:"),
            ("shop.py", "item.price * rate", "item.prices * rate", "shop.py:13:"),
            ("shop.py", "rate: int) -> int", "rate: int, tax: int) -> int", "report.py:4:"),
            ("shop.py", "result = 0", 'result = ""', "shop.py:13:"),
            ("shop.py", "return min(items,", "return max(items.x,", "shop.py:18:"),
            ("shop.py", "def cheapest(", "def cheap(", "report.py:1:"),
            ("shop.py", "    name: str\n", "    title: int\n", "report.py:3:"),
            ("report.py", "total(items, 2)", 'total(items, "2")', "report.py:4:"),
            ("report.py", "cheapest(items).name", "cheapest(items).size", "report.py:4:"),
            ("report.py", 'Item("a", 1)', 'Item("a")', "report.py:3:"),
        ],
    ),
    "TypeScript": Language(
        "typescript-language-server",
        TYPESCRIPT,
        [
            ("shop.ts", "return result", "return resul", "shop.ts:11:"),
            ("shop.ts", "item.price * rate", "item.prices * rate", "shop.ts:9:"),
            ("shop.ts", "rate: number)", "rate: number, tax: number)", "report.ts:4:"),
            ("shop.ts", "let result = 0", 'let result = ""', "shop.ts:11:"),
            ("shop.ts", "a.price < b.price ? a : b", "a.price < b.price", "shop.ts:15:"),
            ("shop.ts", "function cheapest(", "function cheap(", "report.ts:1:"),
            ("shop.ts", "  name: string;\n", "  title: string;\n", "report.ts:3:"),
            ("report.ts", "total(items, 2)", 'total(items, "2")', "report.ts:4:"),
            ("report.ts", "cheapest(items).name", "cheapest(items).size", "report.ts:4:"),
            ("report.ts", "price: 1", 'price: "1"', "report.ts:3:"),
        ],
    ),
    "Go": Language(
        "gopls",
        GO,
        [
            ("shop.go", "return result", "return resul", "shop.go:13:"),
            ("shop.go", "item.Price * rate", "item.Prices * rate", "shop.go:11:"),
            ("shop.go", "rate int) int", "rate int, tax int) int", "report.go:8:"),
            ("shop.go", "result := 0", 'result := ""', "shop.go:11:"),
            ("shop.go", "best := items[0]", "unused := 1\n\tbest := items[0]", "shop.go:17:"),
            ("shop.go", "func Cheapest(", "func Cheap(", "report.go:8:"),
            ("shop.go", "\tName  string\n", "\tTitle string\n", "report.go:8:"),
            ("report.go", "Total(Items, 2)", 'Total(Items, "2")', "report.go:8:"),
            ("report.go", 'import "fmt"', 'import (\n\t"fmt"\n\t"os"\n)', "report.go:5:"),
            ("report.go", '{"a", 1}', '{"a"}', "report.go:5:"),
        ],
    ),
    "Rust": Language(
        "rust-analyzer",
        RUST,
        [
            ("src/shop.rs", "    result\n", "    resul\n", "src/shop.rs:11:"),
            ("src/shop.rs", "item.price * rate", "item.prices * rate", "src/shop.rs:9:"),
            ("src/shop.rs", "rate: i32) -> i32", "rate: i32, tax: i32) -> i32", "src/lib.rs:7:"),
            ("src/shop.rs", "let mut result = 0", 'let mut result = ""', "src/shop.rs:9:"),
            ("src/shop.rs", "best = item;", "best = item.price;", "src/shop.rs:18:"),
            ("src/shop.rs", "fn cheapest(", "fn cheap(", "src/lib.rs:3:"),
            ("src/shop.rs", "    pub name: String,\n", "    pub title: String,\n", "src/lib.rs:6:"),
            ("src/lib.rs", "total(&items, 2)", 'total(&items, "2")', "src/lib.rs:7:"),
            ("src/lib.rs", "cheapest(&items).price", "cheapest(&items).size", "src/lib.rs:7:"),
            ("src/lib.rs", ", price: 1", "", "src/lib.rs:6:"),
        ],
    ),
    "C": Language(
        "clangd",
        C,
        [
            ("shop.c", "return result", "return resul", "shop.c:8:"),
            ("shop.c", "].price * rate", "].prices * rate", "shop.c:6:"),
            ("shop.h", "int rate)", "int rate, int tax)", "report.c:5:"),
            ("shop.h", "int rate)", "int *rate)", "shop.c:3:"),
            ("shop.c", "int result = 0;", "int result = 0, result = 1;", "shop.c:4:"),
            ("shop.h", "  int price;\n", "  int cost;\n", "report.c:5:"),
            ("shop.c", "i < count", "i < counts", "shop.c:5:"),
            ("report.c", "total(items, 1, 2)", "total(items, 1)", "report.c:5:"),
            ("report.c", "items[0].price", "items[0].size", "report.c:5:"),
            ("report.c", "struct item items[]", "struct thing items[]", "report.c:4:"),
        ],
    ),
    "C++": Language(
        "clangd",
        CPP,
        [
            ("shop.cpp", "return result", "return resul", "shop.cpp:8:"),
            ("shop.cpp", "].price * rate", "].prices * rate", "shop.cpp:6:"),
            ("shop.hpp", "int rate)", "int rate, int tax)", "report.cpp:5:"),
            ("shop.cpp", "int result = 0;", 'int result = "";', "shop.cpp:4:"),
            ("shop.cpp", "int result = 0;", "int result = 0, result = 1;", "shop.cpp:4:"),
            ("shop.hpp", "  int price;\n", "  int cost;\n", "report.cpp:5:"),
            ("shop.cpp", "i < count", "i < counts", "shop.cpp:5:"),
            ("report.cpp", "total(items, 1, 2)", 'total(items, 1, "2")', "report.cpp:5:"),
            ("report.cpp", "items[0].price", "items[0].size", "report.cpp:5:"),
            ("report.cpp", "Item items[]", "Thing items[]", "report.cpp:4:"),
        ],
    ),
}


class Report:
    """The figures of one language."""

    def __init__(self) -> None:
        self.told = self.later = 0
        self.never: list[str] = []
        self.false: list[str] = []
        self.times: list[float] = []
        self.left: list[int] = []

    def __str__(self) -> str:
        parts = statistics.quantiles(self.times, n=20)
        return (
            f"told at once {self.told}, later {self.later}, never {len(self.never)}, false {len(self.false)};"
            f" p50 {statistics.median(self.times):.2f} s, p95 {parts[-1]:.2f} s; left {len(self.left)} processes"
        )


async def measure(folder: Path, language: Language) -> Report:
    programs = require_server(language.server)
    project = project_with(folder, language.files)
    config = f"trusted_folders = [{json.dumps(str(project))}]\n[permissions]\nallow_unasked = true\n"
    home, report = Path.home(), Report()
    environ = {
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(home / ".rustup")),
        "CARGO_HOME": os.environ.get("CARGO_HOME", str(home / ".cargo")),
    }
    async with running_server(folder, config=config, env=environ, limit_s=900) as server:
        await _edit_all(server, project, language, report)
        started = server.descendants()
    # The kernel ends what was confined.
    with anyio.move_on_after(SETTLED_S):
        while any(Path(f"/proc/{pid}").exists() for pid in started):
            await anyio.sleep(0.1)
    report.left = [pid for pid in started if Path(f"/proc/{pid}").exists()]
    return report


async def _edit_all(server: RunningServer, project: Path, language: Language, report: Report) -> None:
    session = await server.wire.create(scripted(DONE), workingDirectory=str(project))

    async def call(name: str, **arguments: Any) -> list[str]:
        params = {"sessionId": session, "name": name, "arguments": arguments}
        text: str = (await server.wire.call("session.tools.execute", params))["textResultForLlm"]
        return [line for line in text.partition("may have brought:\n")[2].splitlines() if line[:1] != " "]

    async def until(path: str, place: str, limit_s: float) -> list[str]:
        told: list[str] = []
        end = time.monotonic() + limit_s
        while not any(line.startswith(place) for line in told) and time.monotonic() < end:
            told += await call("view", path=path)
            await anyio.sleep(0.1)
        return told

    path, old, new, place = language.edits[0]
    if not any(line.startswith(place) for line in await call("edit", path=path, old_str=old, new_str=new)):
        await until(path, place, FIRST_S)
    await call("edit", path=path, old_str=new, new_str=old)
    await anyio.sleep(SETTLED_S)
    await call("view", path=path)
    for path, old, new, place in language.edits:
        started = time.monotonic()
        told = await call("edit", path=path, old_str=old, new_str=new)
        report.times.append(time.monotonic() - started)
        if any(line.startswith(place) for line in told):
            report.told += 1
        else:
            told += await until(path, place, LATER_S)
            if any(line.startswith(place) for line in told):
                report.later += 1
            else:
                report.never.append(f"{place} {new!r}")
        # An edit may well bring several errors; those at the old places are none of them.
        report.false += [line for line in told if " old" in line or "'old" in line or '"old' in line]
        started = time.monotonic()
        told = await call("edit", path=path, old_str=new, new_str=old)
        report.times.append(time.monotonic() - started)
        report.false += told


def main() -> int:
    failed = False
    for name, language in LANGUAGES.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            report = anyio.run(measure, Path(os.path.realpath(folder)), language)
        print(f"{name:10} {report}", *report.never, *report.false, sep="\n    ", flush=True)
        failed |= bool(report.never or report.false)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
