"""Follow a tutorial as a reader would: write its files, run its commands in one shell, and compare the output.

A code block after a line that ends with a path in backticks and a colon is a file. The lines of a ``console`` block
that begin with ``$`` are commands; the others are their output, where ``...`` stands for any text.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.forked import executable

WAIT_S: Final = 60.0
_END: Final = "END-OF-THE-COMMAND"
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_FILE: Final = re.compile(r"`([\w./-]+)`:\s*\Z")


@dataclass(frozen=True, slots=True)
class Written:
    """A file that the reader writes."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that the reader runs, and its output."""

    command: str
    output: str


def steps_of(page: Path) -> Iterator[Written | Ran]:
    """Iterate over the steps of a tutorial. Other blocks, such as screens, are left out."""
    text = page.read_text()
    for match in _BLOCK.finditer(text):
        language, content = match.groups()
        named = _FILE.search(text[: match.start()].rstrip("\n"))
        if language == "console":
            parts = re.split(r"^\$ (.*)\n", content, flags=re.MULTILINE)[1:]
            for command, output in zip(parts[::2], parts[1::2], strict=True):
                yield Ran(command, output)
        elif named is not None:
            yield Written(named[1], content)


class Reader:
    """Follows tutorials in ``folder``. ``replaced`` are texts of the page to replace, for example ports."""

    def __init__(self, folder: Path, replaced: Mapping[str, str]) -> None:
        self.folder = folder
        self._replaced = replaced
        places = [str(Path(executable()).parent), str(Path(sys.executable).parent), os.environ["PATH"]]
        env = {"PATH": ":".join(places), "HOME": str(folder), "LANG": "C.UTF-8"}
        self._shell = subprocess.Popen(
            ["sh"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=env,
            start_new_session=True,
        )

    def follow(self, page: Path) -> None:
        """Take every step of a page.

        Raises:
            AssertionError: a command printed something else than the page says.
        """
        for step in steps_of(page):
            if isinstance(step, Written):
                path = self.cwd() / step.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self._in_test(step.content))
            else:
                command, expected = self._in_test(step.command), self._in_test(step.output)
                background = command.rstrip().endswith("&")
                shown = self._run(command, until=expected if background else None)
                shown = shown.replace(f"{self.cwd()}/", "").rstrip("\n")
                assert matches(shown, expected.rstrip("\n")), f"$ {command}\n{shown}\n--- expected:\n{expected}"

    def cwd(self) -> Path:
        """Return the working directory of the shell."""
        return Path(self._run("pwd", until=None).strip())

    def close(self) -> None:
        """End the shell and everything that it has started."""
        os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        for pipe in (self._shell.stdin, self._shell.stdout):
            assert pipe is not None
            pipe.close()

    def _in_test(self, text: str) -> str:
        for old, new in self._replaced.items():
            text = text.replace(old, new)
        return text

    def _run(self, command: str, until: str | None) -> str:
        """Run a command and return its output. One in the background has started when it has printed ``until``."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{{ {command}\n}} </dev/null\necho {_END}\n".encode())
        self._shell.stdin.flush()
        shown, deadline = "", time.monotonic() + WAIT_S
        while f"{_END}\n" not in shown or (until is not None and until.strip() not in shown):
            ready, _, _ = select.select([self._shell.stdout], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"$ {command}\nhas not ended after {WAIT_S:g} s; it printed:\n{shown}"
            shown += os.read(self._shell.stdout.fileno(), 65536).decode()
        return shown.replace(f"{_END}\n", "")


def matches(shown: str, expected: str) -> bool:
    """Return whether an output is the expected one, where ``...`` stands for any text."""
    return re.fullmatch(".*".join(map(re.escape, expected.split("..."))), shown, re.DOTALL) is not None
