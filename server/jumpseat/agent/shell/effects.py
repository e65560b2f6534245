"""Find what the commands of a line may open, load and run: paths, URLs and other commands.

Rules are matched against the result, so it errs on the side of too much: a word counts as every path that a program
may take it for. If the words do not determine the reach, it is unknown, and a person is asked.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field

from jumpseat.agent.shell.commands import (
    follows_redirects,
    git_subcommand,
    has_reaching_option,
    is_filter,
    is_known,
    loads_urls,
    may_be_alias,
    program_name,
    reconfigures_git,
    runs_other_commands,
    takes_code,
    takes_no_paths,
)
from jumpseat.agent.shell.options import may_be_option
from jumpseat.agent.shell.programs import (
    CHANGES_FOLDER,
    PLACES_INTO,
    PLACES_LINKS,
    READS_NAMES,
    REMOTE_SUBCOMMANDS,
    SEARCHES_HERE,
    SHELLS,
    TAKES_PATHS,
    UNPACKS_LINKS,
    WALKS,
    WITH_VALUE,
)
from jumpseat.agent.shell.reading import READING
from jumpseat.agent.shell.text_programs import printed_files
from jumpseat.agent.shell.tool_options import is_label
from jumpseat.agent.shell.words import Word

CommandWords: TypeAlias = tuple[str | None, ...]
"""The words of a command that may run; ``None`` for a word that only the shell can expand."""

MAX_WORDS: Final = 64
"""Limit of the words of one command that are considered as the beginning of another command."""

MAX_FORMS: Final = 32
"""Limit of the paths that one word is taken for; with more, the reach is unknown."""


class FoundCommand(Struct):
    """A simple command. ``targets`` are the files of its redirections; ``writes`` is set if one is written.

    ``inputs`` are the texts of its here-strings. ``settings`` are the variables in front of it that do more than
    change what is shown, and load no code from outside of the project.
    """

    text: str
    words: list[Word] = field(default_factory=list[Word])
    settings: list[str] = field(default_factory=list[str])
    targets: list[Word] = field(default_factory=list[Word])
    inputs: list[str] = field(default_factory=list[str])
    writes: bool = False

    @property
    def texts(self) -> list[str]:
        return [word.text for word in self.words]


class Placement(Struct, frozen=True):
    """The words and patterns of a command that may touch ``folder/name`` if its words are ``folder`` and ``name``.

    ``program`` is the name of its program. ``walks`` means that it changes folders with all their contents.
    """

    program: str
    words: tuple[str, ...]
    globs: tuple[str, ...]
    walks: bool


class Reach:
    """The files and URLs that the commands of one line may open and load.

    ``words`` may be opened as files, ``globs`` are patterns of files, ``folders`` are the targets of ``cd``,
    ``addresses`` are URLs that may be loaded, ``placements`` commands that touch files in the folders they name.
    ``complete`` means that the line opens and loads nothing else.
    """

    def __init__(self, found: Sequence[FoundCommand], *, any_order: bool) -> None:
        self._lists_own = False
        self.words: list[str] = []
        self.globs: list[str] = []
        self.folders: list[str] = []
        self.addresses: list[str] = []
        self.placements: list[Placement] = []
        self.complete = _links_stay(found, any_order=any_order)
        for command in found:
            self._add(command)
            self._lists_own = _lists_own_files(command) or (self._lists_own and _picks_lines(command))

    def _add(self, command: FoundCommand) -> None:
        texts = command.texts
        for setting in command.settings:
            self._add_path(Word(setting))
        for target in command.targets:
            self._add_path(target)
            if (socket := _SOCKET.match(target.text)) is not None:
                self.addresses.append(f"tcp://{socket[1]}")
        if texts and texts[0] in CHANGES_FOLDER:
            folder = command.words[1] if len(command.words) == 2 else Word("", fixed=False)
            self.complete = self.complete and folder.fixed and folder.text not in ("", "-")
            self.folders.append(folder.text)
        if (files := printed_files(command.words)) is not None:
            # Neither a program nor its options are paths, whatever they look like.
            for word in files:
                self._add_path(word)
            return
        if takes_no_paths(texts):
            for word in command.words[1:]:
                self._add_globbed_folder(word)
            return
        if (
            has_reaching_option(command.words)
            or (program_name(texts) in READS_NAMES and not (self._lists_own and reads_named(command.words)))
            or follows_redirects(texts)
            or (any(text.startswith("@") for text in texts[1:]) and not is_known(command.words))
            or (program_name(texts) == "jq" and not is_known(command.words))
        ):
            self.complete = False
        if (placement := _placement(command)) is not None:
            self.placements.append(placement)
        if takes_code(texts):
            names = [name for text in texts[1:] for name in _NAME.findall(text) if re.search(r"[./]", name)]
            self.words += names[:MAX_FORMS]
        if _searches_here(texts):
            self.words.append(".")
        urls = set(_url_indexes(texts)) if loads_urls(texts) else set[int]()
        remotes = set(_remote_indexes(texts))
        for index, word in enumerate(command.words[1:], start=1):
            # In the unquoted words, because quotes in the middle may hide a URL.
            self.addresses += URL.findall(word.text)
            if index in urls:
                self.complete = self.complete and word.fixed
                if not URL.match(word.text):
                    self.addresses.append(f"http://{word.text}")
            if index in remotes:
                self._add_remote(word)
            if not URL.match(word.text) and not (texts[0] == "bazel" and is_label(word.text)):
                self._add_path(word)

    def _add_path(self, word: Word) -> None:
        if word.fixed:
            forms = path_forms(word.text)
            self.words += forms[:MAX_FORMS]
            self.complete = self.complete and len(forms) <= MAX_FORMS
        elif re.match(r"~(?:/|\Z)", word.text) and not re.search(r"[*?\[{$`]", word.text):
            self.words.append(word.text)
        elif word.glob and "**" not in word.text and not word.text.startswith("-"):
            self.globs.append(word.text)
        elif word.glob and "**" not in word.text and (option := re.match(r"--[\w-]+=", word.text)) is not None:
            self.globs.append(word.text[option.end() :])
        else:
            self.complete = False

    def _add_globbed_folder(self, word: Word) -> None:
        """Add the folder that the shell lists to expand a pattern, whatever the command does with the names."""
        folder = posixpath.dirname(word.text)
        if not word.wild or (not folder and word.glob):
            return
        if not word.glob:
            self.complete = False
        elif re.search(r"[*?]", folder):
            self.globs.append(folder)
        else:
            self.words.append(folder)

    def _add_remote(self, word: Word) -> None:
        """Add the machine of a ``git`` or ``tar`` remote: ``user@host:path``. A ``helper::`` may load anything."""
        if "::" in word.text:
            self.complete = False
        if (found := _REMOTE.match(_option_value(word.text))) is not None:
            self.addresses.append(f"ssh://{found[1]}")


def _lists_own_files(command: FoundCommand) -> bool:
    """Return whether a command prints the names of files below the folder, none of which leads out of it."""
    texts = command.texts
    match program_name(texts[:1]):
        case "find":
            known = "-type f" in " ".join(texts) and not any(text.startswith("-print") for text in texts)
        case "rg":
            known = "-l" in texts or "--files" in texts or "--files-with-matches" in texts
        case "grep":
            known = any(re.match(r"-[A-Za-z]*l|--files-with-matches", text) for text in texts)
        case _:
            return False
    return known and is_known(command.words)


def _picks_lines(command: FoundCommand) -> bool:
    return program_name(command.texts[:1]) in ("grep", "head", "sort", "tail", "uniq") and is_filter(command.words)


def reads_named(words: Sequence[Word]) -> bool:
    """Return whether ``xargs`` runs a command that only reads the files whose names it gets."""
    rest = list(words)
    if not rest or rest.pop(0) != Word("xargs"):
        return False
    while rest and rest[0].text.startswith("-"):
        if not re.fullmatch(r"-[r0]+|-[nLP]\d*", rest[0].text):
            return False
        rest = rest[2:] if rest[0].text in ("-n", "-L", "-P") else rest[1:]
    # Not the programs that take a name for something else than a file.
    return bool(rest) and rest[0].text in _READS_FILES and is_known(rest) and not any(word.wild for word in rest)


_READS_FILES: Final = frozenset({"cat", "grep", "head", "ls", "md5sum", "nl", "sha256sum", "stat", "tail", "wc"})


def _placement(command: FoundCommand) -> Placement | None:
    name, subcommand = program_name(command.texts), git_subcommand(command.texts)
    if subcommand == "mv":
        name = subcommand
    walks = name in WALKS and (
        name == "mv" or _has_any_option(command.texts, ("-r", "-R", "-a", "--recursive", "--archive"))
    )
    if not walks and name not in PLACES_INTO and subcommand != "diff":
        return None
    words = (form for word in command.words[1:] if word.fixed for form in path_forms(word.text))
    globs = (word.text for word in command.words[1:] if word.glob)
    return Placement(name, tuple(dict.fromkeys(words)), tuple(globs), walks)


def path_forms(text: str) -> list[str]:
    """Return the paths that a program may take a word for: the word, an option's value, the items of a list."""
    forms = [text]
    if "@" in text or "<" in text or not re.search(r"\s", text):
        # Not for prose such as a commit message, where every comma would count.
        forms += [piece for piece in re.split(r"[=@:,;<>\s]+", text) if piece]
    for mark in ("=", "@", ":"):
        _, found, rest = text.partition(mark)
        if found and rest:
            forms.append(rest)
    if re.match(r"-[^-]", text):
        # The value of a short option may follow it directly, and the option may be joined with others.
        letters = re.match(r"-[A-Za-z0-9]*", text)
        end = letters.end() if letters is not None else 1
        forms += [text[index:] for index in range(2, min(end + 1, len(text)))]
    return list(dict.fromkeys(forms))


