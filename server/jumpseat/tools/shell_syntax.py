"""What a bash command line would do, as far as that is certain: its commands, paths, URLs and redirections.

The result decides what a permission request shows and what an approval may be remembered for, so every doubt
counts against the line: what is not fully understood has its own whole text as the identifier, which no
remembered approval of another command matches. Nothing is expanded or run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """``identifier`` is what an approval remembers: ``ls``, ``git status``, or a whole text where in doubt."""

    identifier: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class ShellSegment:
    """One simple command of a line, with its text."""

    text: str
    command: ParsedCommand


@dataclass(frozen=True, slots=True)
class ShellLine:
    """A parsed line: its simple commands in order, and what they may touch."""

    segments: tuple[ShellSegment, ...]
    possible_paths: tuple[str, ...]
    possible_urls: tuple[str, ...]
    has_write_file_redirection: bool
    can_offer_session_approval: bool

    @property
    def commands(self) -> tuple[ParsedCommand, ...]:
        """What the segments run, each once; never empty."""
        return tuple(dict.fromkeys(segment.command for segment in self.segments))


def parse_shell(command: str) -> ShellLine:
    """Take ``command`` apart without running or expanding anything. Never fails."""
    scanner = _Scanner(command)
    if len(command) <= LONGEST_LINE:
        scanner.run()
    else:
        scanner.give_up()
    segments = [segment for segment in scanner.segments if segment.words or segment.targets]
    whole = command.strip()
    if scanner.certain and segments:
        parsed = tuple(ShellSegment(segment.text, _judge(segment)) for segment in segments)
    else:
        parsed = (ShellSegment(whole, ParsedCommand(whole, read_only=False)),)
    return ShellLine(
        segments=parsed,
        possible_paths=tuple(dict.fromkeys(path for segment in segments for path in _paths(segment))),
        possible_urls=tuple(dict.fromkeys(url.rstrip(".,;:!?)") for url in _URL.findall(command))),
        has_write_file_redirection=scanner.may_write or any(segment.writes for segment in segments),
        can_offer_session_approval=scanner.certain and len(segments) == 1 and not segments[0].writes,
    )


LONGEST_LINE: Final = 64 * 1024
"""Longer ones are scripts: no person judges them by their parts."""

_READ_ONLY: Final[dict[str, tuple[str, ...]]] = {
    # Commands that only read, each with the options that make it write or run something.
    "basename": (), "cat": (), "cd": (), "cmp": (), "comm": (), "cut": (), "diff": (), "dirname": (), "du": (),
    "df": (), "echo": (), "false": (), "fold": (), "grep": (), "egrep": (), "fgrep": (), "head": (), "id": (),
    "jq": (), "ls": (), "md5sum": (), "nl": (), "od": (), "paste": (), "printenv": (), "printf": ("-v",), "ps": (),
    "pwd": (), "readlink": (), "realpath": (), "rev": (), "sha1sum": (), "sha256sum": (), "sleep": (),
    "stat": (), "tac": (), "tail": (), "tr": (), "true": (), "type": (), "uname": (), "wc": (), "which": (),
    "whoami": (),
    "find": ("-exec", "-ok", "-delete", "-fprint", "-fls"),
    "rg": ("--pre", "--hostname-bin", "-z", "--search-zip"),
    "sort": ("-o", "--output", "--compress-program", "-T", "--temporary-directory"),
    "tree": ("-o",),
    "git status": (), "git rev-parse": (), "git ls-files": (), "git ls-tree": (), "git describe": (),
    "git log": ("--output", "--ext-diff", "--textconv"),
    "git diff": ("--output", "--ext-diff", "--textconv"),
    "git show": ("--output", "--ext-diff", "--textconv"),
    "git blame": ("--textconv",), "git shortlog": ("--output",),
}  # fmt: skip

_WITH_SUBCOMMAND: Final = frozenset({
    # What is done depends on the next word, which belongs to the identifier.
    "apt", "apt-get", "brew", "bun", "bundle", "cargo", "composer", "deno", "docker", "docker compose", "dotnet",
    "gem", "gh", "gh issue", "gh pr", "gh release", "gh repo", "gh run", "gh workflow", "git", "go", "gradle",
    "helm", "just", "kubectl", "make", "mvn", "npm", "npm run", "pip", "pip3", "pnpm", "pnpm run", "poetry",
    "rustup", "systemctl", "terraform", "uv", "yarn", "yarn run", "bun run", "deno task",
})  # fmt: skip

_RUNS_OTHERS: Final = frozenset({
    # An approval of one of these would cover whatever it is told to run, or change what other commands mean.
    ".", "alias", "bash", "bind", "builtin", "bun x", "bundle exec", "busybox", "chroot", "command", "complete",
    "dash", "declare", "deno eval", "deno run", "doas", "docker compose exec", "docker compose run", "docker exec",
    "docker run", "enable", "env", "eval", "exec", "export", "fish", "flock", "go run", "hash", "ionice",
    "kubectl exec", "ksh", "let", "local", "mapfile", "nice", "nohup", "npm exec", "npx", "nsenter", "parallel",
    "pkexec", "pnpm dlx", "pnpm exec", "poetry run", "read", "readarray", "readonly", "set", "setsid", "sh",
    "shopt", "source", "ssh", "stdbuf", "strace", "su", "sudo", "test", "time", "timeout", "trap", "typeset",
    "unset", "unshare", "uv run", "uv tool", "uvx", "watch", "xargs", "yarn dlx", "yarn exec", "zsh",
})  # fmt: skip

_INTERPRETERS: Final = re.compile(r"(?:awk|gawk|mawk|node|perl|php|pwsh|python[\d.]*|ruby|sed|lua|osascript)\Z")

_KEYWORDS: Final = frozenset({
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "until", "while", "{", "}",
})  # fmt: skip

_TAKES_PATHS: Final = frozenset({
    "cat", "cd", "chmod", "chown", "cmp", "cp", "diff", "du", "file", "head", "less", "ln", "ls", "mkdir", "more",
    "mv", "nl", "readlink", "realpath", "rm", "rmdir", "shred", "source", "stat", "tac", "tail", "tee", "touch",
    "tree", "truncate", "wc",
})  # fmt: skip

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./+:@-]+\Z")
_RUN: Final = re.compile(r"[^\s;&|<>()\\'\"`$*?\[{~]+")
_QUOTED_RUN: Final = re.compile(r"[^\"\\`$]+")
_SUBCOMMAND: Final = re.compile(r"[a-z0-9][\w:.-]*\Z")
_REDIRECTION: Final = re.compile(r"&>>|&>|<<<|<<-?|<>|<&|>&|>>|>\||[<>]")
_VARIABLE: Final = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\}|[?#$!0-9@*_-])")
_URL: Final = re.compile(r"(?:https?|ftp|ftps|ssh|git|ws|wss)://[^\s'\"`<>|;&\\]+")
_FILE_NAME: Final = re.compile(r"[\w@%+-][\w@%+.-]*\.[A-Za-z][A-Za-z0-9]{0,9}\Z")


@dataclass(slots=True)
class _Word:
    """``text`` has its quotes removed; ``fixed`` says that the shell will use exactly that text."""

    text: str = ""
    fixed: bool = True
    quoted: bool = False


@dataclass(slots=True)
class _Segment:
    text: str = ""
    words: list[_Word] = field(default_factory=list["_Word"])
    targets: list[_Word] = field(default_factory=list["_Word"])
    writes: bool = False


def _judge(segment: _Segment) -> ParsedCommand:
    unclear = ParsedCommand(segment.text, read_only=False)
    if not segment.words or segment.writes:
        return unclear
    name, *arguments = segment.words
    program = name.text.rpartition("/")[2]
    # An assignment (PATH=, LD_PRELOAD=) is not plain, so it makes another command of what follows.
    if not name.fixed or not _PLAIN.match(name.text) or program in _RUNS_OTHERS or _INTERPRETERS.match(program):
        return unclear
    identifier = name.text
    while identifier in _WITH_SUBCOMMAND:
        # An option here (git -c ...) may change everything that follows.
        if not arguments or not arguments[0].fixed or not _SUBCOMMAND.match(arguments[0].text):
            return unclear
        identifier = f"{identifier} {arguments.pop(0).text}"
        if identifier in _RUNS_OTHERS:
            return unclear
    acting_options = _READ_ONLY.get(identifier)
    if acting_options is None:
        return ParsedCommand(identifier, read_only=False)
    # An approval of the reading command must not cover this use of it.
    if acting_options and any(not word.fixed or _may_be(word.text, acting_options) for word in arguments):
        return unclear
    return ParsedCommand(identifier, read_only=True)


def _may_be(word: str, options: tuple[str, ...]) -> bool:
    """Whether ``word`` may be one of ``options``: abbreviated, with a value, or among joined short options."""
    for option in options:
        if option.startswith("--"):
            given = word.partition("=")[0]
            if len(given) > 2 and (option.startswith(given) or given.startswith(option)):
                return True
        elif word.startswith(option) or (len(option) == 2 and re.match(r"-[^-]", word) and option[1] in word):
            return True
    return False


def _paths(segment: _Segment) -> list[str]:
    """What may be a path among the words: rather too much than too little."""
    found = [target.text for target in segment.targets]
    if not segment.words:
        return found
    takes_paths = segment.words[0].text in _TAKES_PATHS
    for index, word in enumerate(segment.words):
        text = word.text
        if text.startswith("-") and "=" in text:
            text = text.partition("=")[2]
        if not text or text.startswith("-") or _URL.match(text):
            continue
        looks = "/" in text or text.startswith(("~", "..")) or text == "."
        if index == 0:
            looks = "/" in text
        elif not looks:
            looks = takes_paths or (_FILE_NAME.match(text) is not None)
        if looks:
            found.append(text)
    return found


class _Scanner:
    """One pass over the line. ``certain`` turns false at the first thing that is not plain words and operators."""

    def __init__(self, line: str) -> None:
        self.segments: list[_Segment] = []
        self.certain = True
        self.may_write = False
        self._line = line
        self._at = 0
        self._begin()

    def run(self) -> None:
        line = self._line
        if "\0" in line:
            self.certain = False
        while self._at < len(line):
            char = line[self._at]
            if char in " \t":
                self._at += 1
            elif line.startswith("\\\n", self._at):
                self._at += 2
            elif char == "#":
                self._comment()
            elif char in ";&|\n":
                self._operator()
            elif char in "<>":
                self._redirection("")
            elif char in "()":
                # Sub-shells, functions, arithmetic.
                self.certain = False
                self._end(1)
            else:
                self._word()
        self._end(0)

    def give_up(self) -> None:
        """Nothing from here on can be told apart."""
        self._doubt()
        self._at = len(self._line)

    def _doubt(self) -> None:
        """Something that may hide more commands: any ``>`` may write."""
        self.certain = False
        self.may_write = self.may_write or ">" in self._line

    def _begin(self) -> None:
        self._segment = _Segment()
        self._segment_start = self._at

    def _end(self, operator_length: int) -> None:
        self._segment.text = self._line[self._segment_start : self._at].strip()
        self.segments.append(self._segment)
        self._at += operator_length
        self._begin()

    def _comment(self) -> None:
        end = self._line.find("\n", self._at)
        end = len(self._line) if end < 0 else end
        if self._segment.words or self._segment.targets:
            self._end(0)
        self._at = end
        self._begin()

    def _operator(self) -> None:
        line = self._line
        if line.startswith("&>", self._at):
            self._redirection("")
            return
        pair = line[self._at : self._at + 2]
        if pair in (";;", ";&"):
            self.certain = False
        self._end(2 if pair in ("&&", "||", "|&", ";;") else 1)

    def _redirection(self, prefix: str) -> None:
        """``prefix`` is the number or name before the operator; it is part of no word."""
        match = _REDIRECTION.match(self._line, self._at)
        assert match is not None
        operator = match[0]
        self._at = match.end()
        if prefix.startswith("{") or (operator.startswith("<<") and operator != "<<<"):
            # The body of a here-document is not scanned as such.
            self.certain = False
        if self._line.startswith("(", self._at):
            # Process substitution.
            self._doubt()
            return
        while self._at < len(self._line) and self._line[self._at] in " \t":
            self._at += 1
        target = self._read_word()
        if target is None:
            self._doubt()
            return
        if operator == "<<<":
            return
        if operator in (">&", "<&") and re.match(r"(?:\d+-?|-)\Z", target.text):
            return
        if target.fixed and target.text == "/dev/null":
            return
        self._segment.targets.append(target)
        # Some files in /dev are network connections.
        if ">" in operator or target.text.startswith("/dev/"):
            self._segment.writes = True

    def _word(self) -> None:
        start = self._at
        word = self._read_word()
        if word is None:
            # Nothing that begins a word: do not stand still.
            self.certain = False
            self._at += 1
            return
        raw = self._line[start : self._at]
        if self._at < len(self._line) and self._line[self._at] in "<>" and re.match(r"(?:\d+|\{\w+\})\Z", raw):
            self._redirection(raw)
            return
        if not self._segment.words and not word.quoted and word.text in _KEYWORDS:
            self.certain = False
        self._segment.words.append(word)

    def _read_word(self) -> _Word | None:
        """The word at the current place, or ``None`` where none begins."""
        line = self._line
        word = _Word()
        start = self._at
        while self._at < len(line):
            char = line[self._at]
            if char in " \t\n;&|<>()":
                break
            if char == "\\":
                if line.startswith("\\\n", self._at):
                    self._at += 2
                    continue
                word.text += line[self._at + 1 : self._at + 2]
                word.quoted = True
                self.certain = self.certain and self._at + 1 < len(line)
                self._at += 2
            elif char == "'":
                self._single(word)
            elif char == '"':
                self._double(word)
            elif char == "`":
                self._substitution(word)
            elif char == "$":
                self._dollar(word, in_quotes=False)
            elif run := _RUN.match(line, self._at):
                word.text += run[0]
                self._at = run.end()
            else:
                if char in "*?[{" or (char == "~" and self._at == start):
                    word.fixed = False
                word.text += char
                self._at += 1
        return word if self._at > start else None

    def _single(self, word: _Word) -> None:
        end = self._line.find("'", self._at + 1)
        if end < 0:
            self.give_up()
            return
        word.text += self._line[self._at + 1 : end]
        word.quoted = True
        self._at = end + 1

    def _double(self, word: _Word) -> None:
        line = self._line
        word.quoted = True
        self._at += 1
        while self._at < len(line):
            char = line[self._at]
            if char == '"':
                self._at += 1
                return
            if char == "\\" and line[self._at + 1 : self._at + 2] in ("$", "`", '"', "\\", "\n"):
                word.text += line[self._at + 1].replace("\n", "")
                self._at += 2
            elif char == "`":
                self._substitution(word)
            elif char == "$":
                self._dollar(word, in_quotes=True)
            elif run := _QUOTED_RUN.match(line, self._at):
                word.text += run[0]
                self._at = run.end()
            else:
                word.text += char
                self._at += 1
        self.give_up()

    def _dollar(self, word: _Word, *, in_quotes: bool) -> None:
        rest = self._line[self._at + 1 : self._at + 2]
        variable = _VARIABLE.match(self._line, self._at)
        if variable is not None:
            word.fixed = False
            word.text += variable[0]
            self._at = variable.end()
        elif rest in ("(", "{", "[") or (not in_quotes and rest in ("'", '"')):
            # Command substitution, arithmetic, and expansions that can run commands or hide text.
            self._substitution(word)
        else:
            word.text += "$"
            self._at += 1

    def _substitution(self, word: _Word) -> None:
        """Something that runs commands or cannot be read plainly; the scan goes on inside it for paths only."""
        self._doubt()
        word.fixed = False
        word.text += self._line[self._at]
        self._at += 1
