"""What is there before the first step of a script: its options, its server's address, its files and its model."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from jumpseat_testkit.links import scheme_of
from jumpseat_testkit.model.script import Script as ModelScript
from jumpseat_testkit.patterns import Captures, ScriptError, fill
from jumpseat_testkit.protocols import OUR_LISTENERS, PORT, PROTOCOLS
from jumpseat_testkit.steps import BinaryFile, Script
from jumpseat_testkit.target import Interfere


class PlayOptions(Struct, frozen=True):
    """Options for playing scripts.

    ``command`` and ``url`` replace the script's own server. ``keep`` is the folder for the server's files, instead
    of a temporary one. ``files`` is the folder whose content a client's log was recorded with. ``interfere`` may
    end a script in the place of a message of the client.
    """

    command: Sequence[str] | None = None
    url: str | None = None
    keep: Path | None = None
    files: Path | None = None
    interfere: Interfere | None = None


class Address(NamedTuple):
    """How a server is reached: by the pipes of a command, or at a URL, where the command may make it listen."""

    command: Sequence[str] | None
    url: str | None

    @classmethod
    def of(cls, script: Script, options: PlayOptions) -> Address:
        url = options.url or script.url
        command = options.command or script.server
        if isinstance(command, str):
            command = shlex.split(command)
        if command is None and url is None:
            command = PROTOCOLS[script.protocol].command
        elif command is None and url is not None and PORT in url:
            command = OUR_LISTENERS["tcp" if scheme_of(url) == "tcp" else "ws"]
        return cls(command, url)

    def at(self, port: int) -> Address:
        """Return the address with a port in it."""
        command = None if self.command is None else [part.replace(PORT, str(port)) for part in self.command]
        return Address(command, None if self.url is None else self.url.replace(PORT, str(port)))


def in_folder(model: ModelScript, folder: str) -> ModelScript:
    """Return a model whose texts and calls name the folder; any other ``${...}`` is left to shells."""
    text = model.model_dump_json(exclude_unset=True, by_alias=True)
    return ModelScript.model_validate_json(text.replace("${folder}", json.dumps(folder)[1:-1]))


def write_files(script: Script, folder: Path, captures: Captures) -> None:
    """Write the files of a script into its folder.

    Raises:
        ScriptError: a file is outside of the folder, or its Base64 is invalid.
    """
    files: dict[str, str | BinaryFile] = dict(script.files)
    if script.config is not None:
        files["home/config.toml"] = script.config
    for name, text in files.items():
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ScriptError(f"file {name!r} is outside of the script's folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, str):
            path.write_text(str(fill(text, captures)), encoding="utf-8")
        else:
            path.write_bytes(_decode(name, text.base64))


def _decode(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ScriptError(f"file {name!r}: base64: expected Base64") from None
