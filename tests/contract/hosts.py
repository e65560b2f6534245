"""Host applications for the tests: a driver program with a real SDK inside, run against our server.

``Host.run`` starts ``drivers/driver.py`` or ``drivers/driver.mjs`` (``old_driver`` for SDKs before 1.0) with a plan
and returns its observations. For the ``uri`` transport it also starts a server for every run, as an operator would.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, Literal, TypeAlias

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from jumpseat.store.user.connection_tokens import ConnectionTokenFile
from tests.support.fake_openai import MODEL, FakeOpenAI, JsonObject
from tests.support.forked import ForkedProcess, Program, executable, fork
from tests.support.limits import WAIT_S
from tests.support.toolchains import Sdk

TransportKind: TypeAlias = Literal["stdio", "tcp", "uri"]
Scenario: TypeAlias = Literal["converse", "abort", "choose", "inspect", "identify", "share", "call_back"]

DRIVERS = Path(__file__).parent / "drivers"
HOSTS_KEY = "a-key-of-the-host"
USERS_KEY = "a-key-of-the-user"
USERS_KEY_VARIABLE = "FAKE_MODEL_KEY"
DRIVER_LIMIT_S = 120


@dataclass(frozen=True)
class Observations:
    """The observations of a driver. Events are in wire form for every language."""

    sdk: str
    session_id: str
    answers: list[str | None]
    events: list[JsonObject]
    history: list[JsonObject]
    tool_arguments: list[JsonObject]
    complaints: list[str]
    stderr: list[str]
    asked: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    report: JsonObject = field(default_factory=dict[str, Any])

    def types(self) -> list[str]:
        """Return the types of the received events, in order."""
        return [event["type"] for event in self.events]

    def data(self, event_type: str) -> list[JsonObject]:
        """Return the data of the events of one type, in order."""
        return [event["data"] for event in self.events if event["type"] == event_type]

    def questions(self, name: str) -> list[Any]:
        """Return the inputs of the host's handlers of one kind, in order."""
        return [given for request, given in self.asked if request == name]


