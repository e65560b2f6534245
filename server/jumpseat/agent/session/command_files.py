"""The text of a command file for one call: what the user typed takes the places that the file names.

Two formats are known: ``.prompt.md`` files of VS Code (``${input:name}``, ``${file}``), and the commands of Claude
Code (``$ARGUMENTS``, ``$1``). Each file may use both. Shell commands in a file are not run; the model is told so.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

NOT_RUN: Final = (
    "The shell commands in this text, written as !`command`, have not been run. Run those that you need with your"
    " tools."
)

_PLACE: Final = re.compile(
    r"\$ARGUMENTS(?:\[(?P<index>\d{1,3})\])?(?!\w)"
    r"|\$(?P<number>[1-9])(?!\d)"
    r"|\$\{input:(?P<input>[\w-]+)(?::[^{}]*)?\}"
    r"|\$\{(?P<variable>\w+)\}"
)
_SHELL: Final = re.compile(r"!`[^`\n]+`|^```!", re.MULTILINE)


def expand(text: str, args: str, attachments: Sequence[Mapping[str, object]], cwd: Path) -> str:
    """Return the text of a command file, called with ``args`` by a prompt with ``attachments``.

    Inputs and variables without a value stay as they are: models know their form, and ask.
    """
    words = _split(args)
    inputs = _inputs([match["input"] for match in _PLACE.finditer(text) if match["input"]], words, args)
    variables = _variables(attachments, cwd)

    def value(match: re.Match[str]) -> str:
        if (name := match["input"]) is not None:
            return inputs.get(name, match[0])
        if (name := match["variable"]) is not None:
            return variables.get(name, match[0])
        if (number := match["number"]) is not None:
            return _word(words, int(number) - 1)
        return args if match["index"] is None else _word(words, int(match["index"]))

    expanded = _PLACE.sub(value, text)
    return f"{expanded}\n\n{NOT_RUN}" if _SHELL.search(text) else expanded


def _split(args: str) -> list[str]:
    try:
        return shlex.split(args)
    except ValueError:
        # An apostrophe, for example.
        return args.split()


def _word(words: Sequence[str], index: int) -> str:
    return words[index] if index < len(words) else ""


def _inputs(names: Sequence[str], words: Sequence[str], args: str) -> dict[str, str]:
    """Return the values of inputs: ``name=value``, or the other words in order; the last one gets what is left."""
    values: dict[str, str] = {}
    rest: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in names:
            values[name] = value
        else:
            rest.append(word)
    open_names = [name for name in dict.fromkeys(names) if name not in values]
    if len(open_names) == 1 and not values and args:
        return {open_names[0]: args}
    for position, name in enumerate(open_names, 1):
        taken = rest if position == len(open_names) else rest[:1]
        rest = rest[len(taken) :]
        if taken:
            values[name] = " ".join(taken)
    return values


def _variables(attachments: Sequence[Mapping[str, object]], cwd: Path) -> dict[str, str]:
    """Return the values of VS Code's variables: the file and the selection are the first that are attached."""
    values = {"workspaceFolder": str(cwd), "workspaceFolderBasename": cwd.name}
    by_type = {str(item.get("type")): item for item in reversed(attachments)}
    selection = by_type.get("selection", {})
    if isinstance(text := selection.get("text"), str):
        values |= {"selection": text, "selectedText": text}
    attached: object = by_type["file"].get("path") if "file" in by_type else selection.get("filePath")
    if isinstance(attached, str):
        file = cwd / attached
        values |= {
            "file": str(file),
            "fileBasename": file.name,
            "fileBasenameNoExtension": file.stem,
            "fileDirname": str(file.parent),
            "relativeFile": str(file.relative_to(cwd)) if file.is_relative_to(cwd) else str(file),
        }
    return values