def possible_commands(
    command: FoundCommand, parse: Callable[[str], Iterable[FoundCommand]], depth: int = 0
) -> Iterator[CommandWords]:
    """Yield the words of a command, and of each command that it may run. ``parse`` finds the commands of a line."""
    texts = command.texts
    if not texts:
        return
    words = tuple(word.text if word.fixed else None for word in command.words)
    yield words
    has_code = takes_code(texts)
    runs = runs_other_commands(texts) or not command.words[0].fixed or "find" in texts[0]
    if depth > 3 or (is_known(command.words) and not has_code and not runs):
        return
    # Words read from the input follow the given ones.
    more: CommandWords = (None,) if program_name(texts) in READS_NAMES else ()
    for index in range(1, min(len(texts), MAX_WORDS)):
        text = texts[index]
        # An option that is not known may run the words behind it, or name a program.
        if runs or texts[index - 1].startswith("-"):
            yield words[index:] + more
        if has_code or runs or command.words[index].fixed:
            any_word = has_code or text.startswith("-") or "=" in text
            yield from _commands_in_code(text, parse, depth, any_word=any_word)
    for text in command.inputs:
        yield from _commands_in_code(text, parse, depth, any_word=True)


def _commands_in_code(
    text: str, parse: Callable[[str], Iterable[FoundCommand]], depth: int, *, any_word: bool
) -> Iterator[CommandWords]:
    """Yield the commands in a word that may hold code: each line of it, and with ``any_word`` from each word on."""
    setting = _SETTING.search(text)
    without = text if setting is None else text[: setting.start()] + text[setting.end() :]
    for line in dict.fromkeys((text, without)):
        if " " in line or ";" in line:
            for other in parse(line):
                yield from possible_commands(other, parse, depth + 1)
    if any_word:
        # Commands that the code, or a setting, may pass to a shell.
        names = _NAME.findall(text)[:MAX_WORDS]
        for start in range(len(names)):
            yield tuple(names[start:])


