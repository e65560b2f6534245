"""What a bash command line would do, as far as that is certain: its commands, paths, URLs and redirections.

The grammar is tree-sitter's; here its tree is read, once, for all who ask. What a permission request shows and what
an approval may cover depends on it, so every doubt counts against the line: what is not fully understood is one
command with its own whole text as the identifier. The commands that a doubtful line holds are told all the same,
for rules that forbid. Nothing is expanded or run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from jumpseat.agent.shell.commands import ParsedCommand, Word, judge, unclear
from jumpseat.agent.shell.programs import MOVES
from jumpseat.agent.shell.reach import URL, FoundCommand, Mention, Reach, is_opaque, mentions, shown_paths

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser

LONGEST_LINE: Final = 4096
"""Characters. Longer ones are scripts: no person judges them by their parts, and rules need not try."""

MOST_STEPS: Final = 250
"""Of the parser, which reports after every hundred or so; honest lines of that length take 200."""

DEEPEST: Final = 64
"""Levels of the tree; the same holds for what is nested deeper."""


@dataclass(frozen=True, slots=True)
class ShellSegment:
    """One simple command of a line, with its text."""

    text: str
    command: ParsedCommand


@dataclass(frozen=True, slots=True)
class ShellLine:
    """A parsed line: its simple commands in order, and what they may touch.

    ``possible_paths`` and ``possible_urls`` are for people: what looks like one. The rest is for rules.
    ``mentioned`` are the words of every command that can be found, in doubtful lines and in the arguments of
    commands that run others too. ``words`` are those that may be opened as files, ``globs`` patterns of such,
    ``folders`` where the line goes (``cd``), ``addresses`` what may be loaded.

    ``certain`` says that the line was taken apart without doubt,
    ``all_known`` that it opens and loads nothing else: nothing comes from an expansion, a list or a link that the
    line itself makes. ``opaque``: it may run what is not mentioned: what is doubtful, names that come from an
    expansion, and shells.
    """

    segments: tuple[ShellSegment, ...]
    possible_paths: tuple[str, ...]
    possible_urls: tuple[str, ...]
    has_write_file_redirection: bool
    can_offer_session_approval: bool
    mentioned: tuple[Mention, ...] = ()
    words: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    certain: bool = False
    all_known: bool = False
    opaque: bool = True

    @property
    def commands(self) -> tuple[ParsedCommand, ...]:
        """What the segments run, each once; never empty."""
        return tuple(dict.fromkeys(segment.command for segment in self.segments))


def parse_shell(command: str) -> ShellLine:
    """Take ``command`` apart without running or expanding anything. Never fails, and takes bounded time."""
    reader = _Reader(command)
    reader.run()
    found, whole = reader.found, command.strip(_SPACES)
    moved = any(one.words and one.words[0].text in MOVES for one in found)
    if reader.certain and found:
        segments = tuple(ShellSegment(one.text, _judged(one, whole, moved=moved)) for one in found)
    else:
        segments = (ShellSegment(whole, unclear(whole)),)
    reach = Reach(found, any_order=reader.any_order)
    return ShellLine(
        segments=segments,
        possible_paths=tuple(dict.fromkeys(path for one in found for path in shown_paths(one))),
        possible_urls=tuple(dict.fromkeys(url.rstrip(".,;:!?)") for url in URL.findall(command))),
        has_write_file_redirection=any(one.writes for one in found) or (not reader.certain and ">" in command),
        can_offer_session_approval=reader.certain and len(found) == 1 and not found[0].writes,
        mentioned=tuple(dict.fromkeys(words for one in found for words in mentions(one, _found_in))),
        words=tuple(dict.fromkeys(reach.words)),
        globs=tuple(dict.fromkeys(reach.globs)),
        folders=tuple(reach.folders),
        addresses=tuple(dict.fromkeys([*URL.findall(command), *reach.addresses])),
        certain=reader.certain and bool(found),
        all_known=reach.all_known,
        opaque=not (reader.certain and found) or any(map(is_opaque, found)),
    )


def _found_in(line: str) -> list[FoundCommand]:
    reader = _Reader(line)
    reader.run()
    return reader.found


class _Reader:
    """One walk over the tree. ``certain`` turns false at the first thing that is not known to be plain.

    ``any_order`` says that commands may run again, or at the same time as those behind them.
    """

    def __init__(self, line: str) -> None:
        self.found: list[FoundCommand] = []
        self.certain = True
        self.any_order = False
        self._line = line
        self._source = b""

    def run(self) -> None:
        line = self._line
        self.certain = len(line) <= LONGEST_LINE and not _ODD.search(line)
        root = self._parse(line[:LONGEST_LINE])
        if root is None:
            self.certain = False
            return
        if root.has_error or not self._covered(root):
            self.certain = False
        self._statement(root, 0)

    def _parse(self, line: str) -> Node | None:
        """The root of the tree, or ``None`` for what no grammar should be bothered with."""
        steps = 0

        def enough(_offset: int, _failed: bool) -> bool:
            nonlocal steps
            steps += 1
            return steps > MOST_STEPS

        if "\0" in line:
            return None
        try:
            source = self._source = line.encode()
            return _parser().parse(lambda start, _point: source[start:], progress_callback=enough).root_node
        except ValueError:
            # Half a surrogate pair, or a line made to keep the parser busy.
            return None

    def _covered(self, root: Node) -> bool:
        """Whether all that belongs to no leaf is blank: what the grammar passes over, bash may not."""
        end = 0
        for leaf in _leaves(root):
            if not _BLANK.fullmatch(self._source, end, max(end, leaf.start_byte)):
                return False
            end = max(end, leaf.end_byte)
        return _BLANK.fullmatch(self._source, end) is not None

    def _statement(self, node: Node, depth: int) -> None:
        if depth > DEEPEST:
            self.certain = False
            return
        match node.type:
            case "command":
                self._command(node, depth)
            case "redirected_statement":
                self._redirected(node, depth)
            case "comment":
                pass
            case kind if kind in _STRUCTURES or (kind in _TOKENS and not node.is_named):
                self.any_order = self.any_order or kind in _REPEATS
                for child in node.children:
                    self._statement(child, depth + 1)
            case _:
                # Assignments, functions, loops over names, tests: their commands are told, and that is all.
                self.certain = False
                for child in node.children:
                    self._statement(child, depth + 1)

    def _command(self, node: Node, depth: int) -> None:
        one = FoundCommand(self._text(node))
        self.found.append(one)
        for child in node.children:
            match child.type:
                case "command_name":
                    word = self._word(child, depth)
                    raw = self._text(child)
                    if raw in _KEYWORDS:
                        self.certain = False
                    one.words.append(word)
                case "variable_assignment":
                    word = self._word(child, depth)
                    one.words.append(Word(word.text, fixed=False))
                case "herestring_redirect":
                    for part in child.named_children:
                        self._word(part, depth)
                case "file_redirect" | "heredoc_redirect":
                    self._redirect(child, one, depth)
                case _:
                    one.words.append(self._word(child, depth))

    def _redirected(self, node: Node, depth: int) -> None:
        first = len(self.found)
        redirects: list[Node] = []
        for child in node.children:
            if child.type.endswith("_redirect"):
                redirects.append(child)
            else:
                self._statement(child, depth + 1)
        inside = self.found[first:]
        if not inside:
            inside = [FoundCommand(self._text(node))]
            self.found += inside
        elif len(inside) == 1:
            inside[0].text = self._text(node)
        for redirect in redirects:
            for one in inside[:1]:
                self._redirect(redirect, one, depth)
        for one in inside[1:]:
            # What the first writes to, a group writes to as one.
            one.writes = one.writes or inside[0].writes

    def _redirect(self, node: Node, one: FoundCommand, depth: int) -> None:
        if node.type == "herestring_redirect":
            for part in node.named_children:
                self._word(part, depth)
            return
        operator = next((child.type for child in node.children if not child.is_named), "")
        targets = [child for child in node.named_children if child.type != "file_descriptor"]
        if node.type != "file_redirect":
            # The body of a here-document is text or commands, depending on more than the grammar tells.
            self.certain = False
            for child in node.children:
                self._statement(child, depth + 1)
            return
        if operator in (">&-", "<&-") and not targets:
            return
        if len(targets) != 1 or operator not in _REDIRECTIONS:
            # What follows the first target are words of the command, or a command of its own.
            self.certain = False
            one.writes = one.writes or ">" in operator
            one.words += [self._word(target, depth) for target in targets[1:]]
            if len(one.words) == len(targets) - 1 and one.words:
                one.text = self._text(node)
            targets = targets[:1]
        for target in targets:
            word = self._word(target, depth)
            if operator in (">&", "<&") and re.fullmatch(r"\d+-?|-", word.text):
                continue
            if word.fixed and word.text == "/dev/null":
                continue
            one.targets.append(word)
            # Some files in /dev are network connections.
            if ">" in operator or word.text.startswith("/dev/"):
                one.writes = True

    def _word(self, node: Node, depth: int) -> Word:
        """The text of a word without its quotes; commands in it are statements of the line."""
        if depth > DEEPEST:
            self.certain = False
            return Word(self._text(node), fixed=False)
        match node.type:
            case "word" | "number" | "variable_name":
                return self._bare(self._text(node))
            case "raw_string":
                return Word(self._text(node)[1:-1])
            case "string":
                return self._quoted(node, depth)
            case "command_name" | "concatenation":
                parts = [self._word(child, depth + 1) for child in node.children]
                text = "".join(part.text for part in parts)
                braced = "{" in text and re.search(r"[,.]", text) is not None
                fixed = all(part.fixed for part in parts) and not braced
                # A star in quotes is none; where one of either kind is, the pattern is not known.
                clean = all(part.glob or (part.fixed and not re.search(r"[*?]", part.text)) for part in parts)
                wild = any(part.wild for part in parts)
                return Word(text, fixed=fixed, glob=not fixed and clean and not braced, wild=wild)
            case "simple_expansion":
                return Word(self._text(node), fixed=False)
            case "expansion" if _VARIABLE.fullmatch(self._text(node)):
                return Word(self._text(node), fixed=False)
            case "command_substitution":
                if self._text(node).startswith("`"):
                    # Its backslashes mean something else than the grammar takes them for.
                    self.certain = self.certain and "\\" not in self._text(node)
                for child in node.children:
                    self._statement(child, depth + 1)
                return Word(self._text(node), fixed=False)
            case _:
                # Arithmetic, expansions that run commands or hide text, and what is no word at all.
                self.certain = False
                for child in node.children:
                    self._statement(child, depth + 1)
                return Word(self._text(node), fixed=False)

    def _bare(self, raw: str) -> Word:
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
        )

    def _quoted(self, node: Node, depth: int) -> Word:
        text, fixed = "", True
        # Blanks between parts belong to no node.
        end = node.start_byte + 1
        for child in node.children:
            if not child.is_named and child.type == '"':
                continue
            text += self._source[end : child.start_byte].decode("utf-8", "replace")
            if child.type == "string_content":
                text += re.sub(r'\\(["$`\\\n])', lambda m: m[1].replace("\n", ""), self._text(child))
            else:
                word = self._word(child, depth + 1)
                text, fixed = text + word.text, fixed and word.fixed
            end = child.end_byte
        return Word(text + self._source[end : node.end_byte - 1].decode("utf-8", "replace"), fixed)

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace").strip(_SPACES)


def _judged(one: FoundCommand, line: str, *, moved: bool) -> ParsedCommand:
    if one.writes:
        return unclear(line)
    name = one.words[0].text if one.words else ""
    if moved and "/" in name and not name.startswith("/"):
        # The line goes elsewhere, where another program has that name.
        return unclear(line)
    return judge(one.text, one.words)


def _leaves(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        children = node.children
        if children:
            stack += reversed(children)
        else:
            yield node


def _parser() -> Parser:
    import tree_sitter

    # A new one each time: one that was stopped would go on with the old line.
    return tree_sitter.Parser(_language())


@cache
def _language() -> Language:
    # Loaded with the first command: 30 ms and 4 MiB that most processes start without.
    import tree_sitter
    import tree_sitter_bash

    grammar: object = tree_sitter_bash.language()
    return tree_sitter.Language(grammar)


# Nodes that hold commands and do nothing of their own, and the marks between them.
_STRUCTURES: Final = frozenset({
    "program", "list", "pipeline", "subshell", "compound_statement", "negated_command", "if_statement",
    "elif_clause", "else_clause", "while_statement", "do_group",
})  # fmt: skip
_TOKENS: Final = frozenset({
    "&&", "||", "|", "|&", ";", "&", "\n", "(", ")", "{", "}", "!", "if", "then", "elif", "else", "fi", "while",
    "until", "do", "done", "$(", "`",
})  # fmt: skip
_REPEATS: Final = frozenset({"while_statement", "&", "|", "|&", "pipeline"})
_REDIRECTIONS: Final = frozenset({"<", ">", ">>", "&>", "&>>", "<&", ">&", ">|"})
_KEYWORDS: Final = frozenset({
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "until", "while", "{", "}", "time", "((",
})  # fmt: skip
# What bash takes for space; Python knows more.
_SPACES: Final = " \t\n"
# Control characters, and a continued line that is no end of a word: grammar and shell differ on them.
_ODD: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|(?<![ \t\n])\\\n(?![ \t\n])")
_BLANK: Final = re.compile(rb"(?:[ \t\n]|\\\n)*")
_VARIABLE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
