"""The tasks of the lab: their files, how a workspace is laid for one, and what is checked afterwards.

A task is a TOML file in ``data/LANGUAGE/``; the tasks of a language share the project in ``data/LANGUAGE.toml``.
The steps describe what a capable model would do, and are for the simulated model alone; a real one sees the prompt.
The checks read files and the answer, and some run the project's own check.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, convert

TASKS: Final = Path(__file__).with_name("data")
COMMAND_S: Final = 300
_OPENING: Final = {")": "(", "]": "[", "}": "{"}


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to do: exactly one of ``view``, ``search``, ``edit``, ``create``, ``run`` and ``answer`` is set.

    ``seen`` is what the model must have read for its answer; if the results do not show it, the model searches for
    ``else_search`` in ``path``.
    """

    view: str = ""
    search: str = ""
    path: str = ""
    edit: str = ""
    old: str = ""
    new: str = ""
    create: str = ""
    text: str = ""
    run: str = ""
    answer: str = ""
    seen: str = ""
    else_search: str = ""


class Check(Struct, frozen=True, forbid_unknown_fields=True):
    """The expectations of a solution: the parts of a file or of the answer, or the output of a command."""

    file: str = ""
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    equals: str = ""
    answer: tuple[str, ...] = ()
    only: bool = False
    command: str = ""
    prints: str = ""


class Task(Struct, frozen=True, forbid_unknown_fields=True):
    """``needs`` is the program that the check of the project needs; without it, the task is skipped."""

    name: str
    language: str
    kind: str
    prompt: str
    steps: tuple[Step, ...]
    checks: tuple[Check, ...]
    needs: str = ""
    log_code: str = ""
    log_lines: int = 0

    @property
    def id(self) -> str:
        return f"{self.language}/{self.name}"

    @property
    def missing_program(self) -> str | None:
        return self.needs if self.needs and shutil.which(self.needs) is None else None

    def lay(self, folder: Path) -> None:
        """Write the files of the project into an empty folder."""
        for name, text in self.files():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield the path and the text of each file."""
        project = tomllib.loads((TASKS / f"{self.language}.toml").read_text(encoding="utf-8"))
        yield from project.items()
        if self.log_lines:
            yield "logs/app.log", "".join(self._log())

    def problems(self, folder: Path, answer: str, variables: Mapping[str, str] | None = None) -> list[str]:
        """Return what is wrong with a solution; nothing if it is right.

        ``variables`` are in the environment of the project's check.

        Files that no check names must be as they were, and code and JSON must be well-formed.
        """
        found = [problem for check in self.checks for problem in _problems(check, folder, answer, variables or {})]
        named = {check.file for check in self.checks}
        for name, text in self.files():
            path = folder / name
            if name in named:
                if (fault := malformed(name, _text(path))) is not None:
                    found.append(f"{name}: {fault}")
            elif not path.is_file() or _text(path) != text:
                found.append(f"{name}: changed")
        return found

    def _log(self) -> Iterator[str]:
        place = self.log_lines * 5 // 9
        for number in range(1, self.log_lines + 1):
            level, what = ("FATAL", f"code {self.log_code}") if number == place else ("INFO ", f"job {number * 7}")
            yield f"2026-03-01 {number // 3600:02}:{number // 60 % 60:02}:{number % 60:02} {level} worker: {what}\n"


def load_tasks(names: tuple[str, ...] = ()) -> list[Task]:
    """Return the tasks whose id begins with one of some names, or all of them.

    Families come in turns, so that the first few tasks are of several kinds and languages.
    """
    paths = sorted(TASKS.glob("*/*.toml"), key=lambda path: (path.stem, path.parent.name))
    return [task for path in paths for task in (_load(path),) if not names or task.id.startswith(names)]


def malformed(name: str, text: str) -> str | None:
    """Return why a file is not well-formed, as far as that is known without a compiler of its language."""
    try:
        if name.endswith(".py"):
            compile(text, name, "exec")
        elif name.endswith(".json"):
            json.loads(text)
        elif name.endswith((".js", ".go", ".rs", ".java")):
            return _unbalanced(text)
    except (SyntaxError, ValueError) as error:
        return f"malformed: {error}"
    return None


def _load(path: Path) -> Task:
    fields: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return convert({"name": path.stem, "language": path.parent.name, **fields}, Task)


def _problems(check: Check, folder: Path, answer: str, variables: Mapping[str, str]) -> Iterator[str]:
    if check.file:
        text = _text(folder / check.file)
        if check.equals and text.rstrip("\n") != check.equals.rstrip("\n"):
            yield f"{check.file}: not as asked for"
        yield from (f"{check.file}: lacks {part!r}" for part in check.has if part not in text)
        yield from (f"{check.file}: still has {part!r}" for part in check.lacks if part in text)
    for part in check.answer:
        if answer.strip().strip("`.") != part if check.only else part not in answer:
            yield f"the answer lacks {part!r}: {answer[-200:]!r}"
    if check.command:
        try:
            done = subprocess.run(  # noqa: S602 - a command of the task, in its own folder
                check.command,
                shell=True,
                cwd=folder,
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
                timeout=COMMAND_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            yield f"{check.command}: no end within {COMMAND_S} s"
        else:
            if check.prints not in done.stdout:
                yield f"{check.command}: {(done.stdout + done.stderr)[-200:]!r}"


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def _unbalanced(text: str) -> str | None:
    """Count brackets outside of strings and comments that end with their line."""
    open_brackets: list[str] = []
    for line in text.splitlines():
        quote = before = ""
        for char in line:
            if quote:
                quote = "" if char == quote and before != "\\" else quote
            elif char == '"':
                quote = char
            elif char == "/" and before == "/":
                break
            elif char in "([{":
                open_brackets.append(char)
            elif char in ")]}" and (not open_brackets or open_brackets.pop() != _OPENING[char]):
                return f"malformed: {char!r} without its beginning"
            before = char
    return f"malformed: {open_brackets[-1]!r} without its end" if open_brackets else None
