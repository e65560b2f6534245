"""The tutorials work from the first command to the last, and their files are those in the examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import code_blocks
from tests.support.ports import free_ports
from tests.support.toolchains import ROOT
from tests.support.tutorials import Reader, Written, steps_of
from tests.terminal.terminal import Place, chat

TUTORIALS = {
    "docs/tutorial-tool.md": "clients/examples/tools",
    "docs/tutorial-adapter.md": "clients/examples/adapters",
}


@pytest.mark.parametrize("page", TUTORIALS)
def test_a_reader_of_the_tutorial_sees_what_it_says(tmp_path: Path, page: str) -> None:
    first, second = free_ports(2)
    reader = Reader(tmp_path, {"8123": str(first), "8124": str(second)})
    try:
        reader.follow(ROOT / page)
    finally:
        reader.close()


@pytest.mark.parametrize("page", TUTORIALS)
def test_the_files_of_the_tutorial_are_those_of_the_examples(page: str) -> None:
    folder = ROOT / TUTORIALS[page]
    written = {Path(step.path).name: step.content for step in steps_of(ROOT / page) if isinstance(step, Written)}
    # The tool of one tutorial is used in the other.
    others = {path.name: path.read_text() for path in (ROOT / "clients/examples/tools").iterdir()}
    own = {path.name: path.read_text() for path in folder.iterdir()}
    assert {name: text for name, text in written.items() if name in own} == own
    assert {name: text for name, text in written.items() if name not in own}.items() <= others.items()


def test_the_chat_of_the_tool_tutorial_asks_in_the_words_of_the_calculator(tmp_path: Path) -> None:
    examples = ROOT / "clients/examples/tools"
    place = Place(tmp_path, (examples / "practice.yaml").read_text())
    (place.home / "tools").mkdir()
    (place.home / "tools" / "calculator.py").write_text((examples / "calculator.py").read_text())
    (screen,) = code_blocks("docs/tutorial-tool.md", "text")
    prompt, *_ = screen.splitlines()
    with chat(place) as terminal:
        terminal.submit(prompt.removeprefix("❯ "))
        assert screen in terminal.until(r"n no, and tell")
        terminal.answer("y")
        terminal.until("The result is 5000")
        terminal.submit(prompt.removeprefix("❯ "))
        terminal.until(r"5000(.|\n)*n no, and tell")
        terminal.answer("n")
        terminal.until("What should change")
        terminal.type("too easy")
        terminal.press("Enter")
        terminal.until("The user declined to run the calculator tool")
