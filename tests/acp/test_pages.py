"""The examples in docs/acp.md and docs/editors.md work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.editor import Schemas, running_editor
from tests.support.pages import code_blocks, contains

pytestmark = pytest.mark.anyio

DOCS = Path(__file__).parents[2] / "docs"


async def test_the_exchange_in_the_page_matches_the_wire(tmp_path: Path, schemas: Schemas) -> None:
    (exchange,) = code_blocks("docs/acp.md", "acp")
    async with running_editor(tmp_path, schemas, initialize=False) as (_, editor):
        session = "SESSION"
        for line in exchange.splitlines():
            message = json.loads(line[3:].replace("SESSION", session))
            if line.startswith("->"):
                await editor.send(editor.encode({"jsonrpc": "2.0", **message}))
                continue
            answer = await editor.until(lambda received, message=message: contains(received, message), what=line)
            session = answer.get("result", {}).get("sessionId", session)


def test_the_settings_are_json_and_start_the_server() -> None:
    found = [json.loads(block) for block in code_blocks("docs/editors.md", "json")]
    assert len(found) == 3
    for settings in found:
        (agents,) = settings.values()
        (agent,) = agents.values()
        assert agent["command"].endswith("jumpseat")
        assert agent["args"] == ["acp"]
        assert all(isinstance(value, str) for value in agent["env"].values())


def test_the_table_and_the_sections_agree_on_what_is_untested() -> None:
    page = (DOCS / "editors.md").read_text()
    rows = dict(re.findall(r"^\| \[(.+?)\]\(#.+?\) \| (.+?) \|", page, flags=re.MULTILINE))
    parts = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page, flags=re.DOTALL | re.MULTILINE))
    assert list(rows) == list(parts)
    for editor, tried_with in rows.items():
        assert (tried_with == "untested") == ("ntested" in parts[editor]), editor
