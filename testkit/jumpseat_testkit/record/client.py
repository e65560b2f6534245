"""Record a client that is talking to its server."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import anyio

from jumpseat_protocol.json_values import as_list, as_object
from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.protocols import PROTOCOLS, name_of
from jumpseat_testkit.record.live import Conversation, record_live
from jumpseat_testkit.record.recorder import record_conversation


def record_client(command: Sequence[str] | None, file: Path, *, everything: bool) -> int:
    """Serve the client on standard input and output by ``command``, and write the script of what they say."""

    def write(conversation: Conversation) -> None:
        sent = [message for direction, message in conversation.messages if direction == "->"]
        if sent:
            folders = _folders(sent)
            text = record_conversation(
                conversation.messages,
                name_of(sent),
                folders,
                everything=everything,
                about="Recorded from a client.",
            )
            write_file(file, text)

    return anyio.run(record_live, command or PROTOCOLS["copilot"].command, write)


def _folders(sent: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the folders of the conversation by what stands in their places."""
    found = {os.environ["COPILOT_HOME"]: "${folder}/home"} if os.environ.get("COPILOT_HOME") else {}
    for message in sent:
        params = as_object(message.get("params"))
        # Those of agent hosts are URIs, in which a space is "%20"; commands and their output have the plain path.
        uris = as_list(params.get("workingDirectories"))
        encoded = [str(uri).removeprefix("file://") for uri in uris]
        plain = [unquote(path) for path in encoded]
        for path in (params.get("workingDirectory"), params.get("cwd"), *encoded, *plain):
            if isinstance(path, str) and len(path) > 1:
                found[path] = "${folder}"
    return {**found, str(Path.cwd()): "${folder}"}


def write_file(file: Path, text: str) -> None:
    """Write a script.

    Raises:
        ScriptError: the file cannot be written.
    """
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ScriptError(f"cannot write {str(file)!r}: {error.strerror or error}") from None
