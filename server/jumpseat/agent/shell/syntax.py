"""Parse a bash command line into its commands, paths, URLs and redirections, as far as these are certain.

Reads the syntax tree of tree-sitter's bash grammar. Permission requests and approvals depend on the result, so any
doubt counts against the line: a line that is not fully understood is one command, identified by its whole text. The
commands found in such a line are returned as well, for deny and ask rules. Nothing is expanded or run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from jumpseat.agent.shell.commands import ParsedCommand, identify, is_filter, reads_code, verbatim_command
from jumpseat.agent.shell.effects import (
    URL,
    CommandWords,
    FoundCommand,
    Placement,
    Reach,
    displayed_paths,
    is_opaque,
    names_in,
    possible_commands,
)
from jumpseat.agent.shell.grammar import leaves, parse_source
from jumpseat.agent.shell.harmless import ANY_FOLDER
from jumpseat.agent.shell.likeness import NOTHING, Likeness
from jumpseat.agent.shell.lines import OWN_JOB, changes_later_commands, line_likenesses, program_path
from jumpseat.agent.shell.plain_lines import plain_line
from jumpseat.agent.shell.programs import CHANGES_FOLDER
from jumpseat.agent.shell.words import PLAIN_SETTING, Word

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_LINE_CHARS: Final = 4096
"""Longer lines are scripts, and not parsed completely."""

MAX_KEPT_CHARS: Final = 64 * 1024
"""Longer lines are not kept with their results, because of their size."""

MAX_INNER_LINES: Final = 32
"""Limit of the words of one line that are read as lines of their own; with more, the line is opaque."""

MAX_DEPTH: Final = 64
"""Levels of the syntax tree; lines that are nested deeper are not certain."""


class ShellSegment(Struct, frozen=True):
    """A simple command of a line, and its text.

    ``program`` is the path of its program, if it has one, ``real_program`` the same with links resolved, and
    ``folder`` the folder in which the line is judged; the parser knows neither of the last two. A command that
    ``filters`` passes on parts of its input and does nothing else. ``likeness`` is what it has in common with
    others, if it is confined.
    """

    text: str
    command: ParsedCommand
    program: str = ""
    real_program: str = ""
    folder: str = ""
    filters: bool = False
    likeness: Likeness = NOTHING

    @property
    def anchor(self) -> str:
        """The program and the folder that an approval of the command is bound to, as far as these matter."""
        return self.real_program if self.command.clear else f"{self.folder}\n{self.real_program}"


class ShellLine(Struct, frozen=True):
    """A parsed command line: its simple commands in order, and what they may touch.

    For display: ``possible_paths`` and ``possible_urls``, the words that look like paths and URLs.

    For rules: ``possible_commands`` are the words of every command that the line may run, including commands in the
    arguments of others, and commands of a line that is not ``certain``. ``names`` are those in the arguments of
    commands that are not known, which may run them. ``words`` may be opened as files, ``globs`` are patterns of
    files, ``folders`` are the targets of ``cd``, ``addresses`` are URLs that may be loaded, ``placements`` are
    commands that may change files in the folders that they name. ``redirects``: a redirection opens a file.

    ``certain`` means that the line was parsed without doubt. ``reach_known`` means that it opens and loads nothing
    else: nothing comes from an expansion, a list, or a link that the line itself creates. ``opaque`` means that it
    may run commands that are not in ``possible_commands``: the line is in doubt, a name is expanded, or a shell
    runs.
    """

    segments: tuple[ShellSegment, ...]
    possible_paths: tuple[str, ...]
    possible_urls: tuple[str, ...]
    has_write_file_redirection: bool
    can_offer_session_approval: bool
    possible_commands: tuple[CommandWords, ...] = ()
    names: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    placements: tuple[Placement, ...] = ()
    redirects: bool = False
    certain: bool = False
    reach_known: bool = False
    opaque: bool = True

    @property
    def commands(self) -> tuple[ParsedCommand, ...]:
        """The distinct commands of the segments; never empty."""
        return tuple(dict.fromkeys(segment.command for segment in self.segments))


def parse_shell(text: str) -> ShellLine:
    """Parse a command line without expanding or running anything. Never raises; takes bounded time."""
    # Each call is judged more than once: for its request, for rules that forbid, and for approvals.
    return _parse_again(text) if len(text) > MAX_KEPT_CHARS else _parse_once(text)


def _parse_again(text: str) -> ShellLine:
    text = plain_line(text)
    reader = LineReader(text)
    reader.run()
    found, whole = reader.found, text.strip(_SPACES)
    if reader.certain and found:
        identified = _identify(found, whole, piped=reader.piped)
        likenesses = line_likenesses(found, whole)
        segments = tuple(
            ShellSegment(command.text, parsed, program_path(command), filters=filters, likeness=likeness)
            for command, parsed, filters, likeness in zip(
                found, identified, _filtering(found, whole), likenesses, strict=True
            )
        )
    else:
        segments = (ShellSegment(whole, verbatim_command(whole)),)
    reach = Reach(found, any_order=reader.any_order)
    inner = _InnerLines()
    may_run = dict.fromkeys(words for command in found for words in possible_commands(command, inner))
    return ShellLine(
        segments=segments,
        possible_paths=tuple(dict.fromkeys(path for command in found for path in displayed_paths(command))),
        possible_urls=tuple(dict.fromkeys(url.rstrip(".,;:!?)") for url in URL.findall(text))),
        has_write_file_redirection=any(command.writes for command in found) or (not reader.certain and ">" in text),
        can_offer_session_approval=reader.certain and bool(found) and not any(command.writes for command in found),
        possible_commands=tuple(may_run),
        names=frozenset(name for command in found for name in names_in(command)),
        words=tuple(dict.fromkeys(reach.words)),
        globs=tuple(dict.fromkeys(reach.globs)),
        folders=tuple(reach.folders),
        addresses=tuple(dict.fromkeys([*URL.findall(text), *reach.addresses])),
        placements=tuple(reach.placements),
        redirects=any(command.targets for command in found),
        certain=reader.certain and bool(found),
        reach_known=reach.complete,
        opaque=not (reader.certain and found)
        or inner.exceeded
        or any(map(is_opaque, found))
        or any((reader.any_order or command.targets) and reads_code(command.texts) for command in found),
    )


_parse_once: Final = lru_cache(maxsize=64)(_parse_again)


class _InnerLines:
    """Finds commands in words that may be lines themselves. ``exceeded``: not all of them were read."""

    def __init__(self) -> None:
        self.exceeded = False
        self._left = MAX_INNER_LINES

    def __call__(self, line: str) -> list[FoundCommand]:
        """Return the commands that can be found in a line, certain or not."""
        if self._left == 0:
            self.exceeded = True
            return []
        self._left -= 1
        reader = LineReader(line)
        reader.run()
        return reader.found


class LineReader:
    """A walk over the syntax tree. ``certain`` becomes false at the first construct not known to be plain.

    ``any_order`` means that commands may run repeatedly, or at the same time as later ones, ``piped`` that one may
    read what another one writes, ``ambiguous`` that bash may read the line differently, or has more of it.
    """

    def __init__(self, line: str) -> None:
        self.found: list[FoundCommand] = []
        self.certain = True
        self.any_order = False
        self.ambiguous = False
        self.piped = False
        self._line = line
        self._source = b""

    def run(self) -> None:
        """Parse the line and collect its commands."""
        line = self._line
        self.ambiguous = len(line) > MAX_LINE_CHARS or _AMBIGUOUS.search(line) is not None
        root = self._parse(line[:MAX_LINE_CHARS])
        if root is None:
            self.ambiguous, self.certain = True, False
            return
        self.ambiguous = self.ambiguous or root.has_error or not self._all_text_parsed(root)
        self.certain = not self.ambiguous
        self._read_statement(root, 0)

    def _parse(self, line: str) -> Node | None:
        """Return the root of the syntax tree, or ``None`` for a line that cannot be parsed within the limits."""
        if "\0" in line:
            return None
        try:
            source = self._source = line.encode()
        except UnicodeEncodeError:
            # A lone surrogate.
            return None
        return parse_source(source)

    def _all_text_parsed(self, root: Node) -> bool:
        """Return whether the text between the leaves is blank; bash may run text that the grammar skips."""
        end = 0
        for leaf in leaves(root):
            if not _BLANK.fullmatch(self._source, end, max(end, leaf.start_byte)):
                return False
            end = max(end, leaf.end_byte)
        return _BLANK.fullmatch(self._source, end) is not None

    def _read_statement(self, node: Node, depth: int) -> None:
        if depth > MAX_DEPTH:
            self.ambiguous, self.certain = True, False
            return
        match node.type:
            case "command":
                self._read_command(node, depth)
            case "redirected_statement":
                self._read_redirected(node, depth)
            case "comment":
                pass
            case "variable_assignment" if OWN_JOB.fullmatch(self._text(node)):
                pass
            case kind if kind in _STRUCTURES or (kind in _TOKENS and not node.is_named):
                self.any_order = self.any_order or kind in _ANY_ORDER
                self.piped = self.piped or kind in _PIPES
                for child in node.children:
                    self._read_statement(child, depth + 1)
            case _:
                # Assignments, functions, for loops, tests: only their commands are collected.
                self.certain = False
                for child in node.children:
                    self._read_statement(child, depth + 1)

    def _read_command(self, node: Node, depth: int) -> None:
        command = FoundCommand(self._text(node))
        self.found.append(command)
        for child in node.children:
            match child.type:
                case "command_name":
                    word = self._read_word(child, depth)
                    raw = self._text(child)
                    if raw in _KEYWORDS:
                        self.certain = False
                    command.words.append(word)
                case "variable_assignment" if not command.words and _HARMLESS_SETTING.fullmatch(self._text(child)):
                    pass
                case "variable_assignment" if not command.words and PLAIN_SETTING.fullmatch(self._text(child)):
                    command.settings.append(self._text(child))
                case "variable_assignment":
                    word = self._read_word(child, depth)
                    command.words.append(Word(word.text, fixed=False))
                case "herestring_redirect":
                    self._read_redirect(child, command, depth)
                case "file_redirect" | "heredoc_redirect":
                    self._read_redirect(child, command, depth)
                case _:
                    command.words.append(self._read_word(child, depth))

    def _read_redirected(self, node: Node, depth: int) -> None:
        first = len(self.found)
        redirects: list[Node] = []
        for child in node.children:
            if child.type.endswith("_redirect"):
                redirects.append(child)
            else:
                self._read_statement(child, depth + 1)
        inside = self.found[first:]
        if not inside:
            inside = [FoundCommand(self._text(node))]
            self.found += inside
        elif len(inside) == 1:
            inside[0].text = self._text(node)
        for redirect in redirects:
            for command in inside[:1]:
                self._read_redirect(redirect, command, depth)
        for command in inside[1:]:
            # The redirections of a group, recorded with its first command, apply to all of its commands.
            command.writes = command.writes or inside[0].writes

    def _read_redirect(self, node: Node, command: FoundCommand, depth: int) -> None:
        if node.type == "herestring_redirect":
            command.inputs += [self._read_word(part, depth).text for part in node.named_children]
            return
        operator = next((child.type for child in node.children if not child.is_named), "")
        targets = [child for child in node.named_children if child.type != "file_descriptor"]
        if node.type != "file_redirect":
            # The grammar does not show whether the body of a here-document is expanded.
            self.certain = False
            for child in node.children:
                self._read_statement(child, depth + 1)
            return
        if operator in (">&-", "<&-") and not targets:
            return
        if len(targets) != 1 or operator not in _REDIRECTIONS:
            # Further targets are words of the command, or a command of their own.
            self.certain = False
            command.writes = command.writes or ">" in operator
            command.words += [self._read_word(target, depth) for target in targets[1:]]
            if len(command.words) == len(targets) - 1 and command.words:
                command.text = self._text(node)
            targets = targets[:1]
        for target in targets:
            word = self._read_word(target, depth)
            if operator in (">&", "<&") and re.fullmatch(r"\d+-?|-", word.text):
                continue
            if word.fixed and word.text == "/dev/null":
                continue
            command.targets.append(word)
            # Some files in /dev are network connections, so that reading counts as well.
            if ">" in operator or word.text.startswith("/dev/"):
                command.writes = True

    def _read_word(self, node: Node, depth: int) -> Word:
        """Read a word and remove its quotes; commands in it are read as statements of the line."""
        if depth > MAX_DEPTH:
            self.ambiguous, self.certain = True, False
            return Word(self._text(node), fixed=False)
        if _REVISION.fullmatch(self._text(node)):
            return Word(self._text(node))
        match node.type:
            case "word" | "number" | "variable_name":
                return self._read_bare_word(self._text(node))
            case "raw_string":
                return Word(self._text(node)[1:-1])
            case "string":
                return self._read_quoted(node, depth)
            case "command_name" | "concatenation":
                parts = [self._read_word(child, depth + 1) for child in node.children]
                text = "".join(part.text for part in parts)
                braced = "{" in text and re.search(r"[,.]", text) is not None
                fixed = all(part.fixed for part in parts) and not braced
                # A quoted star is literal. If a word has quoted and unquoted stars, its pattern is unknown.
                is_pattern = all(part.glob or (part.fixed and not re.search(r"[*?]", part.text)) for part in parts)
                wild = any(part.wild for part in parts)
                single = all(part.single for part in parts) and not braced
                return Word(text, fixed, glob=not fixed and is_pattern and not braced, wild=wild, single=single)
            case "simple_expansion":
                return Word(self._text(node), fixed=False, single=False)
            case "expansion" if _VARIABLE.fullmatch(self._text(node)):
                return Word(self._text(node), fixed=False, single=False)
            case "command_substitution":
                if self._text(node).startswith("`"):
                    # The grammar reads backslashes in backquotes differently from bash.
                    self.ambiguous = self.ambiguous or "\\" in self._text(node)
                    self.certain = self.certain and not self.ambiguous
                for child in node.children:
                    self._read_statement(child, depth + 1)
                return Word(self._text(node), fixed=False, single=False)
            case _:
                # Arithmetic, expansions that run commands or hide text, and nodes that are not words.
                self.certain = False
                for child in node.children:
                    self._read_statement(child, depth + 1)
                return Word(self._text(node), fixed=False)

    def _read_bare_word(self, raw: str) -> Word:
        text = re.sub(r"\\(.)", r"\1", raw, flags=re.DOTALL)
        plain = re.sub(r"\\.", "", raw, flags=re.DOTALL)
        if raw.endswith("\\") and not re.fullmatch(r"(?:[^\\]|\\.)*", raw, flags=re.DOTALL):
            self.certain = False
        special = set(re.findall(r"[*?\[{$`]", plain)) | ({"~"} if raw.startswith("~") else set[str]())
        return Word(
            text,
            fixed=not special,
            glob=bool(special) and special <= {"*", "?"} and plain == raw,
            wild=not special.isdisjoint("*?["),
            single=special <= {"~"},
        )

    def _read_quoted(self, node: Node, depth: int) -> Word:
        text, fixed = "", True
        # Blanks between the parts of a string belong to no node.
        end = node.start_byte + 1
        for child in node.children:
            if not child.is_named and child.type == '"':
                continue
            text += self._source[end : child.start_byte].decode("utf-8", "replace")
            if child.type == "string_content":
                text += re.sub(r'\\(["$`\\\n])', lambda m: m[1].replace("\n", ""), self._text(child))
            else:
                word = self._read_word(child, depth + 1)
                text, fixed = text + word.text, fixed and word.fixed
            end = child.end_byte
        return Word(text + self._source[end : node.end_byte - 1].decode("utf-8", "replace"), fixed)

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace").strip(_SPACES)


def _identify(found: list[FoundCommand], line: str, *, piped: bool) -> Iterator[ParsedCommand]:
    """Identify the commands of a line. The identifier of one that depends on the others is the whole line."""
    names = {command.words[0].text for command in found if command.words}
    changes_folder = not names.isdisjoint(CHANGES_FOLDER)
    changes_shell = len(found) > 1 and any(map(changes_later_commands, found))
    first_of_filters = piped and _is_filtered(found, line)
    for command in found:
        text = command.text if command.writes else _JOINED_OUTPUT.sub("", command.text)
        parsed = identify(text, command.words)
        depends = (
            command.writes
            or bool(command.settings)
            or changes_shell
            # In another folder, a program finds other files, and a relative path is another program.
            or (changes_folder and (not parsed.clear or parsed.identifier not in ANY_FOLDER))
            # Its input may decide what it does.
            or (piped and not parsed.clear and not (first_of_filters and command is found[0]))
        )
        yield verbatim_command(line) if depends else parsed


def _filtering(found: Sequence[FoundCommand], line: str) -> Iterator[bool]:
    """Tell for each command of a line whether it is a filter behind a pipe."""
    end = 0
    for command in found:
        start = line.find(command.text, end)
        glue = line[end:start].strip(_SPACES)
        yield _PIPED.fullmatch(glue) is not None and _filters(command)
        end = max(end, start + len(command.text))


def _is_filtered(found: Sequence[FoundCommand], line: str) -> bool:
    """Return whether a line is one command whose output goes through filters."""
    texts = [re.escape(command.text) for command in found]
    return all(map(_filters, found[1:])) and re.fullmatch(r"[ \t]*\|&?[ \t]*".join(texts), line) is not None


def _filters(command: FoundCommand) -> bool:
    return not (command.writes or command.targets or command.inputs) and is_filter(command.words)


# It begins where no other one is in front, so that the line is read once.
_JOINED_OUTPUT: Final = re.compile(
    r"(?<![ \t])(?<!2>&1)(?<!/dev/null)(?:[ \t]++(?:2>&1|[12&]?>[ \t]?/dev/null))+\Z"
)
"""Redirections that change where the output of a command is seen, and nothing else."""
_PIPED: Final = re.compile(r"(?:2>&1[ \t]*)?\|&?")

# Nodes that only contain commands, and the tokens between these.
_STRUCTURES: Final = frozenset({
    "program", "list", "pipeline", "subshell", "compound_statement", "negated_command", "if_statement",
    "elif_clause", "else_clause", "while_statement", "do_group",
})  # fmt: skip
_TOKENS: Final = frozenset({
    "&&", "||", "|", "|&", ";", "&", "\n", "(", ")", "{", "}", "!", "if", "then", "elif", "else", "fi", "while",
    "until", "do", "done", "$(", "`",
})  # fmt: skip
_PIPES: Final = frozenset({"while_statement", "|", "|&", "pipeline"})
_ANY_ORDER: Final = _PIPES | {"&"}
_REDIRECTIONS: Final = frozenset({"<", ">", ">>", "&>", "&>>", "<&", ">&", ">|"})
_KEYWORDS: Final = frozenset({
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "until", "while", "{", "}", "((",
})  # fmt: skip
# Blanks in bash; Python's str.strip would remove more.
_SPACES: Final = " \t\n"
# The grammar and bash differ on control characters, and on a line continuation inside a word.
_AMBIGUOUS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|(?<![ \t\n])\\\n(?![ \t\n])")
_BLANK: Final = re.compile(rb"(?:[ \t\n]|\\\n)*")
_REVISION: Final = re.compile(r"[\w./-]*@\{\w+\}[~^\d]*", re.ASCII)
"""A revision of git such as ``stash@{1}``: bash expands braces only around a comma or two dots."""
_HARMLESS_SETTING: Final = re.compile(
    r"(?:CARGO_TERM_COLOR|CI|CLICOLOR|CLICOLOR_FORCE|COLUMNS|DEBUG|FORCE_COLOR|LANG|LC_ALL|NO_COLOR"
    r"|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED|RUST_BACKTRACE|RUST_LOG|VERBOSE)=[\w.,+-]*",
    re.ASCII,
)
"""A variable that changes what a command shows, and neither what it runs nor what it loads."""
_VARIABLE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