@dataclass(frozen=True)
class Host:
    """An application on one version of the SDK that reaches our server in one way."""

    sdk: Sdk
    sdk_folder: Path
    transport: TransportKind
    home: Path
    workspace: Path
    driver: Literal["driver", "old_driver"] = "driver"
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables in addition to those that every host needs."""

    async def run(
        self,
        scenario: Scenario,
        *prompts: str,
        model: FakeOpenAI | None = None,
        model_name: str | None = MODEL,
        session_id: str | None = None,
        streaming: bool = False,
        rejection: Mapping[str, str] | None = None,
        system_message: str | None = None,
        excluded_tools: list[str] | None = None,
        logins: list[JsonObject] | None = None,
        attachments: list[JsonObject] | None = None,
        callbacks: JsonObject | None = None,
        decides: bool = True,
    ) -> Observations:
        """Run one scenario to its end and return the observations.

        Without ``model`` the session names no provider, without ``model_name`` no model.
        With ``rejection`` the host rejects every permission request, with those fields in the decision;
        otherwise it approves them all. With ``callbacks`` it has handlers for ``hooks`` (by their type), for a
        ``question`` to its user, for a ``form``, and one that rewrites the ``tone`` section; the values are their
        answers, ``"throw"`` for an exception. ``attachments`` go with each prompt of old hosts, and with
        those of ``choose``; only ``identify`` and ``share`` look at ``logins``, only old hosts at
        ``system_message`` and ``excluded_tools``, and at ``decides``: without it they have no permission handler.
        """
        provider = model and {"type": "openai", "base_url": model.base_url, "api_key": HOSTS_KEY}
        async with self._reachable_server() as transport:
            plan = {
                "scenario": scenario,
                "prompts": prompts,
                "executable": self._executable(),
                "transport": transport,
                "home": str(self.home),
                "working_directory": str(self.workspace),
                "model": model_name,
                "provider": provider,
                "session_id": session_id,
                "streaming": streaming,
                "rejection": rejection,
                "system_message": system_message,
                "excluded_tools": excluded_tools,
                "logins": logins,
                "attachments": attachments,
                "callbacks": callbacks,
                "decides": decides,
            }
            observations = await self._drive(plan)
        assert "failure" not in observations, f"{observations.pop('failure')}\n{json.dumps(observations, indent=1)}"
        return Observations(**observations)

    async def _drive(self, plan: JsonObject) -> JsonObject:
        errors = self.home.with_name("driver.stderr")
        async with self._driver(plan, errors) as driver:
            assert driver.stdout is not None
            with anyio.fail_after(DRIVER_LIMIT_S):
                printed = b"".join([chunk async for chunk in driver.stdout])
                await driver.wait()
            assert driver.returncode == 0, errors.read_text()
            assert not is_group_alive(driver.pid), "the server outlived its host"
        return json.loads(printed)

    @contextlib.asynccontextmanager
    async def _driver(self, plan: JsonObject, errors: Path) -> AsyncGenerator[Process | ForkedProcess]:
        """Run the driver. Python drivers are forked: importing an SDK takes longer than most scenarios."""
        if self.sdk.registry == "npm":
            package = self.sdk_folder / "node_modules" / "@github" / "copilot-sdk"
            command = ["node", str(DRIVERS / f"{self.driver}.mjs"), json.dumps(plan), str(package)]
            async with spawned(command, self.workspace, self._environment(), errors) as process:
                yield process
            return
        driver = Program(str(DRIVERS / f"{self.driver}.py"), str(self.sdk_folder / "bin" / "python"))
        argv = [self.driver, json.dumps(plan)]
        with errors.open("wb") as stderr:
            process = await fork(
                driver, argv, self._environment(), self.workspace, stderr=stderr.fileno(), new_session=True
            )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.aclose()

    def _executable(self) -> str | None:
        """Return the executable for the SDK; ``None`` for 0.1.17, which looks for ``copilot`` on PATH."""
        return None if self.sdk.version == "0.1.17" else executable()

    def _environment(self) -> dict[str, str]:
        """Return the environment of the host, without settings and keys from outside the test."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), USERS_KEY_VARIABLE: USERS_KEY}
        environment |= self.environ
        if self.driver == "driver":
            return environment
        # These SDKs have no option for the server's home.
        commands = self.home.with_name("bin")
        commands.mkdir(exist_ok=True)
        if not (commands / "copilot").exists():
            (commands / "copilot").symlink_to(executable(name="copilot"))
        return environment | {
            "PATH": f"{commands}{os.pathsep}{environment['PATH']}",
            "COPILOT_HOME": str(self.home),
        }

    @contextlib.asynccontextmanager
    async def _reachable_server(self) -> AsyncGenerator[JsonObject]:
        """Yield the connection options of a server; start it, with a named token, if the SDK does not."""
        if self.transport != "uri":
            yield {"kind": self.transport}
            return
        # The sessions of earlier runs belong to the name.
        tokens = ConnectionTokenFile(self.home)
        tokens.revoke("host")
        token = tokens.add("host", all_sessions=False)
        environment = self._environment() | {"COPILOT_HOME": str(self.home)}
        errors = self.home.with_name("server.stderr")
        # As the SDKs do: the server warns where a busy machine holds it up.
        command = [executable(), "--headless", "--port", "0", "--log-level", "error"]
        async with spawned(command, self.workspace, environment, errors) as server:
            with anyio.fail_after(WAIT_S):
                port = await announced_port(server)
            yield {"kind": "uri", "url": f"localhost:{port}", "token": token}
            server.terminate()
            with anyio.fail_after(WAIT_S):
                await server.wait()
            assert (server.returncode, errors.read_text()) == (0, "")


@contextlib.asynccontextmanager
async def spawned(
    command: list[str], folder: Path, environment: dict[str, str], errors: Path
) -> AsyncGenerator[Process]:
    """Run a program in its own process group, which is ended with the block."""
    with errors.open("wb") as stderr:
        process = await anyio.open_process(
            command, stdin=DEVNULL, stderr=stderr, cwd=folder, env=environment, start_new_session=True
        )
    async with process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def is_group_alive(group: int) -> bool:
    """Return whether a process group still has a member."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


async def announced_port(server: Process) -> int:
    """Read the port from the line that the server prints when it listens."""
    assert server.stdout is not None
    line = await BufferedByteReceiveStream(server.stdout).receive_until(b"\n", 1000)
    _, _, port = line.decode().partition("listening on port ")
    return int(port)


def configure(host: Host, base_url: str) -> None:
    """Write a configuration file with one provider into the server's home."""
    (host.home / "config.toml").write_text(
        f"""
        [adapters.local]
        type = "openai"
        base_url = "{base_url}"
        api_key_env = "{USERS_KEY_VARIABLE}"
        models = ["{MODEL}"]
        """
    )


def in_order(types: Iterable[str], *expected: str) -> bool:
    """Return whether ``expected`` is a subsequence of ``types``."""
    remaining = iter(types)
    return all(item in remaining for item in expected)
