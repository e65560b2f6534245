"""Elicitation forms and URLs of MCP servers in the Neovim plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.neovim import Neovim, running_neovim
from tests.support.toolchains import INSTALL_LIMIT_S

# The first test may have to install Neovim.
pytestmark = pytest.mark.timeout(INSTALL_LIMIT_S + 60)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2},
        "age": {"type": "integer", "minimum": 18, "default": 20},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "colours": {"type": "array", "items": {"type": "string", "enum": ["red", "green", "blue"]}},
        "news": {"type": "boolean", "description": "Letters every week"},
    },
    "required": ["name", "age", "size", "colours"],
}
ASK = """
    local session = require('jumpseat').chat().session
    session:ensure(function()
      local params = { sessionId = session.id, message = 'Who are you?', requestedSchema = (...) }
      require('jumpseat.server').request('session.ui.elicitation', params, function(problem, result)
        answered = result or problem
      end)
    end)
"""


def show_form(nvim: Neovim, schema: dict[str, Any]) -> dict[str, Any]:
    """Request a form through the server and return its result."""
    nvim.lua("require('jumpseat').open() answered = nil")
    nvim.lua(
        ASK.replace("(...)", "schema").replace("local session", "local schema = (...) local session", 1), schema
    )
    return nvim.until("answered")


def test_a_form_is_filled_in_field_by_field_required_fields_first(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[]) as nvim:
        nvim.answer("Answer", "Ada", "36", "Large", "[ ] blue", "[ ] red", "[x] red", "Done", "No")
        assert show_form(nvim, SCHEMA) == {
            "action": "accept",
            "content": {"name": "Ada", "age": 36, "size": "l", "colours": ["blue"], "news": False},
        }
        questions = nvim.questions()
        assert questions[0]["prompt"] == "Who are you?"
        assert questions[1]["prompt"] == "Your name: "
        assert questions[2] == {"prompt": "age: ", "default": "20"}
        assert questions[-1]["prompt"] == "news: Letters every week"
        assert questions[-1]["choices"] == ["Yes", "No", "Leave empty"]


def test_an_invalid_value_is_asked_for_again_with_the_reason(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"age": SCHEMA["properties"]["age"]}, "required": ["age"]}
    with running_neovim(tmp_path, script=[]) as nvim:
        nvim.answer("Answer", "old", "3.5", "17", "18")
        assert show_form(nvim, schema) == {"action": "accept", "content": {"age": 18}}
        assert [question["prompt"] for question in nvim.questions()[1:]] == [
            "age: ",
            "age (expected an integer): ",
            "age (expected an integer): ",
            "age (expected at least 18): ",
        ]


@pytest.mark.parametrize(
    ("answers", "action"), [(["Decline"], "decline"), ([""], "cancel"), (["Answer", ""], "cancel")]
)
def test_a_form_is_declined_or_cancelled(tmp_path: Path, answers: list[str], action: str) -> None:
    with running_neovim(tmp_path, script=[]) as nvim:
        nvim.answer(*answers)
        assert show_form(nvim, SCHEMA)["action"] == action
        assert nvim.lua("return require('jumpseat.questions').open_questions()") == 0


def test_a_form_that_was_completed_elsewhere_is_withdrawn(tmp_path: Path) -> None:
    with running_neovim(tmp_path, script=[]) as nvim:
        nvim.lua("require('jumpseat').open()")
        nvim.lua(
            """
            local session = require('jumpseat').chat().session
            local forms, answers = require('jumpseat.forms'), 0
            forms.ask(session, { requestId = 'r1', message = 'Who?' }, function() answers = answers + 1 end)
            vim.wait(1000, function() return open_question end, 5)
            session:receive({ type = 'elicitation.completed', data = { requestId = 'r1' } })
            open_question('Answer')
            gone = { answers, require('jumpseat.questions').open_questions() }
            """
        )
        assert nvim.lua("return gone") == [0, 0]


def test_a_url_is_opened_only_after_approval(tmp_path: Path) -> None:
    ask = """
        local session = require('jumpseat').chat().session
        vim.ui.open = function(address) opened = address end
        local asked = { requestId = 'r1', message = 'Log in', mode = 'url', url = 'https://example.org/login' }
        require('jumpseat.forms').ask(session, asked, function(result) answered = result end)
    """
    with running_neovim(tmp_path, script=[]) as nvim:
        nvim.answer("Open")
        nvim.lua(ask)
        assert nvim.until("answered") == {"action": "accept"}
        assert nvim.lua("return opened") == "https://example.org/login"
