"""``/connect`` and ``jumpseat setup``: from nothing to a model that answers, without leaving the terminal."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from tests.support.fake_openai import MODEL, FakeOpenAI, fake_openai, says
from tests.support.forked import executable
from tests.support.ports import closed_port
from tests.terminal.terminal import Place, chat

KEY = "sk-typed-by-a-person-123"
NO_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path, {"turns": []})
    (found.home / "config.toml").write_text("# my settings\n")
    return found


@pytest.fixture
def provider() -> Generator[FakeOpenAI]:
    script = {"Say: ready": [says("ready")], "hello": [says("Hello from the provider!")]}
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(fake_openai(script)) as fake:
        yield fake


def test_connect_leads_from_no_model_to_an_answer(place: Place, provider: FakeOpenAI) -> None:
    with chat(place, columns=100, rows=40, env=NO_KEYRING) as terminal:
        terminal.until(r"/connect +choose a provider")
        terminal.submit("/connect")
        terminal.until("Which provider of models")
        terminal.type("another server")
        terminal.press("Enter")
        terminal.until("Its address")
        terminal.type(provider.base_url)
        terminal.press("Enter")
        terminal.until("A name for it")
        terminal.press("C-u")
        terminal.type("work")
        terminal.press("Enter")
        terminal.until("Its key")
        terminal.paste(KEY)
        terminal.until("•" * len(KEY))
        terminal.press("Enter")
        terminal.until("Which model", MODEL)
        terminal.press("Enter")
        terminal.until("It works", f"work/{MODEL} is the default model now", without="Which model")
        terminal.submit("hello")
        screen = terminal.until("Hello from the provider!")
        assert KEY not in screen
        # No key comes back with ↑.
        terminal.press("Up")
        terminal.until(r"❯ hello$")
    assert provider.authorizations[-1] == f"Bearer {KEY}"
    assert (place.home / "config.toml").read_text().startswith("# my settings\n")
    assert KEY in (place.home / "keys.json").read_text()
    done = place.run("hello", env=NO_KEYRING)
    assert (done.returncode, done.stdout) == (0, "Hello from the provider!\n")


def test_the_trial_answers_without_a_provider(place: Place) -> None:
    with chat(place, columns=100, rows=40) as terminal:
        terminal.until(r"/connect +choose a provider")
        terminal.submit("/connect")
        terminal.until("Try jumpseat without a model")
        terminal.type("without a model")
        terminal.press("Enter")
        terminal.until("model: trial")
        terminal.submit("what can you do?")
        terminal.until("I am a script, not a model")
        terminal.submit("create a file")
        terminal.until("Make this change|Create this file", "hello-from-jumpseat.txt")


def test_a_prompt_without_a_model_waits_for_one(place: Place) -> None:
    with chat(place, columns=100, rows=40) as terminal:
        terminal.until(r"/connect +choose a provider")
        terminal.submit("what can you do?")
        terminal.until("There is no model yet", r"can you do\?  \(queued\)")
        # Taken back, and sent again.
        terminal.press("C-c")
        terminal.until(r"^❯ what can you do\?$", without="queued")
        terminal.press("Enter")
        terminal.until(r"can you do\?  \(queued\)")
        terminal.submit("/connect")
        terminal.until("Which provider of models")
        terminal.type("trial")
        terminal.press("Enter")
        terminal.until("model: trial", "I am a script, not a model", without="queued")


def test_setup_asks_and_says_what_is_next(place: Place, provider: FakeOpenAI) -> None:
    command = (executable(), "setup")
    env = {**NO_KEYRING, "OPENAI_BASE_URL": provider.base_url}
    ready = "Which provider of models"
    with chat(place, columns=100, rows=40, env=env, command=command, ready=ready) as terminal:
        terminal.until(r"OpenAI +configured")
        terminal.type("openai")
        terminal.press("Enter")
        terminal.until("Which model", MODEL)
        terminal.press("Enter")
        terminal.until("It works", "Next: jumpseat chat", "exit code 0")
    with chat(place, columns=100, rows=40, env=env, command=command, ready=ready) as terminal:
        terminal.press("C-c")
        terminal.until("exit code 1")


def test_setup_by_options_needs_no_terminal(place: Place, provider: FakeOpenAI) -> None:
    def setup(*args: str, stdin: str = "", **env: str) -> tuple[int, str, str]:
        done = place.run(*args, stdin=stdin, env={**NO_KEYRING, **env}, command="setup")
        return done.returncode, done.stdout, done.stderr

    work = ("--provider", "work", "--base-url", provider.base_url, "--key-file", "-")
    assert setup(*work, "--model", MODEL, stdin=f"{KEY}\n") == (
        0,
        f"work/{MODEL} is the default model now, in {place.home / 'config.toml'}\n",
        "",
    )
    listed = json.loads(setup("--list", "--json")[1])
    assert (listed["defaultModel"], listed["providers"][0]["keyFrom"]) == (f"work/{MODEL}", "file")
    assert place.run("hello", env=NO_KEYRING).stdout == "Hello from the provider!\n"
    assert setup("--remove-key", "work") == (0, "The key is removed.\n", "")
    with closed_port() as port:
        dead = f"http://127.0.0.1:{port}/v1"
        code, _, problem = setup("--provider", "vllm", "--model", "m", VLLM_BASE_URL=dead)
    assert (code, "Nothing listens at that address" in problem) == (1, True)
    code, _, problem = setup()
    assert (code, "setup asks questions in a terminal" in problem) == (2, True)
    assert setup("--model", "m")[0] == 2
    missing = str(place.home / "no key")
    assert setup("--provider", "openai", "--key-file", missing) == (
        1,
        "",
        f"error: cannot read {missing!r}: No such file or directory\n",
    )
