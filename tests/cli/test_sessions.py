"""``jumpseat sessions``: stored sessions are listed, shown, exported and deleted without a server."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from tests.support.forked import executable
from tests.support.server import calls, running_server, scripted
from tests.terminal.terminal import Place

SCRIPT = {
    "prompts": [
        {
            "when": "parser",
            "turns": [
                {
                    "text": "Let me look.",
                    "tool_calls": [calls("bash", command="echo one; exit 3")["tool_calls"][0]],
                    "usage": {"input": 1200, "output": 55},
                },
                {"text": "The **grammar** is in `a.txt`.", "usage": {"input": 1700, "output": 90}},
            ],
        },
        {"when": "fail", "turns": [{"errors": [{"status": 401, "message": "bad key"}], "text": "never"}]},
        {"when": "hang", "turns": [{"text": "Working on it", "hang": True}]},
        {"turns": [{"text": "You said: {{last_user}}", "usage": {"input": 7, "output": 3}}]},
    ]
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, SCRIPT)


def sessions(place: Place, *args: str, code: int = 0, stdin: str = "") -> str:
    """Run the command, check its exit code, and return its stdout; its stderr if it has failed."""
    done = subprocess.run(
        [executable(), "sessions", *args],
        input=stdin,
        capture_output=True,
        text=True,
        env=place.env(),
        cwd=place.project,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


def listed(place: Place, *args: str) -> dict[str, Any]:
    """Return the listed sessions by title."""
    return {entry["title"]: entry for entry in json.loads(sessions(place, "list", "--json", *args))}


def without_durations(text: str) -> str:
    """Return a shown session without the durations of its calls, which are shown from one second on."""
    return re.sub(r", \d+s\b", "", text)


def test_sessions_are_found_by_folder_text_and_date_and_runs_are_marked(place: Place) -> None:
    place.run("write a parser", "--allow-tool", "shell")
    place.run("fail now")
    elsewhere = place.project / "elsewhere"
    elsewhere.mkdir()
    place.run("hello", "--folder", str(elsewhere))

    found = listed(place)
    assert list(found) == ["hello", "fail now", "write a parser"]
    assert [entry["marks"] for entry in found.values()] == [["one-off"], ["one-off", "unanswered"], ["one-off"]]
    assert found["hello"]["folder"] == str(elsewhere)
    assert list(listed(place, "--folder", "elsewhere")) == ["hello"]
    assert list(listed(place, "--folder", str(place.project))) == list(found)
    assert list(listed(place, "--text", "GRAMMAR parser")) == ["write a parser"]
    assert list(listed(place, "--text", "grammar zebra")) == []
    assert list(listed(place, "--since", "1h")) == list(found)
    assert list(listed(place, "--until", "2020-01-31")) == []
    assert list(listed(place, "--limit", "1")) == ["hello"]
    lines = sessions(place, "list").splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["one-off", "unanswered", "one-off"]


def test_a_session_is_shown_with_its_turns_calls_and_usage(place: Place) -> None:
    place.run("write a parser", "--allow-tool", "shell")
    text = sessions(place, "show", "last")

    assert re.search(r"one +2 +2,900 +0 +145 +unknown", text)
    shown = without_durations(text[text.index("❯ write a parser") :]).split("\n")
    assert [line.rstrip() for line in shown if line.strip()] == [
        "❯ write a parser",
        "Let me look.",
        "✗ bash echo one; exit 3  exit code 3, 1 line",
        "    one",
        "The grammar is in a.txt.",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="terminals as files")
def test_an_export_to_a_terminal_has_no_control_characters(place: Place) -> None:
    place.run("say \x1b]0;title\x07\x1b[2J\x9b1mred\x08")
    assert "\x1b[2J" in sessions(place, "export", "last")
    for arguments in (("export", "last"), ("export", "last", "--format", "jsonl"), ("list",), ("show", "\x1b[2J")):
        output = at_terminal(place, *arguments)
        assert output
        assert not set(b"\x1b\x07\x08") & set(output), arguments


def at_terminal(place: Place, *args: str) -> bytes:
    """Run the command and return what it writes to a terminal."""
    assert sys.platform != "win32"
    ours, its = os.openpty()
    output = b""
    with (
        open(ours, "rb", buffering=0) as terminal,
        subprocess.Popen(
            [executable(), "sessions", *args],
            stdin=subprocess.DEVNULL,
            stdout=its,
            stderr=its,
            env=place.env(),
            cwd=place.project,
        ),
    ):
        os.close(its)
        # Linux reports the end as an error.
        with suppress(OSError):
            while part := terminal.read(65536):
                output += part
    return output


def test_a_session_is_exported_in_three_formats_and_no_file_is_overwritten(place: Place) -> None:
    place.run("write a parser", "--allow-tool", "shell")
    (entry,) = listed(place).values()
    for name in ("a.md", "a.html", "a.jsonl"):
        sessions(place, "export", entry["id"][:6], "-o", name)
    markdown, page, lines = ((place.project / f"a.{suffix}").read_text() for suffix in ("md", "html", "jsonl"))

    shown = without_durations(markdown)
    assert "**bash** `echo one; exit 3` (exit code 3, 1 line)\n\n```text\none\n```" in shown
    assert "<p>The <strong>grammar</strong> is in <code>a.txt</code>.</p>" in page
    log = place.home / "session-state" / entry["id"] / "events.jsonl"
    assert [json.loads(line) for line in lines.splitlines()] == [
        json.loads(line) for line in log.read_text().splitlines()
    ]
    assert sessions(place, "export", "last") == markdown
    assert stat.S_IMODE((place.project / "a.md").stat().st_mode) == 0o600
    problem = sessions(place, "export", "last", "-o", "a.md", code=1)
    assert problem == "error: 'a.md' exists already\n"
    sessions(place, "export", "last", "-o", "a.md", "--format", "jsonl", "--force")
    assert (place.project / "a.md").read_text() == lines


def test_nothing_is_deleted_without_a_yes(place: Place) -> None:
    place.run("hello")
    problem = sessions(place, "delete", "last", code=1, stdin="y\n")

    assert problem == "error: no terminal to ask on: --yes deletes without a question\n"
    assert list(listed(place)) == ["hello"]
    sessions(place, "delete", "last", "--yes")
    assert listed(place) == {}
    assert list((place.home / "session-state").iterdir()) == []


def test_pruning_deletes_old_sessions_with_a_mark_and_says_what_it_would_delete(place: Place) -> None:
    for prompt in ("hello", "fail now", "fail again"):
        place.run(prompt)
    found = listed(place)
    old = [found[title]["id"] for title in ("hello", "fail now")]
    for session_id in old:
        os.utime(place.home / "session-state" / session_id / "events.jsonl", (1_700_000_000, 1_700_000_000))
    options = ("--older-than", "30d", "--only", "unanswered")

    assert re.search(r"1 session to delete, \d+ KiB\n\Z", sessions(place, "prune", *options, "--dry-run"))
    assert set(listed(place)) == set(found)
    assert sessions(place, "prune", *options, "--yes") == f"Deleted {found['fail now']['id']}\n"
    assert set(listed(place)) == {"hello", "fail again"}


def test_statistics_add_up(place: Place) -> None:
    place.run("write a parser", "--allow-tool", "shell")
    place.run("hello")
    sums = json.loads(sessions(place, "stats", "--json"))

    wanted = {"sessions": 2, "oneOff": 2, "unanswered": 0, "prompts": 2, "toolCalls": 1}
    assert {name: sums[name] for name in wanted} == wanted
    assert sums["tools"] == {"bash": 1}
    assert sums["folders"] == {str(place.project): 2}
    assert sums["models"]["one"] == {
        "calls": 3,
        "inputTokens": 2907,
        "cachedTokens": 0,
        "outputTokens": 148,
        "costUsd": None,
    }
    assert "prompts     2\n" in sessions(place, "stats")


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["show", "zzz"], "no session has an id that begins with 'zzz'; 'jumpseat sessions list' lists them"),
        (["show", "last"], "there are no sessions yet"),
        (["list", "--since", "soon"], "expected a date (2026-01-31) or an age (7d, 12h, 4w), got 'soon'"),
        (["prune", "--older-than", "-1d"], "expected one argument"),
        (["prune", "--older-than", "old"], "expected an age such as 30d, 12h or 4w, got 'old'"),
        (["list", "--limit", "0"], "expected a number above 0, got '0'"),
    ],
)
def test_a_wrong_argument_is_an_error_in_one_line(place: Place, args: list[str], problem: str) -> None:
    text = sessions(place, *args, code=2)

    assert text.startswith("error: ")
    assert text.endswith(f"{problem}\n")
    assert text.count("\n") == 1


@pytest.mark.anyio
async def test_a_session_in_use_is_listed_but_not_deleted(tmp_path: Path) -> None:
    place = Place(tmp_path, SCRIPT)
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"text": "Hi."}))
        await server.wire.prompt(session, "hello")
        (entry,) = (await anyio.to_thread.run_sync(listed, place)).values()
        problem = await anyio.to_thread.run_sync(
            partial(sessions, place, "delete", session, "--yes", code=1), abandon_on_cancel=True
        )

    assert (entry["id"], entry["inUse"], entry["marks"]) == (session, True, [])
    assert problem.startswith(f"error: session {session}: ")
    assert (server.home / "session-state" / session / "events.jsonl").exists()
