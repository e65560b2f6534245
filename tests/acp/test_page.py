"""The examples of the page for editors are true."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.editor import Schemas, running_editor

pytestmark = pytest.mark.anyio

PAGE = (Path(__file__).parents[2] / "docs" / "acp.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def contains(actual: Any, expected: Any) -> bool:
    """Whether ``actual`` says all that ``expected`` says; objects may say more."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        have = cast("dict[str, Any]", actual)
        return all(
            key in have and contains(have[key], value) for key, value in cast("dict[str, Any]", expected).items()
        )
    return actual == expected


async def test_the_exchange_is_what_goes_over_the_wire(tmp_path: Path, schemas: Schemas) -> None:
    (exchange,) = blocks("acp")
    async with running_editor(tmp_path, schemas, initialize=False) as (_, editor):
        session = "SESSION"
        for line in exchange.splitlines():
            message = json.loads(line[3:].replace("SESSION", session))
            if line.startswith("->"):
                await editor.send(editor.encode({"jsonrpc": "2.0", **message}))
                continue
            found = await editor.until(lambda one, message=message: contains(one, message), what=line)
            session = found.get("result", {}).get("sessionId", session)


def test_the_settings_are_json_that_starts_the_server() -> None:
    for settings in map(json.loads, blocks("json")):
        (agent,) = settings["agent_servers"].values()
        assert agent["command"].endswith("jumpseat")
        assert agent["args"] == ["acp"]
        assert all(isinstance(value, str) for value in agent["env"].values())