def names_in(command: FoundCommand) -> Iterator[str]:
    """Yield the names in the words of a command that may run a program with such a name, or give it another name.

    Names are without folders, and in lower case. Any word of a command that is not known counts, and of a known one
    the programs in the folders of programs.
    """
    texts = command.texts
    if not texts or takes_no_paths(texts):
        return
    if is_known(command.words):
        for text in texts[1:]:
            folder, _, name = text.rpartition("/")
            if folder.rpartition("/")[2] in _PROGRAM_FOLDERS:
                yield name.casefold()
        return
    subcommand = git_subcommand(texts)
    for text in (*texts[1:], *command.inputs):
        # `git rm` is not `rm`.
        if text != subcommand:
            for form in path_forms(text):
                yield from (name.rpartition("/")[2].casefold() for name in _NAME.findall(form))


def is_opaque(command: FoundCommand) -> bool:
    """Return whether a command may run commands that its words do not show."""
    texts = command.texts
    if not texts:
        return False
    if not command.words[0].fixed or (
        reconfigures_git(texts) and any(_GIT_REDEFINES.match(text) for text in texts)
    ):
        return True
    if may_be_alias(texts) or (git_subcommand(texts) == "config" and any(map(_GIT_REDEFINES.match, texts))):
        return True
    if any(
        (last := word.rpartition("/")[2]) in SHELLS and (last != "." or not index)
        for index, word in enumerate(texts[:MAX_WORDS])
    ):
        return True
    # An expanded word may be the name of a command.
    return (runs_other_commands(texts) or takes_code(texts)) and not all(word.fixed for word in command.words)


