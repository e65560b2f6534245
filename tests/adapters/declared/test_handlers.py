"""Handlers over the real wire: their parameters, and what happens if they fail."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.cases import all_cases
from tests.support.model_server import ModelServer, Reply, SeenRequest, event_stream, json_reply, text_reply
from tests.support.provided import answer_of_new_session, error_of_new_session
from tests.support.server import running_server

pytestmark = pytest.mark.anyio

KEY: Final = "key-of-a-test-0123456789"

ADAPTER: Final = """
import json, time
from pathlib import Path

def parse_chat(data):
    piece = json.loads(data.removeprefix("data: "))
    return {{"status": "success", "output": {{"content": piece["say"]}}}}

{functions}

ADAPTER = {{
    "url": "{url}",
    "env": {{"api_key": lambda: "{key}"}},
    "headers": {{"Authorization": "Bearer ${{api_key}}"}},
    "schema": {{"model": {{"default": lambda: "m", "choices": lambda: ["m"]}}}},
    "opts": {{"timeouts": {{"handler": {handler_s}}}}},
    "handlers": {{"parse_chat": parse_chat, {handlers}}},
}}
"""


def write(folder: Path, url: str, functions: str = "", handlers: str = "", *, handler_s: float = 20) -> Path:
    """Write the adapter ``mine``, whose handlers may take ``handler_s``, and return its file."""
    path = folder / "home" / "adapters" / "mine.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = ADAPTER.format(url=url, key=KEY, functions=functions, handlers=handlers, handler_s=handler_s)
    path.write_text(text)
    return path


def said(*words: str) -> Reply:
    return event_stream(*(f"data: {json.dumps({'say': word})}\n\n".encode() for word in words), b"data: [DONE]\n\n")


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


FEWER: Final = """
def setup():
    return True

def build_parameters(params):
    return {**params, "seen": True}

def form_messages(messages):
    return {"messages": messages}

def build_body():
    return {"extra": 1}

def tokens(data, **others):
    return 3

def on_exit(data):
    Path(__file__).with_name("exit.json").write_text(json.dumps(data))
"""


async def test_handlers_take_as_few_of_their_parameters_as_they_like(tmp_path: Path) -> None:
    handlers = (
        '"setup": setup, "build_parameters": build_parameters, "form_messages": form_messages,'
        ' "set_body": build_body, "tokens": tokens, "on_exit": on_exit, "teardown": lambda: None'
    )
    async with ModelServer(said("Hel", "lo."), text_reply("busy", status=503, headers={"X-Who": "me"})) as model:
        path = write(tmp_path, model.url, FEWER, handlers)
        async with running_server(tmp_path, config="[retry]\nattempts = 1\n") as server:
            assert await answer_of_new_session(server) == "Hello."
            done = json.loads(path.with_name("exit.json").read_text())
            await error_of_new_session(server)
            failed = json.loads(path.with_name("exit.json").read_text())

    sent = model.requests[0]
    assert (sent.headers["authorization"], sent.json["seen"], sent.json["extra"]) == (f"Bearer {KEY}", True, 1)
    assert (done["status"], done["exit"], done["body"]) == (200, 0, "")
    assert "content-type: text/event-stream" in [line.lower() for line in done["headers"]]
    assert (failed["status"], failed["exit"], failed["body"]) == (503, 0, "busy")
    assert "x-who: me" in [line.lower() for line in failed["headers"]]


BUGS: Final[Mapping[str, tuple[str, str, str]]] = {
    "an exception": (
        "def broken(data):\n    raise KeyError(Path(__file__).read_text())  # here",
        "parse_chat",
        "failed (KeyError at mine.py:{line})",
    ),
    "an endless loop": (
        "def broken(data):  # here\n    while True: time.sleep(0.01)",
        "parse_chat",
        "gave no result within 0.3 s at mine.py:{line}",
    ),
    "a parser that returns a list": (
        "def broken(data):  # here\n    return [data]",
        "parse_chat",
        "must return {{status, output}}, got a list (mine.py:{line})",
    ),
    "a parser without an output": (
        "def broken(data):  # here\n    return {'status': 'success', 'content': 'x'}",
        "parse_chat",
        "must return {{status, output}}, got a table with status, content (mine.py:{line})",
    ),
    "a parser with an unknown status": (
        "def broken(data):  # here\n    return {'status': 'ok', 'output': {'content': 'x'}}",
        "parse_chat",
        "must return the status 'success' or 'error', got a string (mine.py:{line})",
    ),
    "a parser that finds nothing": (
        "def broken(data):  # here\n    return None",
        "parse_chat",
        "must return {{status, output}} for at least one part of the response, got nothing (mine.py:{line})",
    ),
    "an asynchronous parser": (
        "async def broken(data):  # here\n    return None",
        "parse_chat",
        "must return {{status, output}}, got a coroutine, because it is asynchronous (mine.py:{line})",
    ),
    "content that is not a string": (
        "def broken(data):  # here\n    return {'status': 'success', 'output': {'content': 5}}",
        "parse_chat",
        "must return an output with a string as content, got a number (mine.py:{line})",
    ),
    "a call without a name": (
        "def broken(data, tools):  # here\n    tools.append({'id': 1})",
        "parse_chat",
        "must append calls such as {{id, function: {{name, arguments}}}} to its tools, got a table with id",
    ),
    "tokens that are not a number": (
        "def broken(data):  # here\n    return 'many'",
        "parse_tokens",
        "must return a number or {{input, output}} with numbers, got a string (mine.py:{line})",
    ),
    "a builder that returns a list": (
        "def broken(messages):  # here\n    return messages",
        "build_messages",
        "must return a table such as {{messages}}, got a list (mine.py:{line})",
    ),
    "a slow setup": (
        "def broken():  # here\n    time.sleep(5)",
        "setup",
        "gave no result within 0.3 s at mine.py:{line}",
    ),
    "too many parameters": (
        "def broken(a, b, c, d):  # here\n    return None",
        "build_body",
        "failed (TypeError at mine.py:{line})",
    ),
}


async def test_a_bug_in_a_handler_is_named_and_costs_no_second_request(tmp_path: Path) -> None:
    # The files of the home folder are listed when the server starts.
    write(tmp_path, "http://127.0.0.1:1")
    async with ModelServer() as model, running_server(tmp_path) as server:
        with all_cases() as case:
            for name, (functions, handler, expected) in BUGS.items():
                with case(name):
                    handler_s = 0.3 if "within 0.3 s" in expected else 20
                    path = write(tmp_path, model.url, functions, f'"{handler}": broken', handler_s=handler_s)
                    model.replies[:] = [said("x")] * 3
                    model.requests.clear()
                    text = await error_of_new_session(server, model="mine/m")
                    line = line_of(path, "# here")
                    assert expected.format(line=line) in text
                    assert f"adapter 'mine': its handler {handler} " in text
                    assert KEY not in text
                    assert len(model.requests) <= 1
    assert KEY not in server.stderr


async def test_failing_handlers_after_the_answer_do_not_take_it_away(tmp_path: Path) -> None:
    functions = """
