"""What the commands of a line may open, load and run besides what they are: paths, addresses, other commands.

For rules, so rather too much than too little: a word counts as every path that a program may take it for. What
cannot be told from the words makes the reach unknown, and is asked about.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from jumpseat.agent.shell.commands import (
    Word,
    acts,
    git_subcommand,
    interprets,
    loads_urls,
    may_be,
    program,
    reaches_further,
    runs_others,
    sets_up_git,
    takes_no_paths,
)
from jumpseat.agent.shell.programs import (
    MOVES,
    PLACES_LINKS,
    READ_ONLY,
    READS_NAMES,
    REMOTES,
    SEARCHES_HERE,
    SHELLS,
    TAKES_PATHS,
    UNPACKS_LINKS,
    WITH_VALUE,
)

Mention: TypeAlias = tuple[str | None, ...]
"""The words of a command that may be run; ``None`` for one that only the shell knows."""

MOST_WORDS: Final = 64
"""Of one command, that are looked at as the beginning of another one."""

MOST_FORMS: Final = 16
"""Of one word. Where there are more, the reach is not known."""


@dataclass(slots=True)
class FoundCommand:
    """A simple command with its redirections. ``targets`` are the files of the latter."""

    text: str
    words: list[Word] = field(default_factory=list[Word])
    targets: list[Word] = field(default_factory=list[Word])
    writes: bool = False

    @property
    def texts(self) -> list[str]:
        return [word.text for word in self.words]


class Reach:
    """What the commands of one line may open and load.

    ``words`` are those that may be opened as files, ``globs`` patterns of such, ``folders`` where the line goes
    (``cd``), ``addresses`` what may be loaded. ``all_known`` says that there is nothing else.
    """

    def __init__(self, found: Sequence[FoundCommand], *, any_order: bool) -> None:
        self.words: list[str] = []
        self.globs: list[str] = []
        self.folders: list[str] = []
        self.addresses: list[str] = []
        self.all_known = _keeps_its_paths(found, any_order=any_order)
        for one in found:
            self._add(one)

    def _add(self, one: FoundCommand) -> None:
        texts = one.texts
        for target in one.targets:
            self._path(target)
            if (socket := _SOCKET.match(target.text)) is not None:
                self.addresses.append(f"tcp://{socket[1]}")
        if texts and texts[0] in MOVES:
            folder = one.words[1] if len(one.words) == 2 else Word("", fixed=False)
            self.all_known = self.all_known and folder.fixed and folder.text not in ("", "-")
            self.folders.append(folder.text)
        if takes_no_paths(texts):
            for word in one.words[1:]:
                self._listed(word)
            return
        if reaches_further(one.words) or program(texts) in READS_NAMES:
            self.all_known = False
        if interprets(texts):
            names = [name for text in texts[1:] for name in _NAME.findall(text) if re.search(r"[./]", name)]
            self.words += names[:MOST_FORMS]
        if _searches_here(texts):
            self.words.append(".")
        addresses = set(_addresses(texts)) if loads_urls(texts) else set[int]()
        remotes = set(_remotes(texts))
        for place, word in enumerate(one.words[1:], start=1):
            # In words as the shell hands them over: quotes in the middle may have hidden it.
            self.addresses += URL.findall(word.text)
            if place in addresses:
                self.all_known = self.all_known and word.fixed
                if not URL.match(word.text):
                    self.addresses.append(f"http://{word.text}")
            if place in remotes:
                self._remote(word)
            if not URL.match(word.text):
                self._path(word)

    def _path(self, word: Word) -> None:
        if word.fixed:
            forms = path_forms(word.text)
            self.words += forms[:MOST_FORMS]
            self.all_known = self.all_known and len(forms) <= MOST_FORMS
        elif re.match(r"~(?:/|\Z)", word.text) and not re.search(r"[*?\[{$`]", word.text):
            self.words.append(word.text)
        elif word.glob and "**" not in word.text and not word.text.startswith("-"):
            self.globs.append(word.text)
        else:
            self.all_known = False

    def _listed(self, word: Word) -> None:
        """The folders that the shell looks into for a pattern, whatever the command does with their names."""
        folder = posixpath.dirname(word.text)
        if not word.wild or (not folder and word.glob):
            return
        if not word.glob:
            self.all_known = False
        elif re.search(r"[*?]", folder):
            self.globs.append(folder)
        else:
            self.words.append(folder)

    def _remote(self, word: Word) -> None:
        """Other machines as ``git`` and ``tar`` name them: ``user@host:path``, and what helpers of theirs load."""
        if "::" in word.text:
            self.all_known = False
        if (found := _REMOTE.match(_value(word.text))) is not None:
            self.addresses.append(f"ssh://{found[1]}")


def path_forms(text: str) -> list[str]:
    """The paths that a program may take a word for: all of it, the value of an option, the parts of a list."""
    forms = [text]
    if "@" in text or "<" in text or not re.search(r"\s", text):
        # Not of prose, a message say, where each comma would count.
        forms += [piece for piece in re.split(r"[=@:,;<>\s]+", text) if piece]
    for mark in ("=", "@", ":"):
        _, found, rest = text.partition(mark)
        if found and rest:
            forms.append(rest)
    if re.match(r"-[^-]", text):
        # The value of a short option may stand right behind it, and that behind others.
        letters = re.match(r"-[A-Za-z0-9]*", text)
        end = letters.end() if letters is not None else 1
        forms += [text[place:] for place in range(2, min(end + 1, len(text)))]
    return list(dict.fromkeys(forms))


def mentions(
    one: FoundCommand, parse: Callable[[str], Iterable[FoundCommand]], depth: int = 0
) -> Iterator[Mention]:
    """The words of a command, and of those that it may run. ``parse`` takes a line apart."""
    texts = one.texts
    if not texts:
        return
    words = tuple(word.text if word.fixed else None for word in one.words)
    yield words
    coded = interprets(texts) or acts(one.words)
    runs = runs_others(texts) or not one.words[0].fixed or "find" in texts[0]
    if depth > 3 or not (coded or runs):
        return
    # What is read from others comes behind the words that are there.
    more: Mention = (None,) if program(texts) in READS_NAMES else ()
    for place in range(1, min(len(texts), MOST_WORDS)):
        text = texts[place]
        if runs:
            yield words[place:] + more
        for line in dict.fromkeys((text, _SETTING.sub("", text, count=1))):
            if " " in line or ";" in line:
                for other in parse(line):
                    yield from mentions(other, parse, depth + 1)
        if coded:
            # What a program in another language, or a setting, may hand to a shell.
            names = _NAME.findall(text)[:MOST_WORDS]
            for start in range(len(names)):
                yield tuple(names[start:])


def is_opaque(one: FoundCommand) -> bool:
    """Whether a command may run what its words do not show."""
    texts = one.texts
    if not texts:
        return False
    if not one.words[0].fixed or (sets_up_git(texts) and any(_HIDES.match(text) for text in texts)):
        return True
    if any(
        (last := word.rpartition("/")[2]) in SHELLS and (last != "." or not place)
        for place, word in enumerate(texts[:MOST_WORDS])
    ):
        return True
    # What comes from an expansion may be the name of what is run.
    return (runs_others(texts) or interprets(texts)) and not all(word.fixed for word in one.words)


def shown_paths(one: FoundCommand) -> list[str]:
    """What people should see as a path among the words."""
    shown = [target.text for target in one.targets if target.text.strip("<>&|")]
    takes_paths = bool(one.words) and one.words[0].text in TAKES_PATHS
    for index, word in enumerate(one.words):
        text = word.text
        if text.startswith("-") and "=" in text:
            text = text.partition("=")[2]
        if not text.strip("<>&|") or text.startswith("-") or URL.match(text):
            continue
        looks = "/" in text or text.startswith(("~", "..")) or text == "."
        if index == 0:
            looks = "/" in text
        elif not looks:
            looks = takes_paths or (_FILE_NAME.match(text) is not None)
        if looks:
            shown.append(text)
    return shown


def _keeps_its_paths(found: Sequence[FoundCommand], *, any_order: bool) -> bool:
    """Whether paths lead, when they are opened, where they led when the line was judged: that nothing in it puts a
    link where a later command goes."""
    for place, one in enumerate(found):
        later = [other for other in found if other is not one] if any_order else found[place + 1 :]
        texts = one.texts
        if not texts:
            continue
        # The grammar gives the redirections of the last command of a list to all of it, so to the first.
        later = [*later, FoundCommand("", targets=one.targets)]
        name = program(texts)
        if name in UNPACKS_LINKS or f"{name} {git_subcommand(texts)}" in UNPACKS_LINKS:
            # They put links anywhere; who only runs something is as free as these are.
            if any(_opens_paths(other) for other in later):
                return False
        elif name in PLACES_LINKS and (not PLACES_LINKS[name] or _has(texts, PLACES_LINKS[name])):
            places = [posixpath.normpath(form) for text in texts[1:] for form in path_forms(text)]
            opened = [
                posixpath.normpath(form)
                for other in later
                for word in (*other.words[1:], *other.targets)
                for form in path_forms(word.text)
            ]
            if any(_lies_in(path, folder) for path in opened for folder in places):
                return False
    return True


def _opens_paths(one: FoundCommand) -> bool:
    name = program(one.texts)
    return bool(one.targets) or (
        (name in TAKES_PATHS or name in READ_ONLY)
        and not takes_no_paths(one.texts)
        and any(not text.startswith("-") for text in one.texts[1:])
    )


def _lies_in(path: str, folder: str) -> bool:
    if path.startswith("-") or folder.startswith("-"):
        return False
    return path == folder or path.startswith(f"{folder}/") or (folder == "." and not path.startswith("/"))


def _has(texts: Sequence[str], options: tuple[str, ...]) -> bool:
    return any(may_be(text, options) for text in texts[1:])


def _searches_here(texts: Sequence[str]) -> bool:
    name = program(texts)
    return (
        name in SEARCHES_HERE
        or f"{name} {git_subcommand(texts)}" in SEARCHES_HERE
        or (
            name in ("grep", "egrep", "fgrep")
            and _has(texts, ("-r", "-R", "--recursive", "--dereference-recursive"))
        )
    )


def _addresses(texts: Sequence[str]) -> Iterator[int]:
    """The places of the words that a program which loads URLs may take for one."""
    with_value, without, long = WITH_VALUE.get(program(texts), ("", "", frozenset[str]()))
    place, options = 1, True
    while place < len(texts):
        text = texts[place]
        if not options or not text.startswith("-"):
            yield place
        elif text == "--":
            options = False
        elif text in long or (
            re.match(r"-[^-]", text) and text[-1] in with_value and set(text[1:-1]).issubset(without)
        ):
            place += 1
        place += 1


def _remotes(texts: Sequence[str]) -> Iterator[int]:
    """The places of the words that may name another machine for ``git`` or ``tar``."""
    subcommand = git_subcommand(texts)
    if program(texts) != "tar" and subcommand not in REMOTES:
        return
    # What comes behind the first word is a branch for git, which may have a colon, too.
    is_first = subcommand not in ("", "remote")
    for place in range(texts.index(subcommand) + 1 if subcommand else 1, len(texts)):
        text = texts[place]
        plain = not text.startswith("-") and texts[place - 1] not in _GIT_WITH_VALUE
        may_name_any = subcommand in ("", "remote") or (plain and is_first) or "::" in text
        if may_name_any or re.search(r"[.@\[]", _value(text).partition(":")[0]):
            yield place
        is_first = is_first and not plain


def _value(text: str) -> str:
    return text.partition("=")[2] if text.startswith("--") else text


URL: Final = re.compile(r"(?:https?|ftp|ftps|ssh|git|ws|wss)://[^\s'\"`<>|;&\\]+", re.IGNORECASE)
_FILE_NAME: Final = re.compile(r"[\w@%+-][\w@%+.-]*\.[A-Za-z][A-Za-z0-9]{0,9}\Z")
_REMOTE: Final = re.compile(r"(?:[^\s/@:]*@)?(\[[0-9A-Fa-f:.]+\]|[\w.-]+):(?!//)")
_GIT_WITH_VALUE: Final = frozenset({
    "-b", "-j", "-o", "--branch", "--deepen", "--depth", "--jobs", "--origin", "--push-option", "--reference",
    "--server-option", "--shallow-exclude", "--shallow-since",
})  # fmt: skip
_SOCKET: Final = re.compile(r"/dev/(?:tcp|udp)/([^/]+)")
# The name of an option or a setting that stands before its value.
_SETTING: Final = re.compile(r"--?[\w-]+=|-\w|[\w.]+=")
# Settings that give git's subcommands another meaning, or have it find others.
_HIDES: Final = re.compile(r"(?:-c)?alias\.|--config-env|--exec-path", re.IGNORECASE)
_NAME: Final = re.compile(r"[\w./~+%-]+")
