"""Play a client's log: the client's messages in their order, with a model that answers as that of the log.

A message is sent when the server has sent all that the client had seen before, and has handled the message before.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jumpseat_protocol.json_values import as_list, as_object, as_text
from jumpseat_testkit.client_log import Entry
from jumpseat_testkit.counterparts import Counterparts
from jumpseat_testkit.log_streams import Need, Streams
from jumpseat_testkit.model.logged import Gate, LoggedModel, answers_of
from jumpseat_testkit.model.server import ModelServer
from jumpseat_testkit.protocols import Protocol
from jumpseat_testkit.target import Target, running_server

_WAIT_S: Final = 10.0
_FILE: Final = "file://"
_NO_MODEL: Final = "logged/model"


async def play_log(
    entries: Sequence[Entry],
    folder: Path,
    protocol: Protocol,
    command: Sequence[str] | None = None,
    files: Path | None = None,
) -> tuple[list[str], Target]:
    """Play a log against a new server, whose files are in a folder.

    ``files`` is a folder whose content the first working directory of the sessions has at first.

    Returns:
        The failures, for people, and the server that was played against.

    Raises:
        ScriptError: the server cannot be started.
    """
    places = _places(entries, folder)
    if files is not None:
        first = next((Path(place) for place in places.values() if not place.startswith(_FILE)), folder)
        shutil.copytree(files, first, dirs_exist_ok=True)
    counterparts, gate = Counterparts(places), Gate()
    model = LoggedModel(answers_of(entries), gate, counterparts.in_folders_of_run)
    async with ModelServer(model) as endpoint:
        (folder / "home").mkdir(parents=True, exist_ok=True)
        (folder / "home" / "config.toml").write_text(_config(entries, endpoint.url), encoding="utf-8")
        async with running_server(command or protocol.command, folder, protocol=protocol) as server:
            player = _Player(server, Streams(entries, counterparts), counterparts, gate, protocol)
            await player.play(entries)
            if player.streams.deviation is None:
                server.problems += server.checks.find_unfinished()
                await server.close_input()
            has_exited = server.exit_code is not None and player.streams.deviation is not None
    deviation = player.streams.deviation
    failures = [] if deviation is None else [f"line {deviation.line}: {deviation.text}"]
    if has_exited:
        failures.append(f"the server has exited, end of its stderr: {server.stderr.strip()[-500:]}")
    return [*failures, *server.problems], server


class _Player:
    def __init__(
        self, server: Target, streams: Streams, counterparts: Counterparts, gate: Gate, protocol: Protocol
    ) -> None:
        self.streams = streams
        self._server = server
        self._counterparts = counterparts
        self._gate = gate
        self._protocol = protocol
        self._read = 0
        self._pings = 0

    async def play(self, entries: Sequence[Entry]) -> None:
        """Play to the end, or to the first deviation."""
        for entry in entries:
            if entry.from_client:
                self._gate.move(entry.line)
                if not await self._until_seen(self.streams.needs[entry.line]):
                    return
                await self._server.send(self._counterparts.of_run(entry.message))
                if not await self._until_handled():
                    return
        self._take()
        self.streams.may_go_on = True
        self._gate.move(float("inf"))
        if await self._until_seen(self.streams.end):
            await self._until_handled()
            self._take()
            self.streams.finish()

    async def _until_seen(self, needs: Mapping[str, Need]) -> bool:
        """Wait for what the client had seen; return whether the run is like the log so far."""
        await self._server.until(lambda: self._take() or self.streams.has(needs), _WAIT_S)
        if not self.streams.has(needs):
            self.streams.finish()
        return self.streams.deviation is None

    async def _until_handled(self) -> bool:
        """Wait until the server has handled what was sent; return whether the run is like the log so far."""
        self._pings += 1
        ping = _ping(self._pings)
        await self._server.send(
            {"id": ping, "method": self._protocol.ping.method, "params": dict(self._protocol.ping.params)}
        )
        messages = self._server.traffic

        def answered() -> bool:
            return any(
                message.direction == "<-" and as_object(message.message).get("id") == ping
                for message in messages[self._read :]
            )

        if not await self._server.until(answered, _WAIT_S):
            self._take()
            self.streams.finish()
        return self.streams.deviation is None

    def _take(self) -> bool:
        """Compare the new messages of the server; return whether the run has left the log."""
        new, self._read = self._server.traffic[self._read :], len(self._server.traffic)
        for message in new:
            value = as_object(message.message)
            if message.direction == "<-" and not str(value.get("id")).startswith(_PING):
                self.streams.receive({name: member for name, member in value.items() if name != "jsonrpc"})
        return self.streams.deviation is not None


_PING: Final = "handled-"


def _ping(number: int) -> str:
    return f"{_PING}{number}"


def _places(entries: Iterable[Entry], folder: Path) -> dict[str, str]:
    """Return a folder for each working directory that the client has given, as paths and as URIs; makes them."""
    found: dict[str, str] = {}
    for entry in entries:
        if entry.from_client and entry.message.get("method") == "createSession":
            params = as_object(entry.message.get("params"))
            for uri in map(as_text, as_list(params.get("workingDirectories"))):
                if uri.startswith(_FILE) and uri not in found:
                    place = folder / f"project-{len(found) // 2 + 1}"
                    place.mkdir(parents=True, exist_ok=True)
                    found[uri], found[uri.removeprefix(_FILE)] = place.as_uri(), str(place)
    return found


def _config(entries: Iterable[Entry], url: str) -> str:
    """Return the configuration of a server that has the models of the log."""
    names = list(dict.fromkeys(_models(entries))) or [_NO_MODEL]
    adapters: dict[str, list[str]] = {}
    for name in names:
        adapter, _, model = name.rpartition("/")
        adapters.setdefault(adapter or "logged", []).append(model)
    lines = [f"default_model = {json.dumps(names[0])}"]
    for adapter, models in adapters.items():
        lines += [
            f"[adapters.{json.dumps(adapter)}]",
            'type = "openai"',
            f"base_url = {json.dumps(url)}",
            f"models = {json.dumps(models)}",
        ]
    return "".join(f"{line}\n" for line in lines)


def _models(value: Any) -> Iterator[str]:
    """Return the ids of the models in the agents of the log."""
    for entry in value:
        message = as_object(entry.message)
        roots = [as_object(as_object(message.get("params")).get("action"))]
        snapshots = as_list(as_object(message.get("result")).get("snapshots"))
        roots += [as_object(as_object(snapshot).get("state")) for snapshot in snapshots]
        for root in roots:
            for agent in as_list(root.get("agents")):
                for model in as_list(as_object(agent).get("models")):
                    yield as_text(as_object(model).get("id"))
