"""Fixtures for testing extensions and clients: ``pytest -p jumpseat.testing``, or in a ``conftest.py``::

    pytest_plugins = ["jumpseat.testing"]

==================== ======================================================================================
fixture              what it is
==================== ======================================================================================
``play_script``      plays a script (a file, or an object at hand) and fails the test with what went wrong
``jumpseat_server``  starts a server whose files are in the test's folder: ``async with jumpseat_server() as s``
``scripted_model``   serves a scripted model over HTTP: ``async with scripted_model(turns=[...]) as model``
``assert_events``    compares events with patterns, in order, or in any order
==================== ======================================================================================

Files named ``*.script.yaml``, ``*.script.json`` and ``*.script.jsonl`` are tests of their own. The patterns are
those of ``docs/script.md``.
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
from jumpseat.script.files import play_file
from jumpseat.script.model_server import ModelServer
from jumpseat.script.patterns import ScriptError, differences, shown
from jumpseat.script.play import OUR_SERVER, Outcome, Playing, play
from jumpseat.script.steps import parse_script
from jumpseat.script.target import Target, running

__all__ = ["ModelServer", "Outcome", "Target"]

_SUFFIXES = (".script.yaml", ".script.json", ".script.jsonl")

PlayScript: TypeAlias = Callable[..., Outcome]
StartServer: TypeAlias = Callable[..., AbstractAsyncContextManager[Target]]
ServeModel: TypeAlias = Callable[..., ModelServer]
AssertEvents: TypeAlias = Callable[..., None]


@pytest.fixture
def play_script() -> PlayScript:
    """``play_script(file_or_object, server=None)``: the outcome, or a failed test."""

    def run(script: str | Path | Mapping[str, Any], server: Sequence[str] | None = None) -> Outcome:
        name = "script" if isinstance(script, Mapping) else Path(script).stem
        try:
            if isinstance(script, Mapping):
                outcome = anyio.run(play, parse_script(script, name), name, Playing(server))
            else:
                outcome = anyio.run(play_file, Path(script), Playing(server))
        except ScriptError as error:
            pytest.fail(str(error), pytrace=False)
        if not outcome.ok:
            pytest.fail("\n".join([f"{name} did not go as written", *outcome.failures]), pytrace=False)
        return outcome

    return run


@pytest.fixture
def jumpseat_server(tmp_path: Path) -> StartServer:
    """``jumpseat_server(command=None, env=None, config=None)``: a context manager around a running server."""

    def start(
        command: Sequence[str] = OUR_SERVER,
        env: Mapping[str, str | None] | None = None,
        config: str | None = None,
    ) -> AbstractAsyncContextManager[Target]:
        if config is not None:
            (tmp_path / "home").mkdir(exist_ok=True)
            (tmp_path / "home" / "config.toml").write_text(config, encoding="utf-8")
        return running(command, tmp_path, env)

    return start


@pytest.fixture
def scripted_model() -> ServeModel:
    """``scripted_model(turns=[...])``, or ``prompts=[...]``: a context manager around a model at ``url``."""

    def serve(**script: Any) -> ModelServer:
        return ModelServer(ModelScript.model_validate(script))

    return serve


@pytest.fixture
def assert_events() -> AssertEvents:
    """``assert_events(events, *patterns, in_order=True, only=False)``; a text is the type of an event.

    ``events`` are those of a list, or the ones that a server of ``jumpseat_server`` has sent so far.
    """

    def check(events: Iterable[Any] | Target, *patterns: Any, in_order: bool = True, only: bool = False) -> None:
        left = list(_events(events))
        count = len(left)
        known: dict[str, Any] = {}
        for pattern in patterns:
            wanted = {"type": pattern} if isinstance(pattern, str) else pattern
            place = next((n for n, one in enumerate(left) if not differences(wanted, one, known)), None)
            assert place is not None, f"no event like {shown(wanted)} among {[one.get('type') for one in left]}"
            left = left[place + 1 :] if in_order else left[:place] + left[place + 1 :]
        assert not only or count == len(patterns), f"{count} events, {len(patterns)} expected"

    return check


def _events(source: Iterable[Any] | Target) -> Iterator[Any]:
    if not isinstance(source, Target):
        yield from source
        return
    for message in map(as_object, source.incoming()):
        if message.get("method") == "session.event":
            yield message["params"]["event"]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take script files for tests."""
    if not file_path.name.endswith(_SUFFIXES):
        return None
    return cast("Any", ScriptFile).from_parent(parent, path=file_path)


class ScriptFile(pytest.File):
    """A script file, which is one test."""

    def collect(self) -> Iterator[ScriptItem]:
        yield cast("Any", ScriptItem).from_parent(self, name=self.path.name.partition(".")[0])


class ScriptItem(pytest.Item):
    """The test that a script is."""

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
    """A script did not go as written."""
