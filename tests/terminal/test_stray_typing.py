"""Text that a person types or pastes into a question of ``jumpseat chat`` grants nothing, and is not lost."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.output import DummyOutput

from jumpseat_terminal.asking import Asking
from jumpseat_terminal.dialogue import Option
from tests.support.fake_copilot import ALICE, fake_copilot
from tests.support.limits import WAIT_S
from tests.terminal.terminal import Place, Terminal, chat

TEXT = "actually, stop"
PASTED = "yes\ny\nalways\n"

SCRIPT = {
    "prompts": [
        {
            "when": "change",
            "turns": [
                {"tool_calls": [{"name": "create", "arguments": {"path": "a.txt", "file_text": "one\n"}}]},
                {"text": "Then: {{last_tool_result}}"},
            ],
        },
        {"when": "run", "turns": [{"tool_calls": [{"name": "bash", "arguments": {"command": "touch b.txt"}}]}]},
        {
            "when": "fetch",
            "turns": [{"tool_calls": [{"name": "web_fetch", "arguments": {"url": "http://nowhere.invalid/x"}}]}],
        },
        {
            "when": "ask",
            "turns": [
                {
                    "tool_calls": [
                        {"name": "ask_user", "arguments": {"question": "Which?", "choices": ["all", "yes"]}}
                    ]
                },
                {"text": "I heard: {{last_tool_result}}"},
            ],
        },
        {
            "when": "think",
            "turns": [
                {"tool_calls": [{"name": "exit_plan_mode", "arguments": {"summary": "First this, then that."}}]},
                {"text": "I heard: {{last_tool_result}}"},
            ],
        },
        {"turns": [{"text": "You said: {{last_user}}"}]},
    ]
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, SCRIPT)


def type_into(terminal: Terminal, question: str) -> None:
    """Type and paste into a question, dismiss it, and check that the text became the draft of the next prompt."""
    terminal.until(question)
    terminal.type(TEXT)
    terminal.press("Enter")
    terminal.until(question, f"^… {TEXT}$")
    terminal.paste(PASTED)
    # An enter that a busy chat reads together with the paste counts as pasted.
    pasted = f"{TEXT}(?:\n  )?yes\n  y\n  always"
    terminal.until(question, f"^… {pasted}$")
    terminal.paste("a\nk\n!", marked=False)
    terminal.until(question, r"^  a\n  k\n  !$")
    terminal.press("Escape")
    terminal.until(f"^❯ {pasted}\n  a\n  k\n  !$", without=r"ctrl-c cancels")
    terminal.press("C-c")
    terminal.until(r"^❯$")


def test_text_typed_into_a_permission_question_grants_nothing(place: Place) -> None:
    with chat(place) as terminal:
        for prompt, question in (
            ("change", r"Make this change\?"),
            ("run", r"Run this command\?"),
            ("fetch", r"Open this URL\?"),
        ):
            terminal.submit(prompt)
            type_into(terminal, question)
        assert list(place.project.iterdir()) == []
        assert not (place.home / "approvals.json").exists()


def test_text_typed_into_a_confirmation_or_an_edit_grants_nothing(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("run")
        terminal.until(r"Run this command\?")
        terminal.answer("a")
        terminal.until(r"Keep this approval in this project", r"k keep: touch")
        terminal.type("keep it")
        terminal.press("Enter")
        terminal.until(r"Keep this approval", r"^… keep it$")
        # Goes back to the question, with the draft.
        terminal.press("Escape")
        terminal.until(r"Run this command\?", r"^… keep it$")
        terminal.answer("C-u", "e")
        terminal.until(r"Command:")
        terminal.type(TEXT)
        terminal.press("Enter")
        terminal.until(r"Call it like this\?", f"touch b.txt{TEXT}")
        terminal.type(TEXT)
        terminal.press("Enter")
        terminal.until(r"Call it like this\?", f"^… {TEXT}$")
        terminal.press("Escape", "Escape")
        assert list(place.project.iterdir()) == []


def test_text_is_the_reason_of_a_no_after_a_second_enter(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("change")
        terminal.until(r"Make this change\?")
        terminal.type("use another file")
        terminal.answer()
        terminal.until(r"❯ n no, and tell the model why: use another file$")
        terminal.press("Enter")
        terminal.until(r"^no: use another file$", r"Then: .*use another file", r"^❯$")
        assert not (place.project / "a.txt").exists()


def test_text_typed_into_questions_of_the_model_answers_nothing(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("ask")
        type_into(terminal, r"^Your answer:")
        terminal.until(r"I heard: .*declined to answer")
        terminal.submit("ask")
        terminal.until(r"^Your answer:")
        terminal.type("a third one")
        terminal.answer()
        terminal.until(r"❯ 0 something else: a third one$")
        terminal.press("Enter")
        terminal.until(r"I heard: User responded: a third one")
        terminal.submit("/plan")
        terminal.until(r"plan mode · ")
        terminal.submit("think")
        type_into(terminal, r"Is this plan right\?")
        terminal.until(r"I heard: The plan was not approved", r"plan mode · ")
        terminal.submit("think")
        terminal.until(r"Is this plan right\?")
        terminal.answer("e")
        terminal.until(r"Keep this approval for the rest of this session\?")
        terminal.answer("k")
        terminal.until(r"I heard: Plan approved!", r"accepts edits · ")


def test_text_typed_into_a_list_is_a_search(place: Place) -> None:
    with chat(place) as terminal:
        terminal.submit("/model")
        terminal.until(r"Which model\?")
        terminal.type(TEXT)
        terminal.press("Enter")
        terminal.until(rf"search: {TEXT}", r"no matches")
        terminal.press("Escape")
        terminal.until(rf"^❯ {TEXT}\none · ")


def test_text_typed_into_a_form_is_not_sent(place: Place) -> None:
    command = (sys.executable, "-m", "tests.terminal.form")
    env = {"PYTHONPATH": str(Path(__file__).parents[2])}
    with chat(place, command=command, env=env, ready="Fill in") as terminal:
        terminal.type(TEXT)
        terminal.press("Enter")
        terminal.until(r"Fill in this form\?", f"^… {TEXT}$")
        terminal.answer("C-u", "y")
        terminal.until(r"Name: ")
        terminal.type(TEXT)
        terminal.press("Enter")
        terminal.until(r"How many\n❯ 3")
        terminal.press("Enter")
        terminal.until(r"Colour\n❯ 1 red")
        terminal.type(TEXT)
        terminal.press("Enter")
        terminal.until(r"Colour\n", f"^… {TEXT}$")
        terminal.answer("C-u")
        terminal.until(r"Sure\n")
        terminal.type(TEXT)
        terminal.press("Enter")
        terminal.until(r"Sure\n", f"^… {TEXT}$")
        terminal.answer("C-u")
        terminal.until(r"^note$")
        terminal.press("Enter")
        terminal.until(r"Send these answers\?")
        terminal.type(TEXT)
        terminal.press("Enter")
        terminal.until(r"Send these answers\?", f"^… {TEXT}$")
        terminal.answer("C-u", "n")
        terminal.until(r"'action': 'decline'")


def test_text_typed_into_the_question_about_another_model_changes_none(tmp_path: Path) -> None:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(fake_copilot()) as copilot:
        copilot.models.append({"id": "auto"})
        copilot.limited["by-chat"] = "user_weekly_rate_limited"
        place = Place(tmp_path, {"turns": []})
        (place.home / "config.toml").write_text("")
        with chat(place, env={**copilot.environ, "COPILOT_GITHUB_TOKEN": ALICE}) as terminal:
            terminal.until("by-chat")
            terminal.submit("hello")
            question = r"Let the provider choose another model\?"
            terminal.until(question)
            terminal.answer("a")
            terminal.until(r"Keep this approval for the rest of this session\?")
            terminal.answer("b")
            type_into(terminal, question)
        assert "auto" not in copilot.called_models()


def test_a_second_enter_does_not_answer_the_question_in_place_of_the_first(tmp_path: Path) -> None:
    calls = [{"name": "bash", "arguments": {"command": f"touch {name}"}} for name in ("one", "two")]
    place = Place(tmp_path, {"prompts": [{"turns": [{"tool_calls": calls}, {"text": "Both."}]}]})
    with chat(place) as terminal:
        terminal.submit("go")
        terminal.until(r"Run this command\?", "touch one")
        terminal.answer("y")
        terminal.until("one moment: the question is new")
        terminal.press("Enter")
        terminal.until("touch two", r"Run this command\?", without="one moment")
        assert not (place.project / "two").exists()
        terminal.answer("y")
        terminal.until("Both")


@pytest.mark.anyio
async def test_a_key_at_the_moment_a_question_appears_takes_no_option() -> None:
    draft, keys = Buffer(), KeyBindings()
    news = anyio.Event()

    def changed(_: object = None) -> None:
        nonlocal news
        news.set()
        news = anyio.Event()

    asking = Asking(draft, changed)
    asking.bind(keys)
    answers: list[object] = []

    async def ask() -> None:
        answers.append(
            await asking.choose("Run this command?", [Option("yes", True, "y"), Option("no", False, "n")])
        )

    with create_pipe_input() as pipe, anyio.fail_after(WAIT_S):
        layout = Layout(Window(BufferControl(draft)))
        application: Application[None] = Application(
            layout=layout, key_bindings=keys, input=pipe, output=DummyOutput()
        )
        application.key_processor.after_key_press += changed
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(application.run_async)
            tasks.start_soon(ask)
            await news.wait()
            pipe.send_text("\r")
            await news.wait()
            assert asking.question is not None
            assert asking.question.settling
            while asking.question.settling:
                await news.wait()
            assert answers == []
            pipe.send_text("\r")
            while not answers:
                await news.wait()
            application.exit()
    assert answers == [True]
