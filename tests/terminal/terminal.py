"""A real terminal for tests: ``jumpseat chat`` in tmux, with keys as input and screens as output.

Screens are compared with files in ``captures/``. ``UPDATE_CAPTURES=1`` rewrites the files; review the difference.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from pathlib import Path

import yaml

from tests.support.forked import executable
from tests.support.limits import WAIT_S
from tests.support.tmux import Tmux
from tests.support.toolchains import require_program

CAPTURES = Path(__file__).parent / "captures"
LINES_KEPT = 500


CONFIG = """\
default_model = "play/one"

[adapters.play]
type = "scripted"
script = "script.yaml"
models = ["one", "two", "日本語-model"]
"""


class Place:
    """A home folder with a scripted model, and a project folder to work in."""

    def __init__(self, folder: Path, script: object) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.home.mkdir()
        self.project.mkdir()
        (self.home / "config.toml").write_text(CONFIG)
        (self.home / "script.yaml").write_text(script if isinstance(script, str) else yaml.safe_dump(script))

    def env(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return an environment without the developer's own settings, updated by ``more``."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.project.parent),
            "COPILOT_HOME": str(self.home),
            "LANG": "C.UTF-8",
            **(more or {}),
        }

    def run(
        self,
        *args: str,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        command: str = "run",
    ) -> subprocess.CompletedProcess[str]:
        """Run ``jumpseat run``, or another ``command``, through pipes."""
        return subprocess.run(
            [executable(), command, *args],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            env=self.env(env),
            cwd=self.project,
            timeout=120,
            check=False,
        )


class Terminal:
    """A private tmux server with one window."""

    def __init__(self, tmux: Tmux) -> None:
        self.tmux = tmux.run
        self._until = tmux.until
        self._history = True

    def type(self, text: str) -> None:
        """Type characters literally."""
        self.tmux("send-keys", "-l", text)

    def paste(self, text: str, *, marked: bool = True) -> None:
        """Paste text, ``marked`` as modern terminals do (bracketed paste), or as if it was typed at once."""
        data = f"\x1b[200~{text}\x1b[201~" if marked else text
        self.tmux("send-keys", "-H", *(f"{byte:02x}" for byte in data.replace("\n", "\r").encode()))

    def press(self, *keys: str) -> None:
        """Press keys by their tmux names: ``Enter``, ``C-c``, ``Down``."""
        self.tmux("send-keys", *keys)

    def submit(self, text: str) -> None:
        """Type a prompt and send it."""
        self.type(text)
        self.until(f"❯ {text[:20]}")
        self.press("Enter")

    def answer(self, *keys: str) -> None:
        """Answer the open question with ``keys`` and enter, as soon as it takes an answer."""
        # The last line of a question: while it is drawn again, there is none.
        self.until(r"esc", without="one moment: the question is new")
        self.press(*keys, "Enter")

    def keep(self, key: str) -> None:
        """Give an approval that outlasts its call, with the second key that confirms it."""
        self.answer(key)
        self.until(r"Keep this approval")
        self.answer("k")

    def screen(self) -> str:
        """Return the screen with scrolled lines, without empty lines at the end."""
        return self.tmux("capture-pane", "-p", "-S", f"-{LINES_KEPT}").rstrip() + "\n"

    def visible(self) -> str:
        """Return what is on the screen now, with its colours."""
        return self.tmux("capture-pane", "-p", "-e").rstrip() + "\n"

    def forget(self) -> None:
        """Empty the screen, and have the application draw itself again. :meth:`until` forgets what was scrolled."""
        self._history = False
        self.press("C-l")

    def until_equal(self, known: str, capture: Callable[[], str]) -> str:
        """Wait until ``capture`` returns ``known``, or for the usual time, and return what it has returned."""
        return self._until(lambda: known if capture() == known else None, WAIT_S) or capture()

    def until(self, *wanted: str, without: str | None = None) -> str:
        """Wait until ``wanted`` (regular expressions), and not ``without``, match the screen, and return it."""

        def match() -> str | None:
            screen = self.screen() if self._history else self.tmux("capture-pane", "-p")
            gone = without is None or not re.search(without, screen, re.MULTILINE)
            return screen if gone and all(re.search(pattern, screen, re.MULTILINE) for pattern in wanted) else None

        found = self._until(match, WAIT_S)
        assert found is not None, f"no {wanted} (without {without!r}) on:\n{self.screen()}"
        return found


@contextmanager
def chat(
    place: Place,
    *args: str,
    columns: int = 80,
    rows: int = 24,
    env: Mapping[str, str] | None = None,
    command: Sequence[str] = (),
    ready: str = r"/help lists the commands",
) -> Generator[Terminal]:
    """Run a chat in a terminal and wait until it shows ``ready``. Its exit code appears as ``exit code N``.

    ``command`` replaces ``jumpseat chat``.
    """
    require_program("tmux")
    words = ["env", "-i", *(f"{name}={value}" for name, value in place.env(env).items())]
    words += ["TERM=screen-256color", *(command or (executable(), "chat")), *args]
    line = f"{shlex.join(words)}; echo exit code $?; exec cat"
    size = ("-x", str(columns), "-y", str(rows))
    tmux = Tmux(
        ["tmux", "-L", f"jumpseat-test-{uuid.uuid4().hex[:12]}", "-f", os.devnull],
        [*size, "-c", str(place.project), "sh", "-c", line],
    )
    try:
        terminal = Terminal(tmux)
        terminal.tmux("set-option", "-g", "history-limit", str(LINES_KEPT))
        terminal.until(ready)
        yield terminal
    finally:
        tmux.close()


def check_colours(name: str, terminal: Terminal) -> None:
    """Wait until what is on the screen equals its coloured capture."""
    _check(CAPTURES / "gallery" / f"{name}.ansi", terminal, lambda: _normalize_colours(terminal.visible()))


def check_capture(name: str, terminal: Terminal, *wanted: str, without: str | None = None) -> None:
    """Wait until ``wanted``, and not ``without``, match the screen, and until it equals its capture.

    Ids, times, versions, durations and percentages are ignored.
    """
    terminal.until(*wanted, without=without)
    _check(CAPTURES / f"{name}.txt", terminal, lambda: _normalize(terminal.screen()))


def _check(path: Path, terminal: Terminal, capture: Callable[[], str]) -> None:
    if os.environ.get("UPDATE_CAPTURES"):
        path.write_text(capture())
    known = path.read_text()
    # What was awaited may be on the screen before all is drawn.
    shown = terminal.until_equal(known, capture)
    # Pytest explains no assertion of this module.
    assert shown == known, "\n".join(map(repr, unified_diff(known.split("\n"), shown.split("\n"), lineterm="")))


def _normalize(screen: str) -> str:
    shown = re.sub(r"--resume [0-9a-f]{8}", "--resume 01234567", screen)
    shown = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "2000-01-01 00:00", shown)
    shown = re.sub(r"(?:just now|\d+ min ago) *", "just now    ", shown)
    shown = re.sub(r"jumpseat \d+\.\d+\.\d+\S*", "jumpseat 0.0.0", shown)
    shown = re.sub(rf"[{'⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'}] (\w+(?: \w+)?) \d+s", r"⠋ \1 0s", shown)
    shown = re.sub(r"\d+(\.\d+)?% (of context|used)", r"1% \2", shown)
    # The durations of calls and thoughts are shown from one second on.
    shown = re.sub(r"∴ thought for \d+s", "∴ thought", shown)
    shown = re.sub(r"(?:, |  )\d+s(?=(?:\x1b\[[\d;]*m)*$)", "", shown, flags=re.MULTILINE)
    return "\n".join(line.rstrip() for line in shown.split("\n"))


def _normalize_colours(screen: str) -> str:
    """Write each line by itself, with the styles of its visible characters alone.

    How tmux writes the style of blanks, and of text after them, depends on the order of the drawing. Blank lines at
    the end are left out: those with a style count as written.
    """
    lines: list[str] = []
    style: frozenset[str] = frozenset()
    # A terminal keeps the style from line to line.
    for line in _normalize(screen).split("\n"):
        written = ""
        current: frozenset[str] = frozenset()
        for codes, character in re.findall(r"\x1b\[([\d;]*)m|(.)", line):
            if not character:
                style = _changed(style, codes)
                continue
            if character != " " and style != current:
                written += f"\x1b[{';'.join(('0', *sorted(style)))}m"
                current = style
            written += character
        lines.append(written + ("\x1b[0m" if current else ""))
    return "\n".join(lines).rstrip("\n") + "\n"


def _changed(style: frozenset[str], codes: str) -> frozenset[str]:
    """Return the style after an escape sequence. Nothing in the captures has a background."""
    for code in codes.split(";"):
        match code:
            case "" | "0":
                style = frozenset()
            case "49":
                pass
            case _ if code[0] in "39" and len(code) == 2:
                style = frozenset(kept for kept in style if len(kept) < 2) | ({code} - {"39"})
            case _:
                style |= {code}
    return style
