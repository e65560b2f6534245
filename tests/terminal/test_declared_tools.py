"""What a declared tool asks and tells the user in a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal.terminal import Place, chat

TOOL = """
def success(self, tools, cmd, stdout):
    tools.chat.add_tool_output(self, "for the model", "The sum is 3")


def error(self, tools, cmd, stderr):
    tools.chat.add_tool_output(self, "for the model", "That was too much")


TOOL = {
    "description": "Add numbers",
    "parameters": {"a": {"type": "integer"}},
    "cmds": [lambda args: {"status": "success" if args["a"] < 3 else "error", "data": "x"}],
    "handlers": {"setup": lambda self, tools: tools.notify("setup function called")},
    "output": {"prompt": "Add ${a} to 2?", "success": success, "error": error},
}
"""


def answer(a: int) -> dict[str, object]:
    return {"tool_calls": [{"name": "add", "arguments": {"a": a}}]}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path, {"turns": [answer(1), {"text": "Added."}, answer(5), {"text": "Not added."}]})
    (place.home / "tools").mkdir()
    (place.home / "tools" / "add.py").write_text(TOOL)
    return place


def test_the_chat_shows_question_notice_and_the_text_for_the_user(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("add")
        terminal.until(r"setup function called(.*\n)*.*Add 1 to 2\?")
        terminal.answer("y")
        terminal.until(r"The sum is 3(.*\n)*.*Added\.")
        terminal.submit("add")
        terminal.until(r"Add 5 to 2\?")
        terminal.answer("y")
        shown = terminal.until(r"That was too much(.*\n)*.*Not added\.")
        assert "for the model" not in shown


def test_a_run_shows_the_notice_beside_its_answer(place: Place) -> None:
    process = place.run("-p", "add", "--yolo")
    assert process.stdout == "Added.\n"
    assert "setup function called" in process.stderr
