"""Fixtures for testing extensions and clients: ``pytest -p jumpseat.testing``, or in a ``conftest.py``::

    pytest_plugins = ["jumpseat.testing"]

==================== ======================================================================================
fixture              purpose
==================== ======================================================================================
``play_script``      plays a script (a path, or an object) and fails the test if the script fails
``jumpseat_server``  starts a server whose files are in ``tmp_path``: ``async with jumpseat_server() as server``
``scripted_model``   serves a scripted model over HTTP: ``async with scripted_model(turns=[...]) as model``
``assert_events``    matches events against patterns, in order or in any order
==================== ======================================================================================

Files named ``*.script.yaml``, ``*.script.json`` and ``*.script.jsonl`` are collected as tests. ``docs/script.md``
documents the patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeAlias, cast

import anyio
import pytest

from jumpseat.adapters.scripted import Script as ModelScript
from jumpseat.adapters.wire import as_object
from jumpseat.script.model_server import ModelServer
from jumpseat.script.patterns import ScriptError, differences, preview
from jumpseat.script.play import OUR_SERVER, Outcome, PlayOptions, play
from jumpseat.script.play_file import play_file
from jumpseat.script.steps import parse_script
from jumpseat.script.target import Target, running_server

__all__ = ["ModelServer", "Outcome", "Target"]

_SUFFIXES = (".script.yaml", ".script.json", ".script.jsonl")

PlayScript: TypeAlias = Callable[..., Outcome]
StartServer: TypeAlias = Callable[..., AbstractAsyncContextManager[Target]]
ServeModel: TypeAlias = Callable[..., ModelServer]
AssertEvents: TypeAlias = Callable[..., None]


@pytest.fixture
def play_script() -> PlayScript:
    """Play a script with ``play_script(file_or_object, server=None)``, which returns its outcome if it passes."""

    def run(script: str | Path | Mapping[str, Any], server: Sequence[str] | None = None) -> Outcome:
        name = "script" if isinstance(script, Mapping) else Path(script).stem
        try:
            if isinstance(script, Mapping):
                outcome = anyio.run(play, parse_script(script, name), name, PlayOptions(server))
            else:
                outcome = anyio.run(play_file, Path(script), PlayOptions(server))
        except ScriptError as error:
            pytest.fail(str(error), pytrace=False)
        if not outcome.ok:
            pytest.fail("\n".join([f"script {name!r} failed", *outcome.failures]), pytrace=False)
        return outcome

    return run


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

    ``events`` is an iterable of events, or a server of ``jumpseat_server`` for the events received so far. A string
    as a pattern is the type of an event.
    """

    def check(events: Iterable[Any] | Target, *patterns: Any, in_order: bool = True, only: bool = False) -> None:
        left = list(_events(events))
        count = len(left)
        captures: dict[str, Any] = {}
        for pattern in patterns:
            expected = {"type": pattern} if isinstance(pattern, str) else pattern
            place = next((n for n, event in enumerate(left) if not differences(expected, event, captures)), None)
            assert place is not None, (
                f"no event like {preview(expected)} among {[event.get('type') for event in left]}"
            )
            left = left[place + 1 :] if in_order else left[:place] + left[place + 1 :]
        assert not only or count == len(patterns), f"expected {len(patterns)} events, got {count}"

    return check


def _events(source: Iterable[Any] | Target) -> Iterator[Any]:
    if not isinstance(source, Target):
        yield from source
        return
    for message in map(as_object, source.incoming()):
        if message.get("method") == "session.event":
            yield message["params"]["event"]


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
