"""The target that measures time: readers of foreign text, which take time in proportion to its length."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import httpx2

from jumpseat.acp.translation.diffs import diffs_of
from jumpseat.acp.translation.plans import entries_of
from jumpseat.adapters.failures import Redactor, failure_of_event, failure_of_response
from jumpseat.adapters.recording.masking import ContentMask
from jumpseat.agent.blocks import AssistantMessage, TextBlock
from jumpseat.agent.conversation.attachments import expand_mentions
from jumpseat.agent.model import Completed, Model, ModelRequest, ToolSchema, ToolSpec
from jumpseat.agent.model_calls.call_finder import find_calls
from jumpseat.agent.model_calls.written_calls.repair import offered_name, repair_arguments
from jumpseat.agent.model_calls.xml_tools.model import XmlToolModel
from jumpseat.agent.model_calls.xml_tools.scanner import Scanner
from jumpseat.agent.permissions.rules import host_of
from jumpseat.commands.completions import find_token
from jumpseat.errors import JumpseatError
from jumpseat.mcp.auth import challenge_of
from jumpseat.parsing.toml_text import parse_toml
from jumpseat.sandbox.refusals import find_refusals
from jumpseat.sandbox.view import View
from jumpseat.store.project.front_matter import front_matter
from jumpseat.store.session.database import split_statements
from jumpseat.store.session.workspace import parse_workspace
from jumpseat.tools.edits.engine import Edit, apply_edit
from jumpseat_protocol.safe import exact, one_line, safe
from jumpseat_protocol.visible import deceptive_characters, has_hidden_parts, visible, visible_url
from tests.fuzz.texts import TOOLS

LENGTHS: Final = (32, 1024, 32 * 1024)
"""Characters; short texts come first, because the time may grow exponentially."""
LEAST_S: Final = 0.05
"""Processor time below which no growth is measured."""
MOST_GROWTH: Final = 9
"""The limit of the growth for four times the length: 4 is linear, 16 quadratic."""

_SPECS: Final = [ToolSpec(name, "", ToolSchema.of(schema)) for name, schema in TOOLS.items()]
_REQUEST: Final = ModelRequest("m", "", [], [ToolSpec("run", "", ToolSchema.of(TOOLS["run"]))], stream=False)
_VIEW: Final = View(hidden=(Path("/home/u/.ssh"),), writable=(Path("/w"),), temp=Path("/t"))


def _scan(text: str) -> None:
    scanner = Scanner(TOOLS)
    scanner.feed(text)
    scanner.finish()


def _challenge(text: str) -> None:
    header = f"Bearer {text}".encode("ascii", "replace")
    challenge_of(httpx2.Response(401, headers=[(b"www-authenticate", header)]))


def _finish(text: str) -> None:
    rewriter = XmlToolModel(cast("Model", None)).rewriter_for(_REQUEST)
    assert rewriter is not None
    list(rewriter.events_for(Completed(AssistantMessage([TextBlock(text)]), "end_turn")))


READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "output of a failed command": lambda text: find_refusals(text, _VIEW, Path("/w")),
    "challenge of an MCP server": _challenge,
    "answer with tools as XML": _scan,
    "whole answer with tools as XML": _finish,
    "passage of an edit": lambda text: apply_edit(text, Edit(text[: len(text) // 2], "x"), "f"),
    "new text of an edit": lambda text: apply_edit(text, Edit("\0 none", text[:1] or "x"), "f"),
    "answer with written calls": lambda text: find_calls(text, _SPECS),
    "arguments of a call": repair_arguments,
    "name of a tool": lambda text: offered_name(text, TOOLS),
    "error of a provider": lambda text: failure_of_response(400, {}, text.encode("utf-8", "replace")),
    "error in a stream": lambda text: failure_of_event({"error": {"message": text}}),
    "masked error": lambda text: Redactor()(text),
    "recorded answer": lambda text: ContentMask(Redactor()).raw(text.encode("utf-8", "replace")),
    "text for a terminal": lambda text: (safe(text), exact(text), one_line(text)),
    "text in a question": lambda text: (visible(text), deceptive_characters(text), has_hidden_parts(text)),
    "address in a question": visible_url,
    "host of an address": host_of,
    "prompt": lambda text: (expand_mentions(text, lambda _: None), find_token(text, len(text))),
    "patch": lambda text: diffs_of(f"--- a\n+++ b\n{text}"),
    "plan": entries_of,
    "front matter": front_matter,
    "workspace of a session": lambda text: parse_workspace("x", text.encode("utf-8", "replace")),
    "TOML": parse_toml,
    "SQL": lambda text: list(split_statements(text)),
}


def check_times(data: bytes) -> None:
    """Foreign text: four times the length takes less than nine times as long."""
    before, repeated, end = (*data.decode("utf-8", "replace")[:200].split("|", 2), "", "")[:3]
    for name, read in READERS.items():
        slow = grows(read, before, repeated or before or "a", end)
        assert not slow, f"{name}: the time grows faster than the length"


def grows(read: Callable[[str], Any], before: str, repeated: str, end: str) -> bool:
    """Return whether the time grows faster than the length of a text in which a part is repeated."""

    def took(length: int) -> float:
        text = before + repeated * (length // len(repeated)) + end
        started = time.thread_time()
        with suppress(JumpseatError, ValueError):
            read(text)
        return time.thread_time() - started

    length = next((length for length in LENGTHS if took(length) >= LEAST_S), None)
    if length is None:
        return False
    # Again, because the time of one run may be that of something else.
    long = min(took(length) for _ in range(4))
    if long < LEAST_S or long <= MOST_GROWTH * max(took(length // 4) for _ in range(2)):
        return False
    # Work that has a limit grows up to it, and no further.
    return min(took(4 * length) for _ in range(2)) > MOST_GROWTH * long
