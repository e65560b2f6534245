"""Judge whether the programs that a line starts can be known from its words.

Where a host forbids programs, a line that this module does not understand is refused, so it errs on that side: a
line is understood if each program it starts is named in plain words, and no other word can start one, by what
:mod:`jumpseat.agent.shell.starters` says of the program. What a program of the project does by itself, such as a
script, a test or a build, is not judged here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from msgspec import Struct, field

from jumpseat.agent.shell.commands import is_known
from jumpseat.agent.shell.constructs import Doubt, find_constructs
from jumpseat.agent.shell.effects import CommandWords, FoundCommand
from jumpseat.agent.shell.harmless import HARMLESS, WITH_SUBCOMMAND
from jumpseat.agent.shell.options import may_be_option
from jumpseat.agent.shell.programs import CHANGES_SHELL, INTERPRETERS, RUNS_OTHERS, SHELLS, TAKES_CODE
from jumpseat.agent.shell.started_languages import judge_awk, judge_git, judge_interpreter, judge_sed
from jumpseat.agent.shell.starters import (
    ANY_CHECK,
    NAMES_PACKAGES,
    STARTS_BY_OPTION,
    STARTS_NOTHING,
    TEXT_WORDS,
    WRAPPERS,
    Wrapper,
)
from jumpseat.agent.shell.syntax import MAX_LINE_CHARS, LineReader
from jumpseat.agent.shell.words import Word

MAX_NESTED: Final = 4
"""Limit of lines in words of lines."""

SYSTEM_FOLDERS: Final = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/")


class Forbidden(Struct, frozen=True):
    """The prohibitions of a host: ``commands`` are the words of each command."""

    commands: tuple[tuple[str, ...], ...]

    def is_one(self, words: CommandWords) -> bool:
        """Return whether a command is forbidden; options may stand between its words."""
        name = _base(words[0] or "")
        for first, *rest in self.commands:
            left = iter(words[1:])
            if name == _base(first) and all(any(word == expected for word in left) for expected in rest):
                return True
        return False

    def are_named(self, names: set[str]) -> bool:
        """Return whether all words of a forbidden command are among ``names``, which are in lower case."""
        return any({_base(word) for word in words} <= names for words in self.commands)

    def matches(self, pattern: str) -> bool:
        """Return whether a pattern of file names stands for the name of a forbidden program, too."""
        name = pattern.rpartition("/")[2].casefold()
        return any(fnmatchcase(_base(words[0]), name) for words in self.commands)


class StartedFile(Struct, frozen=True):
    """A program that a line names by ``path`` or by its name, or a file that a shell reads.

    ``words`` are those of its command. ``before`` are the commands of the line that run before it or at the same
    time, and ``targets`` the files that they are redirected to. ``runner`` is the interpreter of a script, ``sh``
    for any shell.
    """

    path: str
    words: CommandWords
    before: tuple[CommandWords, ...] = ()
    targets: tuple[str, ...] = ()
    runner: str = ""


class Started(Struct):
    """The programs that a line starts: the first ``doubt`` about them, and the files that it runs."""

    doubt: Doubt | None = None
    files: list[StartedFile] = field(default_factory=list[StartedFile])
    values: list[str] = field(default_factory=list[str])


def started_by(line: str, forbidden: Forbidden, obeyed: Callable[[str], bool]) -> Started:
    """Judge a line. ``obeyed`` returns whether a variable is in the environment of commands."""
    judge = _Judge(forbidden, obeyed)
    judge.found.doubt = judge.line(line, 0)
    return judge.found


def started_by_words(words: CommandWords, forbidden: Forbidden, obeyed: Callable[[str], bool]) -> Started:
    """Judge the words of one command."""
    judge = _Judge(forbidden, obeyed)
    judge.found.doubt = judge.command([Word(word or "$", fixed=word is not None) for word in words])
    return judge.found


def judge_input(text: str) -> Doubt | None:
    """Judge text for the input of a running program: only an answer to a question starts nothing."""
    return None if _ANSWER.fullmatch(text.strip()) else Doubt(text, "may start programs in the one that reads it")


_Context: TypeAlias = tuple[tuple[CommandWords, ...], tuple[str, ...]]


class _Judge:
    def __init__(self, forbidden: Forbidden, obeyed: Callable[[str], bool]) -> None:
        self.found = Started()
        self._forbidden = forbidden
        self._obeyed = obeyed
        self._functions: frozenset[str] = frozenset()
        self._context: _Context = ((), ())
        self._reads_input = False
        self._depth = 0
        self._apart: dict[str, Callable[[Sequence[Word]], Doubt | None]] = {
            **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), judge_awk),
            **dict.fromkeys(("sed", "gsed"), judge_sed),
            **dict.fromkeys((".", "source"), self._source),
            **dict.fromkeys(("eval", "watch"), self._code),
            "command": self._command,
            "find": self._find,
            "git": self._git,
            "printf": self._printf,
            "read": self._read,
            "set": self._set,
            "shopt": self._shopt,
            "test": self._test,
            "trap": self._trap,
        }

    def line(self, text: str, depth: int) -> Doubt | None:
        """Judge the commands of a line, or of code in a word."""
        if len(text) > MAX_LINE_CHARS or depth > MAX_NESTED or "\0" in text:
            return Doubt(text, "is too long or too deep to be judged: write it to a file, and run that")
        reader = LineReader(text)
        reader.run()
        constructs = find_constructs(text, self._obeyed)
        if constructs.doubt is not None:
            return constructs.doubt
        if reader.ambiguous or constructs.commands > len(reader.found):
            return Doubt(text, "cannot be parsed with certainty")
        for value in constructs.values:
            if self._forbidden.are_named({_base(value)}):
                return Doubt(value, "names a program that is forbidden")
        self.found.values += constructs.values
        kept = self._functions, self._context, self._reads_input, self._depth
        self._functions, self._depth = self._functions | constructs.functions, depth
        reads = reader.any_order or "<" in text
        try:
            return self._commands(
                reader.found, kept[1], reads=reads or self._reads_input, any_order=reader.any_order
            )
        finally:
            self._functions, self._context, self._reads_input, self._depth = kept

    def _commands(
        self, found: Sequence[FoundCommand], outer: _Context, *, reads: bool, any_order: bool
    ) -> Doubt | None:
        plain = [_literal(_unassigned(command.words)) for command in found]
        targets = [tuple(target.text for target in command.targets) for command in found]
        for index, command in enumerate(found):
            # The grammar attaches the redirections of a list to its first command.
            others = [n for n in range(len(found)) if any_order or n < index]
            self._context = (
                (*outer[0], *(plain[n] for n in others if n != index and plain[n])),
                (*outer[1], *(target for n in others for target in targets[n])),
            )
            self._reads_input = reads or bool(command.inputs)
            if (doubt := self.command(_unassigned(command.words))) is not None:
                return doubt
        return None

    def command(self, words: Sequence[Word]) -> Doubt | None:
        """Judge the words of one command."""
        if not words:
            return None
        if not words[0].fixed or not words[0].text:
            return Doubt(words[0].text, "names a program only when it runs")
        literal, path = _literal(words), words[0].text
        if self._forbidden.is_one(literal):
            return Doubt(" ".join(word or "$" for word in literal), "is forbidden")
        name = path.rpartition("/")[2]
        if path in self._functions:
            return None
        if "/" in path and not path.startswith(SYSTEM_FOLDERS):
            self._file(path, literal)
            return self._texts(words, relaxed=True)
        if name not in CHANGES_SHELL and name not in STARTS_NOTHING:
            self._file(path, literal)
        judge = self._apart.get(name)
        if judge is not None and (name not in _IF_NOT_KNOWN or not is_known(words)):
            return judge(words)
        if (option := _starting_option(name, words[1:])) is not None:
            return Doubt(option, "is an option that starts programs, or names what to start")
        if name in STARTS_NOTHING or (is_known(words) and name != "git"):
            return None
        if name in SHELLS:
            return self._shell(words)
        if INTERPRETERS.match(name) and not name.startswith("ld"):
            return self._interpreter(name, words)
        for wrapper, rest in ((name, words[1:]), (f"{name} {words[1].text}" if len(words) > 1 else "", words[2:])):
            if wrapper in WRAPPERS:
                return self._wrapped(WRAPPERS[wrapper], rest)
        if name in CHANGES_SHELL:
            return Doubt(" ".join(word.text for word in words), "changes what later words mean")
        runs = any(one in RUNS_OTHERS or one in TAKES_CODE for one in (name, f"{name} {(*literal, '')[1]}"))
        if runs and self._reads_input:
            return Doubt(path, "may start what it reads from its input")
        relaxed = not runs and (name in _FAMILIAR or name in TEXT_WORDS)
        # `docker rm` is not `rm`.
        subcommand = relaxed and name in WITH_SUBCOMMAND and len(words) > 1 and words[1].fixed
        words = [words[0], *words[2 if subcommand else 1 :]]
        return self._texts(words, relaxed=relaxed, packages=name in NAMES_PACKAGES or relaxed)

    def _file(self, path: str, words: CommandWords, runner: str = "") -> None:
        self.found.files.append(StartedFile(path, words, *self._context, runner))

    def _texts(self, words: Sequence[Word], *, relaxed: bool, packages: bool = False) -> Doubt | None:
        """Judge the arguments of a program of which nothing is known. With ``relaxed``, they may be texts."""
        name = _base(words[0].text)
        for index, word in enumerate(words[1:], start=1):
            text = word.text
            if not word.fixed and (not word.glob or text.startswith("-") or self._forbidden.matches(text)):
                return Doubt(text, "is expanded by the shell, and may name a program")
            spoken = re.sub(r"['\"\\]", "", text).casefold()
            # Not the names of options themselves: `--rm` is none of a program.
            named = re.sub(r"(?<![^\s=,:;|&(])--?[\w-]+", " ", spoken) if not text.startswith("-") else ""
            value = (
                spoken.partition("=")[2] if text.startswith("--") else spoken[2:] if text.startswith("-") else ""
            )
            tokens = {piece.rpartition("/")[2] for piece in re.split(r"[^\w.+/%-]+", f"{named} {value}") if piece}
            if text.startswith("-") and not text.startswith("--"):
                tokens |= {spoken[at:] for at in range(2, min(len(spoken), 12))}
            globs = [one for one in re.split(r"[^\w.*?\[\]/-]+", spoken) if re.search(r"\w[*?\[]|[*?\]]\w", one)]
            if self._forbidden.are_named(tokens | {name}) or (
                " " in text and any(map(self._forbidden.matches, globs))
            ):
                return Doubt(text, "names a program that is forbidden")
            if not _PLAIN_WORD.fullmatch(text):
                if not relaxed or re.search(r"[$`\x00-\x08]", text):
                    return Doubt(text, "may hold a command, for a program whose options are not known")
                if not _SHELL_WORDS.isdisjoint(tokens) and self.line(text, self._depth + 1) is not None:
                    return Doubt(text, "may hold a command")
            # A dot is a folder here: only shells source a file.
            elif (
                not packages
                and text != "."
                and _starts(_base(text))
                and (doubt := self.command(words[index:])) is not None
            ):
                return doubt
            if not packages and "/" in text:
                self._named(text)
        return None

    def _named(self, text: str) -> None:
        self.found.values.append(text.partition("=")[2] if text.startswith("-") else text)

    def _wrapped(self, kind: Wrapper, rest: Sequence[Word]) -> Doubt | None:
        """Judge the program behind the options of a wrapper."""
        left, operands, replaced = list(rest), kind.operands, ""
        while left:
            word = left[0]
            if word.text == "--":
                left.pop(0)
                break
            assigns = kind.assigns and re.match(r"[A-Za-z_]\w*=", word.text)
            if not word.text.startswith("-") and not assigns:
                break
            if not word.fixed:
                return Doubt(word.text, "is expanded by the shell, and may be an option")
            left.pop(0)
            if assigns:
                if (doubt := find_constructs(f"export {_quoted(word.text)}", self._obeyed).doubt) is not None:
                    return doubt
                continue
            takes = _takes_value(kind, word.text)
            if takes is None:
                return Doubt(word.text, "is an option that is not judged")
            if takes and (not left or not left[0].fixed):
                return Doubt(word.text, "has a value that is not judged")
            value = left.pop(0).text if takes else ""
            if kind.adds and word.text[1:2] in ("I", "-") and "r" not in word.text[1:2]:
                replaced = value or word.text[2:] if word.text[1] == "I" else replaced
                replaced = (value or word.text.partition("=")[2]) if word.text.startswith("--replace") else replaced
        if operands and left:
            if not all(word.fixed for word in left[:operands]):
                return Doubt(left[0].text, "is expanded by the shell, and may be an option")
            left = left[operands:]
        if not kind.adds:
            return self.command(left)
        return self._with_input(left, replaced)

    def _with_input(self, words: list[Word], replaced: str) -> Doubt | None:
        """Judge a command with further words that come from the input of xargs."""
        if not words:
            return None
        name = _base(words[0].text)
        more = Word("$", fixed=False)
        if replaced:
            words = [more if replaced in word.text else word for word in words]
        elif name in ANY_CHECK and words[0].fixed and "/" not in words[0].text and is_known(words):
            return None
        else:
            words = [*words, more]
        self._reads_input = True
        return self.command(words)

    def _shell(self, words: Sequence[Word]) -> Doubt | None:
        at, code = 1, False
        while at < len(words) and words[at].text[:1] in ("-", "+"):
            option = words[at]
            if not option.fixed or not _SHELL_OPTION.fullmatch(option.text):
                return Doubt(option.text, "is an option of a shell that is not judged")
            code = code or (not option.text.startswith("--") and "c" in option.text)
            if option.text[-1] == "o" and not option.text.startswith("--"):
                at += 1
                if at < len(words) and words[at].text not in _SHELL_SETTINGS:
                    return Doubt(words[at].text, "is an option of a shell that is not judged")
            at += 1
        if at >= len(words):
            shows = any(word.text in ("--version", "--help") for word in words)
            return None if shows else Doubt(words[0].text, "runs what it reads from its input")
        if not words[at].fixed:
            return Doubt(words[at].text, "is expanded by the shell, and holds what another one runs")
        if code:
            return self.line(words[at].text, self._depth + 1)
        return self._script(words, at)

    def _script(self, words: Sequence[Word], at: int) -> Doubt | None:
        path = words[at].text
        if path.startswith(("/dev/", "/proc/")):
            return Doubt(path, "names the file to run only when it runs")
        self._file(path if "/" in path else f"./{path}", _literal(words[at:]), "sh")
        return self._texts(words[at:], relaxed=True)

    def _source(self, words: Sequence[Word]) -> Doubt | None:
        if len(words) < 2 or not words[1].fixed:
            return Doubt(" ".join(word.text for word in words), "names the file to run only when it runs")
        return self._script(words, 1)

    def _interpreter(self, name: str, words: Sequence[Word]) -> Doubt | None:
        doubt, at = judge_interpreter(name, words)
        if doubt is not None:
            return doubt
        if at and (file := words[at].text) and not file.startswith("-"):
            self._file(file if "/" in file else f"./{file}", _literal(words[at:]), name)
        return self._texts(words[at:] if at else words, relaxed=True, packages=True)

    def _code(self, words: Sequence[Word]) -> Doubt | None:
        """Judge words that are a line together: ``eval``, ``watch``."""
        operands = list(words[1:])
        while operands and re.fullmatch(r"-[nd]?|-n\d+|-d|--", operands[0].text):
            takes = operands.pop(0).text == "-n"
            operands = operands[1:] if takes else operands
        if not all(word.fixed for word in operands):
            return Doubt(" ".join(word.text for word in words), "is expanded by the shell before it runs")
        return self.line(" ".join(word.text for word in operands), self._depth + 1)

    def _trap(self, words: Sequence[Word]) -> Doubt | None:
        if len(words) < 2 or words[1].text in ("-", "-p", "-l"):
            return None
        return self._code(words[:2])

    def _set(self, words: Sequence[Word]) -> Doubt | None:
        for word in words[1:]:
            if word.text == "--":
                return None
            if not word.fixed or not (re.fullmatch(r"[-+][eEuxfvCmo]+", word.text) or word.text in _SHELL_SETTINGS):
                return Doubt(word.text, "changes the shell, or words that may name programs")
        return None

    def _read(self, words: Sequence[Word]) -> Doubt | None:
        for word in words[1:]:
            if not word.fixed or not re.fullmatch(r"-\w+|[a-z_]\w*|[\d.]*|[ ,:|;-]", word.text):
                return Doubt(word.text, "may set what decides about later words")
        return None

    def _find(self, words: Sequence[Word]) -> Doubt | None:
        left = list(words[1:])
        while left:
            word = left.pop(0)
            if not word.fixed and not word.glob:
                return Doubt(word.text, "is expanded by the shell, and may start a program")
            if word.text not in ("-exec", "-execdir", "-ok", "-okdir"):
                continue
            end = next((n for n, one in enumerate(left) if one.text in (";", "+", r"\;")), len(left))
            inner = left[:end]
            if any("{}" in one.text and one.text != "{}" for one in inner) or (inner and inner[0].text == "{}"):
                return Doubt(" ".join(one.text for one in inner), "names programs by the files that are found")
            if (doubt := self.command([Word("./x") if one.text == "{}" else one for one in inner])) is not None:
                return doubt
            left = left[end + 1 :]
        return None

    def _printf(self, words: Sequence[Word]) -> Doubt | None:
        sets = any(
            not word.text or word.text.startswith("-v") or not (word.fixed or word.single) for word in words[1:2]
        )
        return (
            Doubt(words[1].text, "may set a variable") if sets and words[1].text.startswith(("-v", "$")) else None
        )

    def _test(self, words: Sequence[Word]) -> Doubt | None:
        sets = any(word.text in ("-v", "-R") or not (word.fixed or word.single) for word in words[1:])
        return Doubt(" ".join(word.text for word in words), "evaluates a name") if sets else None

    def _shopt(self, words: Sequence[Word]) -> Doubt | None:
        known = all(word.fixed and word.text in ("-s", "-u", "globstar", "nullglob", "extglob", "dotglob")
                    for word in words[1:])  # fmt: skip
        return None if known else Doubt(" ".join(word.text for word in words), "changes what later words mean")

    def _command(self, words: Sequence[Word]) -> Doubt | None:
        if len(words) > 1 and words[1].text in ("-v", "-V"):
            return None
        return self._wrapped(WRAPPERS["command"], words[1:])

    def _git(self, words: Sequence[Word]) -> Doubt | None:
        if is_known(words) and not any(re.match(r"\w+::", word.text) for word in words):
            return None
        return judge_git(words)


_IF_NOT_KNOWN: Final = frozenset({"find", "sed"})
_FAMILIAR: Final = frozenset(row.split()[0] for row in HARMLESS) - {"sort", "rg", "fd", "go", "tail"}
"""Programs with harmless options that are known, and without others that start a program that they name."""
_SHELL_WORDS: Final = frozenset({
    *SHELLS, "awk", "eval", "env", "exec", "node", "nohup", "parallel", "perl", "php", "python", "python3", "ruby",
    "sudo", "xargs",
})  # fmt: skip
_PLAIN_WORD: Final = re.compile(r"[\w./:=@,+%~^#*?!-]*")
_SHELL_OPTION: Final = re.compile(r"-[celuvxnfo]+|\+[euvxf]|--(?:login|norc|noprofile|posix|version|help)")
_SHELL_SETTINGS: Final = frozenset({"errexit", "nounset", "pipefail", "xtrace", "noglob", "verbose", "noclobber"})
_ANSWER: Final = re.compile(r"(?:[yYnNqQaA]|yes|no|Yes|No|YES|NO|quit|exit|\d{1,6})?")


def _takes_value(kind: Wrapper, option: str) -> bool | None:
    """Return whether the value of an option is the next word; ``None`` if the option is not listed."""
    name, equals, _ = option.partition("=")
    if name in kind.long or f"{name}=" in kind.long:
        return f"{name}=" in kind.long and not equals
    if option.startswith("--"):
        return None
    for at, letter in enumerate(option[1:], start=1):
        if letter in kind.valued:
            return at == len(option) - 1
        if letter not in kind.flags and not (option[1:].isdigit() and "n" in kind.valued):
            return None
    return False


def _starts(name: str) -> bool:
    return name in SHELLS or name in WRAPPERS or INTERPRETERS.match(name) is not None


def _starting_option(name: str, words: Sequence[Word]) -> str | None:
    """Return the option by which a program starts others; ``None`` if there is none."""
    options = STARTS_BY_OPTION.get(name)
    if options is None:
        return None
    texts = [word.text for word in words]
    if name != "tar":
        # They do not join options.
        return next((text for text in texts if text.startswith(options)), None)
    if texts and not texts[0].startswith("-"):
        # The old syntax: options without a dash.
        texts[0] = f"-{texts[0]}"
    return next((text for text in texts if text.startswith("-") and may_be_option(text, options)), None)


def _unassigned(words: Sequence[Word]) -> list[Word]:
    at = 0
    while at < len(words) and not words[at].fixed and re.match(r"[A-Za-z_]\w*\+?=", words[at].text):
        at += 1
    return list(words[at:])


def _literal(words: Sequence[Word]) -> CommandWords:
    return tuple(word.text if word.fixed else None for word in words)


def _base(program: str) -> str:
    return program.rpartition("/")[2].casefold()


def _quoted(text: str) -> str:
    name, _, value = text.partition("=")
    return f"{name}='{value}'" if "'" not in value else f"{name}=$(x)"
