"""Targets for texts: tool calls written as XML, logs, permission rules and configuration."""

from __future__ import annotations

import re
import tempfile
import tomllib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import ValidationError

from jumpseat.agent.blocks import AssistantMessage, TextBlock, ToolUseBlock
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall, read_calls
from jumpseat.agent.model_calls.xml_tools.prompt import as_text
from jumpseat.agent.model_calls.xml_tools.reader import Block
from jumpseat.agent.model_calls.xml_tools.scanner import Scanner
from jumpseat.agent.permissions.rules import host_of, parse_rule, path_matches
from jumpseat.agent.session.autopilot import Objective
from jumpseat.config import Config, load_config
from jumpseat.errors import ConfigError, StoreError
from jumpseat.parsing.toml_text import MAX_KEY_PARTS, parse_toml
from jumpseat.sessions.replay import decode_events
from jumpseat.store.project.front_matter import body, front_matter, names
from jumpseat.store.project.project_rules import read_rules
from jumpseat.store.session.event_log import read_log, repair_log, truncate_log
from tests.agent.permissions.test_patterns import reference
from tests.fuzz.target import Check, Choices, splits
from tests.support.logs import in_parts, parts_of, replay_of

TOOLS: Final[dict[str, dict[str, Any]]] = {
    "editor": {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["add", "update"]},
            "line": {"type": "integer"},
            "code": {"type": "string"},
            "force": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "edits": {
                "type": "array",
                "items": {"type": "object", "properties": {"old": {"type": "string"}, "at": {"type": "integer"}}},
            },
            "any": {},
            "mixed": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        },
    },
    "run": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    "free": {"type": "object", "properties": {}},
}


# --- tool calls as XML --------------------------------------------------------------------------------------------