def displayed_paths(command: FoundCommand) -> list[str]:
    """Return the words and redirection targets that look like paths, for display to people."""
    shown = [target.text for target in command.targets if target.text.strip("<>&|")]
    takes_paths = bool(command.words) and command.words[0].text in TAKES_PATHS
    for index, word in enumerate(command.words):
        text = word.text
        if text.startswith("-") and "=" in text:
            text = text.partition("=")[2]
        if not text.strip("<>&|") or text.startswith("-") or URL.match(text):
            continue
        looks_like_path = "/" in text or text.startswith(("~", "..")) or text == "."
        if index == 0:
            looks_like_path = "/" in text
        elif not looks_like_path:
            looks_like_path = takes_paths or (_FILE_NAME.match(text) is not None)
        if looks_like_path:
            shown.append(text)
    return shown


def _links_stay(found: Sequence[FoundCommand], *, any_order: bool) -> bool:
    """Return whether no command of the line creates a link at a path that another command opens later.

    Otherwise paths may lead elsewhere by the time they are opened.
    """
    for index, command in enumerate(found):
        later = [other for other in found if other is not command] if any_order else found[index + 1 :]
        texts = command.texts
        if not texts:
            continue
        # The grammar attaches the redirections of the last command of a list to the whole list, so to the first.
        later = [*later, FoundCommand("", targets=command.targets)]
        name = program_name(texts)
        if name in UNPACKS_LINKS or f"{name} {git_subcommand(texts)}" in UNPACKS_LINKS:
            # These create links anywhere, so that any later path may lead elsewhere.
            if any(_opens_paths(other) for other in later):
                return False
        elif name in PLACES_LINKS and (not PLACES_LINKS[name] or _has_any_option(texts, PLACES_LINKS[name])):
            link_paths = [posixpath.normpath(form) for text in texts[1:] for form in path_forms(text)]
            opened = [
                posixpath.normpath(form)
                for other in later
                for word in (*other.words[1:], *other.targets)
                for form in path_forms(word.text)
            ]
            if any(_is_inside(path, folder) for path in opened for folder in link_paths):
                return False
    return True


def _opens_paths(command: FoundCommand) -> bool:
    name = program_name(command.texts)
    return bool(command.targets) or (
        (name in TAKES_PATHS or name in READING)
        and not takes_no_paths(command.texts)
        and any(not text.startswith("-") for text in command.texts[1:])
    )


