"""Malformed declarations of tools and adapters: each gives one sentence that says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.declared.malformed import ADAPTERS, CALLED_ADAPTERS, CALLED_TOOLS, TOOLS, Case
from tests.support.cases import all_cases
from tests.support.model_server import ModelServer, json_reply
from tests.support.server import calls, running_server, scripted

JARGON = re.compile(
    r"Traceback|validation error|Input should|Extra inputs|Field required|pydantic|NoneType|<class|<function|dict\b"
)


def write(folder: Path, cases: Iterable[Case], port: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        (folder / case.file).write_text(case.content.replace("8123", str(port)))


def check(cases: Mapping[str, Case], found: Mapping[str, str | None], folder: Path) -> None:
    """Compare the sentences of all cases; ``found`` has them by file name without its ending."""
    with all_cases() as case:
        for name, (file, _, sentence) in cases.items():
            with case(name):
                shown = (found[file.partition(".")[0]] or "").replace(str(folder / file), "@")
                assert shown == sentence
                assert "\n" not in shown
                assert not JARGON.search(shown)


def test_there_are_fifty_and_more() -> None:
    assert len({**TOOLS, **CALLED_TOOLS}) + len({**ADAPTERS, **CALLED_ADAPTERS}) > 60


@pytest.mark.anyio
async def test_each_malformed_tool_is_explained_in_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "tools"
    write(folder, (*TOOLS.values(), *CALLED_TOOLS.values()), 0)
    async with running_server(tmp_path) as server:
        listed = (await server.wire.call("jumpseat.tools.list", {}))["tools"]
        # Tools with a name of their own are listed under that name.
        named = {"my tool": "t12", "bash": "t13", "TOOLS[0]": "t36", "TOOLS[1]": "t50"}
        problems: dict[str, str | None] = {tool["name"]: tool.get("problem") for tool in listed}
        check(TOOLS, {named.get(name, name): problem for name, problem in problems.items()}, folder)

        names = [case.file.partition(".")[0] for case in CALLED_TOOLS.values()]
        turns = [calls(name, f"call-{name}") for name in names]
        await server.wire.prompt(await server.wire.create(scripted(*turns, {"text": "done"})))
        completions = [
            event["data"] for event in server.wire.events() if event["type"] == "tool.execution_complete"
        ]
        check(CALLED_TOOLS, {name: text_of(done) for name, done in zip(names, completions, strict=True)}, folder)


def text_of(completion: dict[str, Any]) -> str:
    """Return what the model reads, which is one sentence here."""
    text: str = (completion.get("result") or completion["error"]).get("content") or completion["error"]["message"]
    return " ".join(text.split("\n"))


@pytest.mark.anyio
async def test_each_malformed_adapter_is_explained_in_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "adapters"
    async with ModelServer(*[json_reply({"answer": "42"})] * len(CALLED_ADAPTERS)) as model:
        write(folder, (*ADAPTERS.values(), *CALLED_ADAPTERS.values()), urlsplit(model.url).port or 0)
        async with running_server(tmp_path) as server:
            listed = (await server.wire.call("jumpseat.adapters.list", {}))["adapters"]
            check(ADAPTERS, {adapter["name"]: adapter.get("problem") for adapter in listed}, folder)

            names = [case.file.partition(".")[0] for case in CALLED_ADAPTERS.values()]
            errors = [
                await server.wire.error_of("jumpseat.complete", {"adapter": name, "prompt": "hi"}) for name in names
            ]
            check(CALLED_ADAPTERS, {n: error["message"] for n, error in zip(names, errors, strict=True)}, folder)
        # Mistakes of an adapter are not tried again.
        assert len(model.requests) <= len(CALLED_ADAPTERS)
