"""The examples in the page on models without function calling are true."""

from __future__ import annotations

import json
from pathlib import Path

from jumpseat.agent.model_calls.xml_tools.arguments import written_calls
from jumpseat.agent.model_calls.xml_tools.reader import Block
from jumpseat.agent.model_calls.xml_tools.scanner import Scanner
from jumpseat.config import load_config
from jumpseat.tools.builtin import BUILTIN_TOOLS
from jumpseat_protocol.sessions import ProviderConfig
from tests.docs.test_pages import blocks

PAGE = "docs/xml-tools.md"


def test_the_block_is_read_as_the_page_says() -> None:
    (written,) = blocks(PAGE, "xml")
    meant = json.loads(blocks(PAGE, "json")[1])
    scanner = Scanner({tool.name: tool.spec.parameters for tool in BUILTIN_TOOLS})
    pieces = [*scanner.feed(written), *scanner.finish()]
    found = [call for one in pieces if isinstance(one, Block) for tool in one.tools for call in written_calls(tool)]

    assert [{"name": call.name, "arguments": call.arguments} for call in found] == meant


def test_the_settings_are_some(tmp_path: Path) -> None:
    (example,) = blocks(PAGE, "toml")
    (tmp_path / "config.toml").write_text(example)
    local = load_config(tmp_path).adapters["local"]
    assert (local.tool_protocol, [one.tool_protocol for one in local.model_list()]) == ("xml", [None, "native"])
    provider = json.loads(blocks(PAGE, "json")[0])["provider"]
    assert ProviderConfig.model_validate(provider).tool_protocol == "xml"