def check_xml(data: bytes) -> None:
    """XML tools: nothing is raised, the text and calls are the same however split, and no text is invented."""
    text = data.decode("utf-8", "replace")
    shown, calls = _scanned([text])
    for chunks in splits(data):
        decoder = "".join(chunk.decode("latin-1") for chunk in chunks)
        # Split between characters, as the decoders of answers do.
        ends = [0, *(len(text) * end // max(1, len(decoder)) for end in _ends(chunks))]
        pieces = [text[start:end] for start, end in zip(ends, [*ends[1:], len(text)], strict=True)]
        assert _scanned(pieces) == (shown, calls), f"another result for {pieces!r}"
    rest = iter(text)
    assert all(character in rest for character in shown), "the text has characters that the answer lacks"


def _ends(chunks: list[bytes]) -> Iterator[int]:
    end = 0
    for chunk in chunks:
        end += len(chunk)
        yield end


def _scanned(texts: list[str]) -> tuple[str, list[tuple[list[WrittenCall], str | None, bool]]]:
    scanner = Scanner(TOOLS)
    pieces = [piece for text in texts for piece in scanner.feed(text)] + scanner.finish()
    blocks = [piece for piece in pieces if isinstance(piece, Block)]
    calls = [
        ([call for tool in block.tools for call in read_calls(tool)], block.problem, block.cut_off)
        for block in blocks
    ]
    return "".join(piece for piece in pieces if isinstance(piece, str)), calls


def check_xml_round_trip(data: bytes) -> None:
    """A call that is written for a model is read as the same call."""
    choices = Choices(data)
    strings = data[1:].decode("utf-8", "replace")
    parts = strings.split("|")

    def text() -> str:
        return parts[choices.below(len(parts))]

    name = choices.pick(("editor", "run", "free"))
    made: dict[str, Callable[[], Any]] = {
        "action": text,
        "line": lambda: choices.below(250) - 9,
        "code": text,
        "force": lambda: choices.below(2) == 1,
        "tags": lambda: [text() for _ in range(1 + choices.below(3))],
        "edits": lambda: [{"old": text(), "at": choices.below(9)} for _ in range(1 + choices.below(2))],
        "command": text,
    }
    known = [key for key in TOOLS[name]["properties"] if key in made]
    arguments = {key: made[key]() for key in known if choices.below(3)}
    call = ToolUseBlock("1", name, orjson.dumps(arguments).decode(), arguments)
    (message,) = as_text([AssistantMessage([call])], TOOLS, vision=False)
    assert isinstance(message, AssistantMessage)
    written = "".join(block.text for block in message.blocks if isinstance(block, TextBlock))
    shown, blocks = _scanned([written])
    calls = [call for found, problem, _ in blocks for call in found if problem is None]
    assert (shown.strip(), calls) == ("", [WrittenCall(name, arguments)]), written


# --- logs ---------------------------------------------------------------------------------------------------------


@contextmanager
def open_log() -> Generator[Check]:
    """Logs: any file is read; repair keeps the events and all complete lines; the next event is read back."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder, "events.jsonl")

        def check(data: bytes) -> None:
            path.write_bytes(data)
            read = read_log(path)
            assert read.torn_bytes <= len(data)
            assert path.read_bytes() == data, "reading has changed the log"
            assert [*map(parts_of, read.records.stored())] == [*map(in_parts, read.records)]
            for _ in decode_events(read.records.stored()):
                pass
            assert repair_log(path) == read
            repaired = path.read_bytes()
            assert repaired == b"" or repaired.endswith(b"\n")
            assert data.startswith(repaired) or repaired == data + b"\n"
            with path.open("ab") as file:
                file.write(b'{"id":"last","type":"x"}\n')
            assert read_log(path) == replay_of([*read.records, {"id": "last", "type": "x"}])
            records = list(read.records)
            if records and not any(record.get("id") == "last" for record in records):
                cut = truncate_log(path, "last")
                assert cut == (replay_of(records), 1)
                assert path.read_bytes() == repaired

        yield check


# --- rules --------------------------------------------------------------------------------------------------------


def check_rules(data: bytes) -> None:
    """Rules: the typed error or a rule that survives a round trip; hosts are normal; patterns match correctly."""
    first, _, second = data.decode("utf-8", "replace").partition("\n")
    with suppress(ValueError):
        rule = parse_rule(first)
        assert parse_rule(str(rule)) == rule
        with suppress(ValueError):
            read_rules({"allow": [first], "deny": [second]})
    host = host_of(first)
    if host is not None:
        assert host_of(host) in (host, None)
        assert host == host.casefold()
        address = f"[{host}]" if ":" in host else host
        assert host_of(f"https://{address}/a?b#c") in (host, None)
    if len(first) + len(second) < 40 and first.count("*") <= 8 and path_safe(first) and path_safe(second):
        pattern, path = re.sub(r"\*{3,}", "**", f"/x{first}"), f"/x{second}"
        assert path_matches(pattern, path) == reference(pattern, path)
    else:
        path_matches(first, second)
        path_matches(first, second, whole=True, fold=True)


def path_safe(text: str) -> bool:
    """Return whether the text is a part of a normalized path or pattern, which is all that is ever matched."""
    return "//" not in text and not text.endswith("/") and "\0" not in text


# --- configuration ------------------------------------------------------------------------------------------------


@contextmanager
def open_configuration() -> Generator[Check]:
    """Configuration: the typed error or a configuration; TOML means the same as for the standard library."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        home = Path(folder)

        def check(data: bytes) -> None:
            (home / "config.toml").write_bytes(data)
            with suppress(ConfigError):
                config = load_config(home)
                for adapter in config.adapters.values():
                    adapter.as_table()
                    adapter.model_list()
            text = data.decode("utf-8", "replace")
            with suppress(ValueError):
                table = parse_toml(text)
                assert repr(table) == repr(tomllib.loads(text))
                with suppress(ValidationError):
                    Config.model_validate(table)
            if text.count(".") < MAX_KEY_PARTS:
                with suppress(tomllib.TOMLDecodeError, RecursionError):
                    expected = tomllib.loads(text)
                    assert repr(parse_toml(text)) == repr(expected)

        yield check


def check_front_matter(data: bytes) -> None:
    """Front matter: the typed error or a mapping; the body is a part of the text."""
    text = data.decode("utf-8", "replace")
    assert body(text) in text
    with suppress(StoreError):
        for value in front_matter(text).values():
            names(value)


def objective_seeds() -> Iterator[bytes]:
    """Yield files of objectives."""
    objective = Objective.create(1, "ship it")
    yield objective.encode().encode()
    objective.pause("later")
    yield objective.encode().encode()


def check_objective(data: bytes) -> None:
    """The file of an objective: nothing, or an objective that is stored as it is, whatever happens to it."""
    objective = Objective.decode(data.decode("utf-8", "replace"))
    if objective is None:
        return
    assert Objective.decode(objective.encode()) == objective
    objective.pause("later")
    objective.resume()
    objective.work(1, 1)
    objective.complete("done")
    assert Objective.decode(objective.encode()) == objective
    assert Objective.create(objective.next_id, "next").id >= objective.id
