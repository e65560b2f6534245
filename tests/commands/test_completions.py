"""Completions of what a user types, for clients that have none of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jumpseat.commands.completions import Token, find_token
from tests.support.cases import check_each
from tests.support.server import JsonObject, RunningServer, running_server, scripted

pytestmark = pytest.mark.anyio

HELLO = scripted({"text": "Hello!"})


async def completed(server: RunningServer, session: str, text: str, offset: int | None = None) -> list[JsonObject]:
    end = len(text.encode("utf-16-le")) // 2
    params = {"sessionId": session, "text": text, "offset": end if offset is None else offset}
    return (await server.wire.call("session.completions.request", params))["items"]


async def texts(server: RunningServer, session: str, text: str) -> list[str]:
    return [item["insertText"] for item in await completed(server, session, text)]


def make_repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


async def test_only_clients_that_ask_for_them_get_completions(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        for options, characters in (({}, []), ({"requestCompletions": True}, ["/", "@"])):
            session = await server.wire.create(HELLO, **options)
            found = await server.wire.call("session.completions.getTriggerCharacters", {"sessionId": session})
            assert found == {"triggerCharacters": characters}
            assert bool(await completed(server, session, "/")) is bool(characters)


async def test_commands_and_their_choices_are_completed(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO, requestCompletions=True, commands=[{"name": "Usual"}])
        assert await completed(server, session, "/us now", 3) == [
            {"insertText": "/Usual", "label": "/Usual", "kind": "command", "rangeStart": 0, "rangeEnd": 3},
            {
                "insertText": "/usage",
                "label": "/usage  Show the usage of this session since it was opened",
                "kind": "command",
                "rangeStart": 0,
                "rangeEnd": 3,
            },
        ]
        assert await texts(server, session, "/lo") == ["/loop"]
        assert await texts(server, session, "/goal o") == ["off"]
        assert (await completed(server, session, "/goal o"))[0]["rangeStart"] == 6
        for nothing in ("", "hello", "say /us", "/usage no", "/nothing x"):
            assert await texts(server, session, nothing) == [], nothing


async def test_files_of_the_workspace_are_completed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for name in ("README.md", "src/Main.py", "src/deep/domain.py", "built/main.o", "two words.md", "a[1].txt"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x")
    (project / ".gitignore").write_text("built/\n")
    (tmp_path / "outside-main.py").write_text("x")
    (project / "link").symlink_to(tmp_path)
    make_repository(project)
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO, requestCompletions=True, workingDirectory=str(project))
        # Files whose names begin so come first.
        assert await texts(server, session, "look at @main") == ["@src/Main.py", "@src/deep/domain.py"]
        assert await texts(server, session, "@src/deep/") == ["@src/deep/domain.py"]
        assert await texts(server, session, "@A[") == ["@a[1].txt"]
        assert await texts(server, session, "@") == ["@.gitignore", "@README.md", "@a[1].txt"]
        for outside in ("@../", "@../out", "@link/", "@/etc/", "@{", "@[9", "@**/x"):
            assert await texts(server, session, outside) == [], outside
        (item,) = await completed(server, session, "😀 @READ")
        assert (item["kind"], item["rangeStart"], item["rangeEnd"]) == ("document", 3, 8)


def test_the_word_before_the_cursor_is_found() -> None:
    def check(case: tuple[str, int, Token | None]) -> None:
        text, offset, token = case
        assert find_token(text, offset) == token

    check_each(
        {
            "a command": ("/he", 3, Token("command", "he", 0, 3)),
            "the cursor in a command": ("/help", 2, Token("command", "h", 0, 2)),
            "an argument": ("/add-dir  src", 13, Token("argument", "src", 10, 13, "add-dir")),
            "a file in an argument": ("/review @src", 12, Token("file", "src", 8, 12)),
            "a file in a later line": ("a\n@b", 4, Token("file", "b", 2, 4)),
            "an address": ("me@home", 7, None),
            "a slash in a sentence": ("see /he", 7, None),
            "half of a character": ("😀", 1, None),
            "beyond the end": ("@a", 99, Token("file", "a", 0, 2)),
            "a lone surrogate": ("@\ud800", 2, Token("file", "\ufffd", 0, 2)),
            "a long text": ("x" * 5000 + " @a", 5003, Token("file", "a", 5001, 5003)),
            "a long word": ("/" + "x" * 5000, 5001, None),
        },
        check,
    )