def _is_inside(path: str, folder: str) -> bool:
    if path.startswith("-") or folder.startswith("-"):
        return False
    return path == folder or path.startswith(f"{folder}/") or (folder == "." and not path.startswith("/"))


def _has_any_option(texts: Sequence[str], options: tuple[str, ...]) -> bool:
    return any(may_be_option(text, options) for text in texts[1:])


def _searches_here(texts: Sequence[str]) -> bool:
    name = program_name(texts)
    return (
        name in SEARCHES_HERE
        or f"{name} {git_subcommand(texts)}" in SEARCHES_HERE
        or (
            name in ("grep", "egrep", "fgrep")
            and _has_any_option(texts, ("-r", "-R", "--recursive", "--dereference-recursive"))
        )
    )


def _url_indexes(texts: Sequence[str]) -> Iterator[int]:
    """Yield the indexes of the words that a program which loads URLs may take for a URL."""
    with_value, without, long = WITH_VALUE.get(program_name(texts), ("", "", frozenset[str]()))
    index, options = 1, True
    while index < len(texts):
        text = texts[index]
        if not options or not text.startswith("-"):
            yield index
        elif text == "--":
            options = False
        elif text in long or (
            re.match(r"-[^-]", text) and text[-1] in with_value and set(text[1:-1]).issubset(without)
        ):
            index += 1
        index += 1


def _remote_indexes(texts: Sequence[str]) -> Iterator[int]:
    """Yield the indexes of the words that may name another machine for ``git`` or ``tar``."""
    subcommand = git_subcommand(texts)
    if program_name(texts) != "tar" and subcommand not in REMOTE_SUBCOMMANDS:
        return
    # For git, the words after the first one are refspecs, which may contain colons too.
    is_first = subcommand not in ("", "remote")
    for index in range(texts.index(subcommand) + 1 if subcommand else 1, len(texts)):
        text = texts[index]
        plain = not text.startswith("-") and texts[index - 1] not in _GIT_WITH_VALUE
        may_name_any = subcommand in ("", "remote") or (plain and is_first) or "::" in text
        if may_name_any or re.search(r"[.@\[]", _option_value(text).partition(":")[0]):
            yield index
        is_first = is_first and not plain


def _option_value(text: str) -> str:
    return text.partition("=")[2] if text.startswith("--") else text


URL: Final = re.compile(r"(?:https?|ftp|ftps|ssh|git|ws|wss)://[^\s'\"`<>|;&\\]+", re.IGNORECASE)
_PROGRAM_FOLDERS: Final = frozenset({"bin", "sbin", ".bin", "libexec", "coreutils"})
_FILE_NAME: Final = re.compile(r"[\w@%+-][\w@%+.-]*\.[A-Za-z][A-Za-z0-9]{0,9}\Z")
_REMOTE: Final = re.compile(r"(?:[^\s/@:]*@)?(\[[0-9A-Fa-f:.]+\]|[\w.-]+):(?!//)")
_GIT_WITH_VALUE: Final = frozenset({
    "-b", "-j", "-o", "--branch", "--deepen", "--depth", "--jobs", "--origin", "--push-option", "--reference",
    "--server-option", "--shallow-exclude", "--shallow-since",
})  # fmt: skip
_RECURSIVE: Final = ("-r", "-R", "-a", "--recursive", "--archive")
_SOCKET: Final = re.compile(r"/dev/(?:tcp|udp)/([^/]+)")
# The name of an option or a setting in front of its value.
_SETTING: Final = re.compile(r"(?<!-)--?[\w-]+=|-\w|(?<![\w.])[\w.]+=")
# Options that redefine subcommands of git, or load them from elsewhere.
_GIT_REDEFINES: Final = re.compile(r"(?:-c)?alias\.|--config-env|--exec-path", re.IGNORECASE)
_NAME: Final = re.compile(r"[\w./~+%-]+")
