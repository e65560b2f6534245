"""Paths in ARCHITECTURE.md exist, and its code map has a row for each folder of the server."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "server" / "jumpseat"
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/?)`")


def is_path(text: str) -> bool:
    return "/" in text or text.endswith((".py", ".toml", ".md", ".lua"))


def folders_of_row(line: str) -> list[Path]:
    """Return the folders named in the first cell of a table row: bare file names in the row may be in these."""
    named = PATH.findall(line.split("|")[1]) if line.startswith("|") else []
    return [root / name for root in (SERVER, ROOT) for name in named if name.endswith("/")]


def test_every_path_in_the_page_exists() -> None:
    missing = [
        name
        for line in PAGE.splitlines()
        for name in PATH.findall(line)
        if is_path(name)
        and name != "config.toml"
        and not any((folder / name).exists() for folder in (SERVER, ROOT, *folders_of_row(line)))
    ]
    assert missing == []


def test_the_code_map_has_a_row_for_each_folder_of_the_server() -> None:
    packages = {f"{path.parent.relative_to(SERVER)}/" for path in SERVER.rglob("__init__.py")} - {"./"}
    first_cells = "".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("|"))
    assert packages - set(PATH.findall(first_cells)) == set()
