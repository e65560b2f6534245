"""Judge the words of programs that have a language: awk, sed, git, and interpreters that run a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from jumpseat.agent.shell.constructs import Doubt
from jumpseat.agent.shell.options import may_be_option
from jumpseat.agent.shell.programs import GIT_SUBCOMMANDS
from jumpseat.agent.shell.starters import (
    AWK_OPTIONS,
    GIT_OPTIONS_BEFORE,
    GIT_SETTINGS,
    GIT_STARTS,
    INTERPRETER_OPTIONS,
    OTHER_INTERPRETER,
    SAFE_AWK,
    SED_OPTIONS,
    TAKES_CODE_MODULES,
)
from jumpseat.agent.shell.words import Word

CODE: Final = "may hold code that starts programs: write it to a file, and run that"


def judge_awk(words: Sequence[Word]) -> Doubt | None:
    """Judge ``awk`` with its program in its words; a program in a file is one of the project."""
    left = list(words[1:])
    while left and left[0].fixed and left[0].text.startswith("-"):
        option = left.pop(0).text
        if option == "--":
            break
        if option in ("-f", "--file") or not AWK_OPTIONS.fullmatch(option):
            return None if option in ("-f", "--file") and left and left[0].fixed else Doubt(option, CODE)
        if option in ("-F", "-v") and left and not left.pop(0).fixed:
            return Doubt(option, "has a value that the shell expands")
    if not left or not left[0].fixed:
        return Doubt(left[0].text if left else words[0].text, CODE)
    return None if SAFE_AWK.match(left[0].text) else Doubt(left[0].text, CODE)


def judge_sed(words: Sequence[Word]) -> Doubt | None:
    """Judge ``sed``, whose scripts may run commands with ``e``."""
    scripts: list[Word] = []
    operands: list[Word] = []
    left = list(words[1:])
    while left:
        word = left.pop(0)
        if not word.fixed:
            if not word.glob or word.text.startswith("-"):
                return Doubt(word.text, "is expanded by the shell, and may be an option of sed")
            operands.append(word)
        elif not word.text.startswith("-"):
            operands.append(word)
        elif not SED_OPTIONS.fullmatch(word.text):
            return Doubt(word.text, CODE)
        elif word.text.startswith("--expression="):
            scripts.append(Word(word.text.partition("=")[2]))
        elif re.fullmatch(r"-[nErsuz]*e|--expression", word.text):
            scripts += left[:1]
            left = left[1:]
    scripts = scripts or operands[:1]
    return next((Doubt(one.text, CODE) for one in scripts if not one.fixed or not _is_safe_sed(one.text)), None)


def _is_safe_sed(script: str) -> bool:
    """Return whether a script consists of commands that start no program and read no other script."""
    at = 0
    while at < len(script):
        found = _SED_COMMAND.match(script, at)
        if found is None:
            return False
        at = found.end()
    return True


def judge_git(words: Sequence[Word]) -> Doubt | None:
    """Judge the options of ``git`` by which it starts programs that its words name."""
    left = list(words[1:])
    while left and left[0].text.startswith("-"):
        option = left.pop(0)
        if option.text in ("-C", "-c") and left:
            value = left.pop(0)
            if option.text == "-c" and not GIT_SETTINGS.fullmatch(value.text.partition("=")[0]):
                return Doubt(value.text, "sets an option of git, which may name a program")
            option = value if option.text == "-c" else Word(option.text, fixed=option.fixed and value.fixed)
        elif option.text in ("--version", "--help", "--exec-path", "--html-path"):
            return None
        elif option.text not in GIT_OPTIONS_BEFORE and not re.match(r"--work-tree=", option.text):
            return Doubt(option.text, "changes which settings and programs git uses")
        if not option.fixed:
            return Doubt(option.text, "is expanded by the shell")
    if not left:
        return None
    subcommand = left.pop(0)
    if not subcommand.fixed or subcommand.text not in GIT_SUBCOMMANDS:
        return Doubt(subcommand.text, "may be an alias of git, which runs anything")
    starts = GIT_STARTS.get(subcommand.text, ())
    if "" in starts:
        return Doubt(f"git {subcommand.text}", "starts programs that settings or its words name")
    texts = [word.text for word in left]
    if subcommand.text == "config":
        return _judge_config(texts)
    for before, word in zip([Word("-"), *left], left, strict=False):
        if not word.fixed and not (word.glob and not word.text.startswith("-")):
            # The value of an option such as -m is no option itself.
            if not (word.single and before.text in ("-m", "--message", "-F", "--file", "--")):
                return Doubt(word.text, "is expanded by the shell, and may be an option of git")
        elif may_be_option(word.text, starts) or word.text in starts or re.match(r"\w+::", word.text):
            return Doubt(word.text, "starts a program that it names")
    return None


def _judge_config(texts: Sequence[str]) -> Doubt | None:
    operands = [text for text in texts if not text.startswith("-")]
    reads = any(re.match(r"--(?:get|list)|-l\Z", text) for text in texts) or operands[:1] in (["get"], ["list"])
    keys = operands[1:] if operands[:1] in (["set"], ["unset"]) else operands
    if reads or (len(keys) <= 1 and not any("edit" in text or text == "-e" for text in texts)):
        return None
    known = GIT_SETTINGS.fullmatch(keys[0]) if keys else None
    return None if known else Doubt(" ".join(texts), "sets an option of git, which may name a program")


def judge_interpreter(name: str, words: Sequence[Word]) -> tuple[Doubt | None, int]:
    """Judge the options of an interpreter; return also the index of the file that it runs, 0 for none."""
    kind = next((kind for pattern, kind in INTERPRETER_OPTIONS if pattern.fullmatch(name)), OTHER_INTERPRETER)
    at, shows = 1, False
    while at < len(words) and words[at].text.startswith("-"):
        option = words[at]
        if not option.fixed or not kind.options.fullmatch(option.text):
            return Doubt(option.text, CODE), 0
        shows = shows or (option.text in _SHOWS and (option.text != "-v" or not kind.has_modules))
        if kind.has_modules and re.fullmatch(r"-[A-Za-z]*m", option.text):
            return _judge_module(words, at + 1), 0
        if option.text in kind.valued:
            if at + 1 >= len(words) or not words[at + 1].fixed or "data:" in words[at + 1].text:
                return Doubt(option.text, "has a value that is not judged"), 0
            at += 1
        at += 1
    if at >= len(words):
        return (None if shows else Doubt(words[0].text, "runs what it reads from its input")), 0
    if not words[at].fixed or words[at].text.startswith(("/dev/", "/proc/", "data:")):
        return Doubt(words[at].text, "names the file to run only when it runs"), 0
    return None, at


def _judge_module(words: Sequence[Word], at: int) -> Doubt | None:
    if at >= len(words) or not words[at].fixed:
        return Doubt(words[at - 1].text, "has a value that the shell expands")
    base = words[at].text.partition(".")[0]
    return Doubt(words[at].text, CODE) if base in TAKES_CODE_MODULES else None


_SHOWS: Final = frozenset({"--version", "--help", "-h", "-v", "-V", "-VV", "-version", "--ini", "-m", "-i"})
_SED_ADDRESS: Final = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*+/I?)"
_SED_TEXT: Final = "|".join(
    rf"s\{mark}(?:[^\{mark}\\\n]|\\.)*+\{mark}(?:[^\{mark}\\\n]|\\.)*+\{mark}[gpI0-9]*+" for mark in "/|#,:@!%"
)
_SED_COMMAND: Final = re.compile(
    rf"[\s;]*+(?:{_SED_ADDRESS}(?:,\+?{_SED_ADDRESS})?)?[ ]*+!?[ ]*+"
    rf"(?:[dDgGhHnNpPqQx=}}{{]|{_SED_TEXT}|y/(?:[^/\\\n]|\\.)*+/(?:[^/\\\n]|\\.)*+/"
    r"|[aic]\\?[ \t]*+[^\\\n]*+\Z)[\s;]*+"
)
