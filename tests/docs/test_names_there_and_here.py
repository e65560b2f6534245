"""Every row of the pages for users of CodeCompanion and meridian-llm-go names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jumpseat.adapters.declared.handler_names import GROUPS
from jumpseat.adapters.declared.schema import SchemaEntry
from jumpseat.tools.declared.definition import HANDLERS, OUTPUTS
from jumpseat.tools.declared.groups import GroupOptions
from tests.support.toolchains import ROOT

CODECOMPANION = ("docs/from-codecompanion.md", "docs/from-codecompanion-adapters.md")
PAGES = (*CODECOMPANION, "docs/from-meridian.md")
LINK = re.compile(r'\]\(\.\./(tests/[\w/.]+\.py) "(test_\w+)"\)')


def rows_of(page: str) -> list[list[str]]:
    """Return the rows of all tables."""
    tables = re.findall(r"^\| .* \|\n\|[-|]+\|\n((?:\|.*\n?)+)", (ROOT / page).read_text(), re.MULTILINE)
    return [
        [cell.strip() for cell in row.strip("|").split(" | ")] for table in tables for row in table.splitlines()
    ]


@pytest.mark.parametrize("page", PAGES)
def test_every_row_names_a_test_that_exists(page: str) -> None:
    rows = rows_of(page)
    assert len(rows) > 30
    missing: list[str] = []
    for row in rows:
        links = LINK.findall(row[-1])
        if not links:
            missing.append(f"{row[0]}: no test")
        for path, name in links:
            file = ROOT / Path(path)
            if not file.is_file() or not re.search(rf"^(async )?def {name}\(", file.read_text(), re.MULTILINE):
                missing.append(f"{row[0]}: {path} {name}")
    assert missing == []


def test_the_page_for_codecompanion_has_every_handler_output_and_key_of_the_schema() -> None:
    page = "".join((ROOT / name).read_text() for name in CODECOMPANION)
    older = {name for names in GROUPS.values() for all_older in names.values() for name in all_older}
    handlers = {name for names in GROUPS.values() for name in names} | older | {*HANDLERS, *OUTPUTS}
    # Known there, too, but without an effect.
    keys = set(SchemaEntry.model_fields) - {"check", "minimum", "maximum", "subtype", "subtype_key"}
    named = set(re.findall(r"\w+", page))
    assert handlers | keys | set(GroupOptions.model_fields) <= named
