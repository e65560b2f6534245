"""``jumpseat chat`` at three widths and in every state, with its colours: captures that were reviewed by eye.

``UPDATE_CAPTURES=1`` rewrites the captures, and then the pictures of them, for a light and a dark terminal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.terminal.gallery import GALLERY, PAGES, pictures
from tests.terminal.terminal import Place, Terminal, chat, check_colours

ANSWER = """\
The parser drops the *last* line if it has no line break.

1. `read_lines` splits at line breaks and forgets the rest.
2. The tests only have complete lines, so nothing failed.

```python
for line in text.splitlines():
    yield line.rstrip()
```

| file | change |
|---|---|
| parser.py | keep the rest |
| test_parser.py | a test without a line break at the end |
"""

BEFORE = """\
def read_lines(text: str) -> list[str]:
    lines = text.split("\\n")
    return lines[:-1]
"""

EDIT = {
    "name": "edit",
    "arguments": {
        "path": "parser.py",
        "old_str": "    return lines[:-1]\n",
        "new_str": "    # The last piece is empty if the text ends with a line break.\n"
        "    return lines if lines[-1] else lines[:-1]\n",
    },
}
TEST = {"name": "bash", "arguments": {"command": "seq 1 12 && echo 12 passed", "description": "Run the tests"}}
QUESTION = {
    "name": "ask_user",
    "arguments": {
        "question": "Should an empty text have **no** lines, or one empty line?",
        "choices": ["no lines", "one empty line, as `str.split` does it", "raise an error"],
    },
}

SCRIPT = {
    "prompts": [
        {"when": "explain", "turns": [{"reasoning": "The slice looks wrong. " * 12, "text": ANSWER}]},
        {"when": "stream", "turns": [{"text": f"{ANSWER}\nNow I will look for other", "hang": True}]},
        {
            "when": "fix",
            "turns": [
                {"text": "I will keep it.", "tool_calls": [EDIT]},
                {"tool_calls": [TEST]},
                {"text": "It works."},
            ],
        },
        {"when": "ask", "turns": [{"tool_calls": [QUESTION]}, {"text": "Good."}]},
        {
            "when": "plan",
            "turns": [
                {
                    "tool_calls": [
                        {
                            "name": "exit_plan_mode",
                            "arguments": {"summary": "1. Keep the last line.\n2. Add a test."},
                        }
                    ]
                },
                {"text": "Good."},
            ],
        },
        {"when": "fail", "turns": [{"errors": [{"status": 401, "message": "invalid api key"}], "text": "never"}]},
    ]
}

IDLE = {"without": r"ctrl-c cancels"}


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder whose path is always equally long: the model is told the path, and its tokens are shown."""
    # The server ends with its terminal, and may still write.
    with TemporaryDirectory(prefix="gallery-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.mark.parametrize(("columns", "rows"), [(44, 30), (80, 30), (160, 40)], ids=["44", "80", "160"])
def test_every_state_looks_as_reviewed(folder: Path, columns: int, rows: int) -> None:
    place = Place(folder, SCRIPT)
    (place.project / "parser.py").write_text(BEFORE)

    def check(state: str, terminal: Terminal, *wanted: str, without: str | None = None) -> None:
        terminal.until(*wanted, without=without)
        check_colours(f"{columns}-{state}", terminal)
        # The next state begins at the top of an empty screen.
        terminal.forget()

    with chat(place, columns=columns, rows=rows) as terminal:
        terminal.type("/c")
        check("suggestions", terminal, r"❯ /connect", r"tab completes")
        terminal.press("C-c")
        terminal.until(r"^❯$")
        terminal.submit("explain it")
        check("answer", terminal, r"parser\.py", r"of context", **IDLE)
        terminal.submit("stream it")
        check("streaming", terminal, r"look for other", r"ctrl-c cancels")
        terminal.press("C-c")
        terminal.until(r"^cancelled", **IDLE)
        terminal.forget()
        terminal.submit("fix it")
        check("diff", terminal, r"Make this change\?", r"· esc$")
        terminal.answer("s")
        check("confirm", terminal, r"Keep this approval", r"· esc$")
        terminal.answer("k")
        check("command", terminal, r"Run this command\?", r"· esc$")
        terminal.type("run the other tests")
        terminal.press("Enter")
        check("draft", terminal, r"why: run the", r"^… run the")
        terminal.press("C-u", "y", "Enter")
        check("tools", terminal, r"It works\.", **IDLE)
        terminal.submit("/permissions")
        check("permissions", terminal, r"Revoke an approval\?", r"· esc$")
        terminal.press("Escape")
        terminal.submit("/diff")
        check("changes", terminal, r"after: fix it", r"^❯$")
        terminal.submit("ask me")
        check("question", terminal, r"0 something else", r"· esc$")
        terminal.press("Escape")
        terminal.until(r"Good\.", **IDLE)
        terminal.forget()
        terminal.submit("fail now")
        check("error", terminal, r"✗ .*invalid api key", **IDLE)
        terminal.press("BTab", "BTab")
        terminal.until(r"^plan mode · ")
        terminal.submit("plan it")
        check("plan", terminal, r"Is this plan right\?", r"· esc$")
        terminal.press("Escape")
        terminal.until(r"Good\.", **IDLE)
        terminal.press("BTab")
        terminal.until(r"^one · ")
        terminal.forget()
        terminal.submit("/context")
        check("context", terminal, r"free", r"/compact does so now")
        terminal.submit("/new")
        terminal.until(r"/help lists")
        terminal.submit("explain this, too")
        terminal.until(r"parser\.py", r"of context", **IDLE)
        terminal.forget()
        terminal.submit("/sessions")
        check("picker", terminal, r"Which session", r"· esc$")


def test_pictures_show_the_captures() -> None:
    drawn = pictures()
    if os.environ.get("UPDATE_CAPTURES"):
        for path, picture in drawn.items():
            path.write_text(picture)
    assert drawn == {path: path.read_text() for folder in (GALLERY, PAGES) for path in folder.glob("*.svg")}
