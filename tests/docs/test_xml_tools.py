"""The examples in docs/xml-tools.md work."""

from __future__ import annotations

import json
from pathlib import Path

from jumpseat.agent.model_calls.xml_tools.arguments import read_calls
from jumpseat.agent.model_calls.xml_tools.reader import Block
from jumpseat.agent.model_calls.xml_tools.scanner import Scanner
from jumpseat.config import load_config
from jumpseat.tools.builtin import builtin_tools
from jumpseat_protocol.sessions import ProviderConfig
from tests.support.pages import code_blocks

PAGE = "docs/xml-tools.md"


def test_the_documented_block_is_parsed_as_the_documented_calls() -> None:
    (written,) = code_blocks(PAGE, "xml")
    expected = json.loads(code_blocks(PAGE, "json")[1])
    scanner = Scanner({tool.name: tool.spec.parameters for tool in builtin_tools()})
    pieces = [*scanner.feed(written), *scanner.finish()]
    found = [
        call for piece in pieces if isinstance(piece, Block) for tool in piece.tools for call in read_calls(tool)
    ]

    assert [{"name": call.name, "arguments": call.arguments} for call in found] == expected


def test_the_documented_settings_are_valid(tmp_path: Path) -> None:
    (example,) = code_blocks(PAGE, "toml")
    (tmp_path / "config.toml").write_text(example)
    local = load_config(tmp_path).adapters["local"]
    assert (local.tool_protocol, [model.tool_protocol for model in local.model_list()]) == ("xml", [None, "native"])
    provider = json.loads(code_blocks(PAGE, "json")[0])["provider"]
    assert ProviderConfig.model_validate(provider).tool_protocol == "xml"
