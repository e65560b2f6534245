"""Fixtures for tests of agents and clients. pytest finds them where ``jumpseat-testkit`` is installed.

==================== ======================================================================================
fixture              purpose
==================== ======================================================================================
``play_script``      plays a script (a path, or an object) and fails the test if the script fails
``agent_server``     starts an agent in ``tmp_path``: ``async with agent_server([...], protocol="acp-1") as agent``
``scripted_model``   serves a scripted model over HTTP: ``async with scripted_model(turns=[...]) as model``
``assert_events``    matches events against patterns, in order or in any order
``faulty_server``    the command of a server with a fault: ``faulty_server("two_answers", "acp-1")``
``faulty_client``    plays a script with a fault of the client: ``faulty_client("half_message", script)``
``jumpseat_server``  ``agent_server`` for jumpseat, if it is installed
==================== ======================================================================================

Files named ``*.script.yaml``, ``*.script.json`` and ``*.script.jsonl`` are collected as tests. ``docs/testing.md``
is the guide.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, TypeAlias, cast

import anyio
import pytest

from jumpseat_protocol.json_values import as_object
from jumpseat_testkit.faults.agents import AgentFinding, client_kinds, try_agent
from jumpseat_testkit.faults.peer import find_fault
from jumpseat_testkit.faults.report import peer_command
from jumpseat_testkit.model.script import Script as ModelScript
from jumpseat_testkit.model.server import ModelServer
from jumpseat_testkit.patterns import ScriptError, differences, preview
from jumpseat_testkit.play import OUR_SERVER, Outcome, play
from jumpseat_testkit.play_file import play_file
from jumpseat_testkit.play_setup import PlayOptions
from jumpseat_testkit.protocols import PROTOCOLS, Framing, ProtocolName
from jumpseat_testkit.reports import list_differences
from jumpseat_testkit.steps import Script, load_script, parse_script
from jumpseat_testkit.target import Target, running_server

__all__ = ["ModelServer", "Outcome", "Target"]

_SUFFIXES = (".script.yaml", ".script.json", ".script.jsonl")

PlayScript: TypeAlias = Callable[..., Outcome]
StartServer: TypeAlias = Callable[..., AbstractAsyncContextManager[Target]]
ServeModel: TypeAlias = Callable[..., ModelServer]
AssertEvents: TypeAlias = Callable[..., None]
FaultyServer: TypeAlias = Callable[..., list[str]]
FaultyClient: TypeAlias = Callable[..., AgentFinding]


@pytest.fixture
def play_script() -> PlayScript:
    """Play a script with ``play_script(file_or_object, server=None)``, which returns its outcome if it passes."""

    def run(script: str | Path | Mapping[str, Any], server: Sequence[str] | None = None) -> Outcome:
        name = _name(script)
        with _failing():
            if isinstance(script, Mapping):
                outcome = anyio.run(play, parse_script(script, name), name, PlayOptions(server))
            else:
                outcome = anyio.run(play_file, Path(script), PlayOptions(server))
        if not outcome.ok:
            pytest.fail("\n".join([f"script {name!r} failed", *outcome.failures]), pytrace=False)
        return outcome

    return run


@pytest.fixture
def agent_server(tmp_path: Path) -> StartServer:
    """Run an agent with ``agent_server(command, protocol="copilot", ...)``, an async context manager.

    ``command`` is ``None`` for an agent that already listens at ``url``. ``env`` adds variables to the few that an
    agent inherits; its working and home folder is ``tmp_path``.
    """

    def start(
        command: Sequence[str] | None,
        protocol: ProtocolName = "copilot",
        env: Mapping[str, str | None] | None = None,
        url: str | None = None,
        framing: Framing | None = None,
    ) -> AbstractAsyncContextManager[Target]:
        return running_server(command, tmp_path, env, protocol=PROTOCOLS[protocol], framing=framing, url=url)

    return start


@pytest.fixture
def faulty_server() -> FaultyServer:
    """Return the command of a server with a fault, with ``faulty_server(kind, protocol)``; ``none`` is no fault."""

    def command(kind: str, protocol: ProtocolName = "copilot") -> list[str]:
        find_fault(kind, protocol)
        return peer_command(kind, protocol)

    return command


@pytest.fixture
def faulty_client() -> FaultyClient:
    """Play a script with a fault of the client, with ``faulty_client(kind, script, server=None)``.

    The test fails if the agent hangs, crashes or breaks a rule, and if it ends the connection without need.
    """

    def run(kind: str, script: str | Path | Mapping[str, Any], server: Sequence[str] | None = None) -> AgentFinding:
        name = _name(script)
        with _failing():
            parsed = parse_script(script, name) if isinstance(script, Mapping) else load_script(Path(script))
            finding = anyio.run(_try_once, parsed, name, client_kinds(kind, parsed.protocol)[0], server)
        if not finding.ok:
            pytest.fail(f"client with the fault {kind!r}: {finding.how}: {finding.note}", pytrace=False)
        return finding

    return run


async def _try_once(script: Script, name: str, kind: str, server: Sequence[str] | None) -> AgentFinding:
    return await anext(aiter(try_agent(script, name, [kind], PlayOptions(server))))


def _name(script: str | Path | Mapping[str, Any]) -> str:
    return "script" if isinstance(script, Mapping) else Path(script).stem


@contextmanager
def _failing() -> Generator[None]:
    """Fail the test with the text of an invalid script or an impossible command."""
    try:
        yield
    except ScriptError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def jumpseat_server(tmp_path: Path) -> StartServer:
    """Run a server with ``jumpseat_server(command=..., env=None, config=None)``, an async context manager."""

    def start(
        command: Sequence[str] = OUR_SERVER,
        env: Mapping[str, str | None] | None = None,
        config: str | None = None,
    ) -> AbstractAsyncContextManager[Target]:
        if config is not None:
            (tmp_path / "home").mkdir(exist_ok=True)
            (tmp_path / "home" / "config.toml").write_text(config, encoding="utf-8")
        return running_server(command, tmp_path, env)

    return start


@pytest.fixture
def scripted_model() -> ServeModel:
    """Serve a model with ``scripted_model(turns=[...])`` or ``prompts=[...]``, an async context manager."""

    def serve(**script: Any) -> ModelServer:
        return ModelServer(ModelScript.model_validate(script))

    return serve


@pytest.fixture
def assert_events() -> AssertEvents:
    """Match events with ``assert_events(events, *patterns, in_order=True, only=False)``.

    ``events`` is an iterable of events, or an agent of ``agent_server`` for the events received so far: those of
    the Copilot protocol, updates of ACP, actions of AHP. A string as a pattern is the type of an event.
    """

    def check(events: Iterable[Any] | Target, *patterns: Any, in_order: bool = True, only: bool = False) -> None:
        kind = events.feed.kind if isinstance(events, Target) else "type"
        left = list(_events(events))
        count = len(left)
        captures: dict[str, Any] = {}
        for pattern in patterns:
            expected = {kind: pattern} if isinstance(pattern, str) else pattern
            place = next((n for n, event in enumerate(left) if not differences(expected, event, captures)), None)
            assert place is not None, _missing(expected, left, kind, captures)
            left = left[place + 1 :] if in_order else left[:place] + left[place + 1 :]
        assert not only or count == len(patterns), f"expected {len(patterns)} events, got {count}"

    return check


def _missing(expected: Any, events: Sequence[Any], kind: str, captures: Mapping[str, Any]) -> str:
    """Describe a missing event, with the differences of the closest one of its type."""
    text = f"no event like {preview(expected)} among {[as_object(event).get(kind) for event in events]}"
    found = [differences(expected, event, dict(captures)) for event in events]
    near = [some for some in found if not any(one.path == kind for one in some)]
    return text + (f"; the closest one differs:\n{list_differences(min(near, key=len))}" if near else "")


def _events(source: Iterable[Any] | Target) -> Iterator[Any]:
    if not isinstance(source, Target):
        yield from source
        return
    for message in source.incoming():
        if (event := source.feed.event_of(message)) is not None:
            yield event


def pytest_configure() -> None:
    """Refuse two installations of these modules, which would replace each other's files."""
    if all(_is_installed(name) for name in ("jumpseat", "jumpseat-testkit")):
        raise pytest.UsageError(
            "jumpseat brings the testkit with it: uninstall jumpseat-testkit, and install the other one again,"
            " or use an environment for each"
        )


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect script files as tests."""
    if not file_path.name.endswith(_SUFFIXES):
        return None
    return cast("Any", ScriptFile).from_parent(parent, path=file_path)


class ScriptFile(pytest.File):
    """A script file, collected as one test."""

    def collect(self) -> Iterator[ScriptItem]:
        yield cast("Any", ScriptItem).from_parent(self, name=self.path.name.partition(".")[0])


class ScriptItem(pytest.Item):
    """A script as a test."""

    def runtest(self) -> None:
        outcome = anyio.run(play_file, self.path)
        if not outcome.ok:
            raise ScriptFailedError("\n".join(outcome.failures))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, ScriptFailedError | ScriptError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"script {self.name}"


class ScriptFailedError(Exception):
    """A script failed."""
