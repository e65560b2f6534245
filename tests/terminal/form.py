"""A program that shows a form on the screen of ``chat`` and prints the answer."""

from __future__ import annotations

from pathlib import Path

import anyio

from jumpseat_protocol.events import ElicitationRequested
from jumpseat_terminal.chat import Chat
from jumpseat_terminal.options import Settings
from jumpseat_terminal.questions import Questions

FORM = ElicitationRequested(
    request_id="1",
    message="The server wants to know more.",
    elicitation_source="things",
    requested_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Name", "description": "What it is called"},
            "count": {"type": "integer", "title": "How many", "default": 3},
            "colour": {"type": "string", "title": "Colour", "enum": ["r", "g"], "enumNames": ["red", "green"]},
            "sure": {"type": "boolean", "title": "Sure"},
            "note": {"type": "string"},
        },
        "required": ["name", "colour"],
    },
)


async def main() -> None:
    print("A form", flush=True)
    settings = Settings(None, None, None, latest=False, folder=Path.cwd(), yolo=False, allow=(), deny=())
    chat = Chat(settings)
    questions = Questions(chat.screen, chat.feed, settings)

    async def ask() -> None:
        answer = await questions.ask_form(FORM)
        chat.feed.note(str(answer))
        chat.screen.leave()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await chat.screen.run()


anyio.run(main)
