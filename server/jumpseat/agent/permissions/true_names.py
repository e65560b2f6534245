"""Judge the programs of a line by what they are: a copy of a forbidden one, or one that cannot be known.

The words of a line are judged by :mod:`jumpseat.agent.shell.started`, the files that they name here, before the
line runs: so a program that another command of the line may write or replace cannot be known.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from jumpseat.agent.permissions.paths import PathScope, expand_home, real_path
from jumpseat.agent.permissions.rules import Facts, Rule, is_command, rule_words
from jumpseat.agent.shell.constructs import Doubt
from jumpseat.agent.shell.effects import CommandWords
from jumpseat.agent.shell.programs import SHELLS
from jumpseat.agent.shell.reading import READING
from jumpseat.agent.shell.started import Forbidden, StartedFile, judge_input, started_by, started_by_words
from jumpseat.agent.shell.starters import STARTS_NOTHING

MAX_PATHS: Final = 32

HEAD_BYTES: Final = 64 * 1024
"""What is compared of programs of one size. Whoever changes a copy could change it at any place."""

MAX_SCRIPT_BYTES: Final = 256 * 1024
"""Limit of a script of the session that is examined; a larger one is not known."""

PAGE_BYTES: Final = 512
"""What is compared of a program at once: one that has half of another one's pages is a changed copy of it."""

MAX_SCRIPTS: Final = 4
"""Limit of scripts that start each other."""


def first_copy(rules: Iterable[Rule], facts: Facts) -> Rule | None:
    """Return the first rule whose program a line runs under another name, or names by its path. Reads files."""
    commands = facts.possible_commands
    started = [
        (path, words)
        for words in commands
        if words[0] and "/" in words[0] and _is_program(path := Path(facts.folder, words[0]))
    ][:MAX_PATHS]
    named = [word for words in commands for word in words[1:] if word and word[0] == "/"][:MAX_PATHS]
    # The matches of patterns, redirections, and files that a line which may copy them names from its folder.
    reached = [path.real for path in facts.paths[:MAX_PATHS]] if facts.kind == "shell" and facts.writes else []
    others = [path for word in dict.fromkeys((*named, *reached)) if _is_program(path := Path(word))]
    for rule in rules if started or others else ():
        name, *rest = rule_words(rule.argument or "")
        if rule.kind != "shell" or not name or (program := shutil.which(name)) is None:
            continue
        for path, words in started:
            if is_command(rule.argument or "", (name, *words[1:])) and _is_same(path, Path(program)):
                return rule
        if not rest and any(_is_same(path, Path(program)) for path in others):
            return rule
    return None


def first_doubt(rules: Iterable[Rule], facts: Facts, scope: PathScope, since: float) -> Doubt | None:
    """Return why the programs of a line cannot be known, or are copies of forbidden ones. Reads files.

    ``since`` is when the session began: scripts that were changed later are examined.
    """
    forbidden = Forbidden(tuple(tuple(rule_words(rule.argument or "")) for rule in rules if rule.kind == "shell"))
    if facts.kind != "shell" or not forbidden.commands:
        return None
    if facts.typed:
        return judge_input(facts.text)
    return _Examination(forbidden, facts, scope, since).line(facts.text, 0)


