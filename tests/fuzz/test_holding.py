"""Messages of a mebibyte do not hold up other clients: a few of those that ``make fuzz ARGS='--holding'`` tries."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from tests.fuzz.doors import AHP_REQUESTS, cases_of_doors, measure_doors, measure_readings, readings
from tests.fuzz.holding import SESSION, Case, Held, Meter, call, cases_of_methods, cases_of_tools, measure
from tests.fuzz.hostile import MIB, Hostile, Maker
from tests.fuzz.methods import METHODS
from tests.fuzz.target import silenced
from tests.support.cases import all_cases

METHODS_TRIED: Final = {
    "session.workspaces.renamePath": ("source folders", "destination folders"),
    "session.permissions.folderTrust.addTrusted": ("path folders",),
    "session.permissions.modifyRules": ("remove [most]",),
    "models.list": ("gitHubToken folders",),
    "sessions.enrichMetadata": ("sessions [most]",),
    "mcp.config.add": ("config {most}",),
    "ping": ("(1999 unknown members)", "(unknown) nested"),
    "account.login": ("host groups",),
}
TOOLS_TRIED: Final = {
    "view": ("path folders", "path parents"),
    "create": ("path folders",),
    "edit": ("edits [many]",),
    "glob": ("pattern folders",),
}
DOORS_TRIED: Final = ("acp:session/new mcpServers [0] command letters", "ahp:completions text letters")
READINGS_TRIED: Final = ("mcp:initialize id {many}", "lsp:error error message letters", "skill body tags")


def chosen() -> list[Case]:
    """Return the cases of the tables, which must exist."""
    found = {case.title: case for case in (*cases_of_methods(METHODS_TRIED.__contains__),)}
    tools = {f"tool:{name}" for name in TOOLS_TRIED}
    found |= {case.title: case for case in cases_of_tools(tools.__contains__)}
    titles = [f"{name} {part}" for name, parts in METHODS_TRIED.items() for part in parts]
    titles += [f"tool:{name} {part}" for name, parts in TOOLS_TRIED.items() for part in parts]
    return [found[title] for title in titles]


@pytest.mark.thorough
def test_no_message_of_a_mebibyte_holds_up_others(tmp_path: Path) -> None:
    long = "a" * MIB
    cases = [
        *chosen(),
        Case("session.resume availableTools", "session.resume", {"sessionId": SESSION, "availableTools": [long]}),
        call("tool:bash with an argument of a long name", "bash", '{"command": "true", "%s": 1}' % ("_" * MIB)),
    ]
    measured: list[str] = []
    with silenced(), all_cases() as each:

        def report(case: Case, held: Held) -> None:
            measured.append(case.title)
            with each(case.title):
                assert not held.too_long, (
                    f"{held.seconds:.3f} s, {held.seconds / held.unit:.1f} units in {held.place}"
                )

        meter = Meter()
        options = {"loop_factory": lambda: asyncio.SelectorEventLoop(meter)}
        anyio.run(measure, cases, meter, tmp_path, report, backend_options=options)
    assert measured == [case.title for case in cases]


@pytest.mark.thorough
def test_no_mebibyte_through_another_door_holds_up_others(tmp_path: Path) -> None:
    def is_tried(name: str) -> bool:
        return any(title.partition(" ")[0] == name for title in (*DOORS_TRIED, *READINGS_TRIED))

    cases = [case for case in cases_of_doors(is_tried) if case.title in DOORS_TRIED]
    read = [case for case in readings(is_tried) if case.title in READINGS_TRIED]
    measured: list[str] = []
    with silenced(), all_cases() as each:

        def report(title: str, held: Held) -> None:
            measured.append(title)
            with each(title):
                assert not held.too_long, (
                    f"{held.seconds:.3f} s, {held.seconds / held.unit:.1f} units in {held.place}"
                )

        meter = Meter()
        options = {"loop_factory": lambda: asyncio.SelectorEventLoop(meter)}
        anyio.run(measure_doors, cases, meter, tmp_path, report, backend_options=options)
        measure_readings(read, report)
    assert set(measured) == {*DOORS_TRIED, *READINGS_TRIED}


def test_each_place_in_an_example_is_large_in_turn() -> None:
    made = dict(Maker({}, size=100).enlarged({"a": [{"b": "c"}], "d": 1}))
    assert {"{many}", "a [many]", "a [0] b letters", "d nested"} <= made.keys()
    assert made["a [0] b letters"] == {"a": [{"b": "a" * 100}], "d": 1}
    methods = {case.method for case in cases_of_doors(size=100)}
    assert {*AHP_REQUESTS, "dispatchAction", "session/prompt", "session/load"} <= methods


@pytest.mark.thorough
def test_values_are_made_for_each_place_of_a_type() -> None:
    made = [hostile.title for hostile in Maker({}, size=100).hostile(dict[str, list[str]])]
    assert {"{many}", "{a} [many]", "{a} [0] letters", "{key} letters"} <= set(made)
    assert all(isinstance(value, dict) for value in map(_value, Maker({}, size=100).hostile(dict[str, Any])))
    places = {case.title.split()[1] for case in cases_of_methods({"session.send"}.__contains__, size=100)}
    assert {"prompt", "attachments", "responseFormat", "(unknown)"} <= places
    assert len({case.method for case in cases_of_methods(size=100)}) > len(METHODS) - 40


def _value(hostile: Hostile) -> Any:
    return hostile.value