def on_exit(data):
    raise ValueError("broken")

def teardown():
    Path(__file__).with_name("torn-down").touch()
"""
    async with ModelServer(said("Answered.")) as model:
        path = write(tmp_path, model.url, functions, '"on_exit": on_exit, "teardown": teardown')
        async with running_server(tmp_path) as server:
            assert await answer_of_new_session(server) == "Answered."
            assert path.with_name("torn-down").exists()

    assert "adapter 'mine': handler on_exit: ValueError: broken" in server.stderr
    assert f"{path}:{line_of(path, 'broken')}" in server.stderr


async def test_an_error_in_a_stream_that_the_parser_ignores_is_reported(tmp_path: Path) -> None:
    ignoring = "def ignoring(data):\n    return None"
    error: Any = {"error": {"message": "no such model", "type": "invalid_request_error"}}
    async with ModelServer(event_stream(f"data: {json.dumps(error)}\n\n".encode()), json_reply(error)) as model:
        write(tmp_path, model.url, ignoring, '"parse_chat": ignoring')
        async with running_server(tmp_path) as server:
            for _ in range(2):
                assert "no such model" in await error_of_new_session(server)


ERRORS: Final[Mapping[str, str]] = {
    "parse raises": "def parse(data):\n    raise RuntimeError('gone: ' + str(data))",
    "parse returns": "def parse(data):\n    return {'status': 'error', 'output': 'gone: '}",
    "bug": "def on_exit(data):\n    return data['nothing']",
    "value": "def on_exit(data):\n    raise ValueError('gone: ' + data['body'])",
    "text": "def on_exit(data):\n    return 'gone: ' + data['body']",
    "table": "def on_exit(data):\n    return {'status': 'error', 'output': 'gone: ' + data['body']}",
    "exception": "def on_exit(data):\n    raise RuntimeError('gone: ' + data['body'])",
    "own class": "class Gone(Exception): pass\n\nasync def on_exit(data):\n    raise Gone('gone: ' + data['body'])",
}


async def test_an_adapter_can_tell_its_user_an_error(tmp_path: Path) -> None:
    body = json.dumps({"oops": {"detail": f"quota of {KEY}" + " gone" * 100}})
    texts: dict[str, str] = {}

    case = ""

    def answer(_request: SeenRequest) -> Reply:
        return said("Hi.") if "parse" in case else text_reply(body, status=400)

    async with (
        ModelServer(answer=answer) as model,
        running_server(tmp_path, config="[retry]\nattempts = 1\n") as server,
    ):
        for case, functions in ERRORS.items():
            write(
                tmp_path, model.url, functions, '"parse_chat": parse' if "parse" in case else '"on_exit": on_exit'
            )
            texts[case] = await error_of_new_session(server, model="mine/m")
            assert KEY not in texts[case], case
    bug = texts.pop("bug")
    parsed = [texts.pop(case) for case in ("parse raises", "parse returns")]
    assert all(": gone:" in text for text in parsed), parsed
    assert all(text.startswith("Execution failed: gone: ") for text in texts.values()), texts
    # A bug is no message: the body of an unknown shape is quoted.
    assert 'HTTP 400 Bad Request: {"oops":{"detail":"quota of [' in bug
    assert 20 < bug.count("gone") < 40