class _Examination:
    def __init__(self, forbidden: Forbidden, facts: Facts, scope: PathScope, since: float) -> None:
        self._forbidden = forbidden
        self._facts = facts
        self._since = since
        environ = scope.environ()
        # The environment of the server is not known here: any name in capitals may be in it.
        self._obeyed = str.isupper if environ is None else environ.__contains__
        self._search = None if environ is None else environ.get("PATH")
        self._folders = [Path(folder) for folder in dict.fromkeys((*facts.folders, facts.folder)) if folder]
        self._projects = [str(folder) for folder in scope.folders()]
        self._programs = [
            (Path(program), words)
            for words in forbidden.commands
            if (program := shutil.which(words[0], path=self._search)) is not None and not _is_many(Path(program))
        ]

    def line(self, text: str, depth: int) -> Doubt | None:
        """Judge a line, or the text of a script of the session."""
        started = started_by(text, self._forbidden, self._obeyed)
        if started.doubt is not None:
            return started.doubt
        if depth == 0 and self._facts.writes and (doubt := self._taken()) is not None:
            return doubt
        for file in started.files[:MAX_PATHS]:
            if (doubt := self._file(file, depth)) is not None:
                return doubt
        for value in started.values[:MAX_PATHS]:
            runs = "/" in value and any(map(_is_program, self._places(value)))
            if runs and (doubt := self._file(StartedFile(value, (value,)), depth)) is not None:
                return doubt
        more = len(started.files) > MAX_PATHS or len(started.values) > MAX_PATHS
        return Doubt(text, "names too many programs") if more else None

    def _taken(self) -> Doubt | None:
        """Return a doubt if a line that writes names the file of a forbidden program."""
        for path in self._facts.paths:
            if any(_is_file_of(Path(path.real), program) for program, _ in self._programs):
                return Doubt(path.given, "is the file of a program that is forbidden")
        return None

    def _places(self, path: str) -> list[Path]:
        return [Path(folder, expand_home(path)) for folder in self._folders]

    def _file(self, file: StartedFile, depth: int) -> Doubt | None:
        if "/" in file.path:
            found = [path for path in self._places(file.path) if _is_file(path)]
        else:
            program = shutil.which(file.path, path=self._search)
            found = [Path(program)] if program is not None else []
            if found and not self._may_change(found[0]):
                # A program of the system under its own name.
                return self._copy(found[0], file)
        if file.runner in ("", "sh"):
            if any(self._may_write(words, file.path) for words in file.before) or any(
                self._is_at(target, file.path) for target in file.targets
            ):
                return Doubt(file.path, "may be written by the same line: run it in a call of its own")
            if not found and "/" in file.path:
                return Doubt(file.path, "does not exist yet, so that nobody knows what it is")
        for path in found:
            if (doubt := self._copy(path, file) or self._script(path, file, depth)) is not None:
                return doubt
        return None

    def _may_write(self, words: CommandWords, path: str) -> bool:
        """Return whether a command may write a file at ``path``, or put another one there."""
        name = posixpath.basename(words[0] or "")
        if name in _WRITES_NOTHING or " ".join(word or "" for word in words[:2]) in READING:
            return False
        if name not in _WRITES_NAMED or any(word is None or word[:2] == "-t" for word in words):
            return True
        # Copies of folders may hold links.
        recursive = any(re.match(r"-[a-zA-Z]*[arRdP]|--(?:a|r|no-d)", word or "") for word in words)
        return recursive or any(self._is_at(word or "", path) for word in words[1:])

    def _is_at(self, target: str, path: str) -> bool:
        """Return whether writing to ``target`` may write a file at ``path``: it is that, or a folder above it."""
        if re.search(r"[$`*?\[{]", target):
            return True
        mine = {str(real_path(place)) for place in self._places(path)}
        return any(
            one == other or one.startswith(f"{other.rstrip('/')}/")
            for other in map(str, map(real_path, self._places(target)))
            for one in mine
        )

    def _may_change(self, path: Path) -> bool:
        real = str(path.resolve())
        return _changed(path) >= self._since or any(real.startswith(f"{folder}/") for folder in self._projects)

    def _copy(self, path: Path, file: StartedFile) -> Doubt | None:
        for program, words in self._programs:
            if path.name.casefold() != posixpath.basename(words[0]).casefold() and _is_copy(path, program):
                return Doubt(file.path, f"is a copy of {words[0]}, or a link to it")
        return None

    def _script(self, path: Path, file: StartedFile, depth: int) -> Doubt | None:
        """Judge what runs a script, and the script itself if the session has changed it."""
        try:
            with path.open("rb") as opened:
                content = opened.read(MAX_SCRIPT_BYTES + 1)
        except OSError:
            return Doubt(file.path, "cannot be read")
        by = _interpreter(content) if not file.runner else []
        if by:
            words = (*by, file.path, *file.words[1:])
            started = started_by_words(words, self._forbidden, self._obeyed)
            if started.doubt is not None:
                return started.doubt
        if _changed(path) < self._since or content[:4] in _BINARY:
            return None
        if len(content) > MAX_SCRIPT_BYTES or depth >= MAX_SCRIPTS:
            return Doubt(file.path, "was changed in this session, and is too large to be judged")
        text = content.decode("utf-8", "replace")
        named = [posixpath.basename(word) for word in by if not word.startswith("-")]
        runner = file.runner or next((name for name in named if name != "env"), "sh")
        if runner in SHELLS:
            doubt = self.line(re.sub(r"\A#!.*\n", "", text), depth + 1)
            return doubt and Doubt(file.path, f"was changed in this session, and its word {doubt}")
        return self._literals(file, text)

    def _literals(self, file: StartedFile, text: str) -> Doubt | None:
        """Judge a script in another language by its texts that name a forbidden command."""
        for literal in _LITERAL.findall(text):
            if self._forbidden.are_named({_base(name) for name in re.findall(r"[\w./+-]+", literal)}):
                return Doubt(file.path, f"was changed in this session, and its text {literal[:80]!r} is forbidden")
        return None


