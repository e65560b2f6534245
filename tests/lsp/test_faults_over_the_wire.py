"""Language servers that fail: nothing is missing but their diagnostics, and no process is left behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.lsp.parts import DONE, edit, language_servers, project_with, results, results_of, word_config
from tests.support.limits import WAIT_S
from tests.support.server import running_server, scripted
from tests.tools.session import until

pytestmark = pytest.mark.anyio

UPDATED = "File a.words updated with changes."
FAILED = "WARNING language server words of "
FATAL = ("crash", "garbage", "huge", "flood")
"""Faults after which a language server is ended."""


@pytest.mark.parametrize("fault", [*FATAL, "exit", "many", "edit", "invalid"])
async def test_a_fault_costs_only_the_diagnostics(fault: str, tmp_path: Path) -> None:
    project = project_with(tmp_path, {"a.words": "one\n"})
    async with running_server(tmp_path, config=word_config(project, wait_s=0.25)) as server:
        first, second = await results(
            server.wire,
            project,
            edit("a.words", "one", f"two\n!{fault}"),
            edit("a.words", "two", "three", "call-2"),
        )
        assert (first, second) == (UPDATED, UPDATED)
        assert (project / "a.words").read_text() == f"three\n!{fault}\n"
        await server.wire.check_alive()
        if fault in FATAL:
            await until(lambda: FAILED in server.stderr, WAIT_S)
    assert fault in FATAL or FAILED not in server.stderr


@pytest.mark.parametrize("fault", ["refuse", "crash", "garbage", "missing"])
async def test_a_server_that_never_works_is_given_up(fault: str, tmp_path: Path) -> None:
    project = project_with(tmp_path, {"a.words": "use one\n"})
    config = word_config(project, fault)
    if fault == "missing":
        config = config.replace("command = ", 'command = "no-such-program" #')
    async with running_server(tmp_path, config=config) as server:
        assert await results(server.wire, project, edit("a.words", "one", "two")) == [UPDATED]
        await until(lambda: "language server " in server.stderr, WAIT_S)


async def test_what_a_server_says_about_folders_and_files_elsewhere_is_not_told(tmp_path: Path) -> None:
    project = project_with(tmp_path, {"a.words": "use one\n"})
    async with running_server(tmp_path, config=word_config(project)) as server:
        (text,) = await results(server.wire, project, edit("a.words", "one", "two\n!elsewhere"))
    assert "unknown name two" in text
    assert "wrong" not in text


async def test_a_server_that_hangs_holds_up_one_call_only(tmp_path: Path) -> None:
    project = project_with(tmp_path, {"a.words": "one\n"})
    async with running_server(tmp_path, config=word_config(project, wait_s=0.25)) as server:
        texts = await results(
            server.wire,
            project,
            edit("a.words", "one", "!hang"),
            edit("a.words", "!hang", "two", "call-2"),
            edit("a.words", "two", "three", "call-3"),
        )
    assert texts == [UPDATED] * 3


async def test_a_server_that_was_killed_starts_again_with_a_later_change(tmp_path: Path) -> None:
    project = project_with(tmp_path, {"a.words": "use one\n"})
    async with running_server(tmp_path, config=word_config(project)) as server:
        turns = [edit("a.words", "use one", "use two"), DONE, edit("a.words", "use two", "use three"), DONE]
        session = await server.wire.create(scripted(*turns), workingDirectory=str(project))
        assert "unknown name two" in results_of(await server.wire.prompt(session))[0]
        (killed,) = language_servers(server)
        os.kill(killed, signal.SIGKILL)
        await until(lambda: FAILED in server.stderr, WAIT_S)
        await until(lambda: not language_servers(server), WAIT_S)
        turn_starts_again = await server.wire.prompt(session)
        assert "unknown name three" in results_of(turn_starts_again)[0]


@pytest.mark.parametrize("number", range(5))
async def test_no_language_server_survives_the_server(number: int, tmp_path: Path) -> None:
    project = project_with(tmp_path, {"a.words": "use one\n"})
    async with running_server(tmp_path, config=word_config(project)) as server:
        (text,) = await results(server.wire, project, edit("a.words", "one", f"word{number}"))
        assert f"unknown name word{number}" in text
        assert language_servers(server)
        server.expect_exit = -signal.SIGKILL
        # Leaving the block fails if a process is left.
        os.kill(server.process.pid, signal.SIGKILL)