def _interpreter(content: bytes) -> list[str]:
    """Return the words of the interpreter that a script names in its first line."""
    first, _, _ = content[:512].partition(b"\n")
    if not first.startswith(b"#!"):
        return []
    # The option by which env splits its words.
    return [word for word in first[2:].decode("utf-8", "replace").split() if word != "-S"]


def _base(name: str) -> str:
    return name.rpartition("/")[2].casefold()


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _is_program(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)


def _changed(path: Path) -> float:
    """Return when a file or a link to it was changed, its permissions included."""
    try:
        return max(path.stat().st_ctime, path.lstat().st_ctime)
    except OSError:
        return 0.0


def _is_many(program: Path) -> bool:
    """Return whether one file is many programs, which it distinguishes by their names."""
    others = [Path(found) for name in ("cat", "ls") if name != program.name and (found := shutil.which(name))]
    return any(_is_file_of(program, other) for other in others)


def _is_same(path: Path, program: Path) -> bool:
    try:
        if path.samefile(program):
            return True
        if path.stat().st_size != program.stat().st_size:
            return False
        with path.open("rb") as one, program.open("rb") as other:
            return one.read(HEAD_BYTES) == other.read(HEAD_BYTES)
    except OSError:
        return False


def _is_file_of(path: Path, program: Path) -> bool:
    return _is_file(path) and _is_same(path, program)


def _is_copy(path: Path, program: Path) -> bool:
    """Return whether a program is another one: the same file, or one with half of its pages."""
    if _is_same(path, program):
        return True
    try:
        with path.open("rb") as one, program.open("rb") as other:
            mine, theirs = one.read(MAX_SCRIPT_BYTES), other.read(MAX_SCRIPT_BYTES)
    except OSError:
        return False
    pages = [
        (at, page)
        for at in range(0, len(theirs), PAGE_BYTES)
        if (page := theirs[at : at + PAGE_BYTES]).strip(b"\0")
    ]
    same = sum(mine[at : at + PAGE_BYTES] == page for at, page in pages)
    return 2 * same >= len(pages) > 0


_BINARY: Final = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
_LITERAL: Final = re.compile(r"'[^'\n]*+'|\"[^\"\n]*+\"|`[^`\n]*+`")
_WRITES_NAMED: Final = frozenset({"cp", "install", "tee"})
_WRITES_NOTHING: Final = frozenset({
    *STARTS_NOTHING, "export", "printf", "set", "test",
}) - {"cp", "curl", "ln", "mktemp", "mv", "shuf", "tee", "tree", "uniq", "xxd"}  # fmt: skip
"""Programs that write no contents, and put no file anywhere."""
