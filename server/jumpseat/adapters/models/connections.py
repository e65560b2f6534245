"""The connections of the process to models: the HTTP transport, a client's tunnel, recordings, and scripted models.

Nothing is opened or imported before a model needs it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
from msgspec.structs import replace
from pydantic import ValidationError

from jumpseat.adapters.providers import load_adapter
from jumpseat.errors import InvalidRequestError
from jumpseat.parsing.validation import validation_problems
from jumpseat_protocol.version import __version__

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from jumpseat.adapters.adapter import Endpoint
    from jumpseat.adapters.declared.merged import MergedAdapter
    from jumpseat.adapters.scripted import ScriptedModel
    from jumpseat.adapters.transport.http import HttpTransport, TransportMiddleware
    from jumpseat.adapters.transport.tunnel import Tunnel
    from jumpseat.agent.client import Client
    from jumpseat.agent.interfaces import ResolvedModel
    from jumpseat.agent.model import Model
    from jumpseat.declared.env import EnvResolver
    from jumpseat.options import Options
    from jumpseat.system.child_environment import ChildEnvironment

LOAD_AFTER_S: Final = 0.05
"""The time in which a client may send a prompt that need not share the processor with an import."""


class Connections:
    """Creates models that can be called. ``tunnel`` is set while a client makes all requests."""

    def __init__(
        self,
        options: Options,
        mask: Callable[[str], str],
        child_environment: ChildEnvironment,
        whole_environ: Mapping[str, str] | None = None,
    ) -> None:
        """``mask`` removes secrets from recorded strings, ``child_environment`` is that of commands.

        ``whole_environ`` has the values of declarations, by default the variables of the process.

        Raises:
            ConfigError: the folder for recordings is not writable, or contains none to replay.
        """
        self.tunnel: Tunnel | None = None
        self._whole_environ = options.whole_environ if whole_environ is None else whole_environ
        self.child_environment = child_environment
        self._make_middleware = _middleware(options, mask)
        self._transport: HttpTransport | None = None
        self._scripts: dict[str, ScriptedModel] = {}
        self._loads_soon = False

    def load_soon(self, tasks: TaskGroup) -> None:
        """Import what a first turn needs in a thread, once, for a session that will have one.

        A first turn takes half of the processor time then. One that follows at once imports the modules itself.
        """
        if not self._loads_soon and self.tunnel is None:
            self._loads_soon = True
            tasks.start_soon(_load_turns)

    def transport(self) -> HttpTransport:
        """Return the transport of all requests, created at first use."""
        from jumpseat.adapters.transport.http import HttpTransport

        if self._transport is None:
            self._transport = HttpTransport(middleware=self._make_middleware() if self._make_middleware else None)
        return self._transport

    def built_in(
        self,
        adapter_name: str,
        endpoint: Endpoint,
        token: Callable[[], Awaitable[str]] | None = None,
        *,
        key: Callable[[], Awaitable[str]] | None = None,
        socket: bool = False,
        signs_as: str | None = None,
    ) -> Model:
        """Create a model of a built-in adapter.

        ``signs_as`` names the provider in signed blocks, if it differs from the adapter's name.
        """
        from jumpseat.adapters.models.wire_caller import WireCaller
        from jumpseat.adapters.transport.http import HttpModel

        wire = load_adapter(adapter_name)
        wire = wire.signing_as(signs_as) if signs_as not in (None, wire.signature) else wire
        return HttpModel(WireCaller(wire, endpoint, token, socket, key), self.transport())

    def declared(
        self,
        known: MergedAdapter,
        given: Mapping[str, Any],
        endpoint: Endpoint,
        token: Callable[[], Awaitable[str]] | None = None,
        key: Callable[[], Awaitable[str]] | None = None,
    ) -> Model:
        """Create a model of a declared adapter; see :class:`jumpseat.adapters.declared.pipeline.DeclaredCaller`."""
        from jumpseat.adapters.declared.pipeline import DeclaredCaller
        from jumpseat.adapters.transport.http import HttpModel

        caller = DeclaredCaller(
            known.declaration, known.wire, self._resolver, given, endpoint, token, known.kind, key=key
        )
        return HttpModel(caller, self.transport())

    def key_from_command(self, provider: str, command: str) -> Callable[[], Awaitable[str]]:
        """Return a function that runs ``command`` for every call and returns the key that it prints."""
        from jumpseat.adapters.adapter import CommandKey

        return CommandKey(provider, command, self._resolver)

    def scripted(self, script: dict[str, Any] | str | None) -> ScriptedModel:
        """Return the model of a script, given as an object or as a file's path.

        There is one model per script, because it counts the failures that the script requests.

        Raises:
            InvalidRequestError: the script is missing or invalid.
            ConfigError: the file cannot be read or is invalid.
        """
        from jumpseat.adapters.scripted import Script, ScriptedModel, load_script

        if script is None:
            raise InvalidRequestError("the scripted adapter needs a script: a path, or the script itself")
        if isinstance(script, str):
            key, loaded = script, load_script(script)
        else:
            try:
                key, loaded = repr(script), Script.model_validate(script)
            except ValidationError as error:
                raise InvalidRequestError(f"provider.script.{validation_problems(error, Script)[0]}") from None
        digest = hashlib.sha256(key.encode()).hexdigest()
        if digest not in self._scripts:
            self._scripts[digest] = ScriptedModel(loaded)
        return self._scripts[digest]

    def text_only(self, resolved: ResolvedModel) -> ResolvedModel:
        """Return the same model for calls that expect only text."""
        from jumpseat.adapters.transport.http import HttpModel

        if not isinstance(resolved.model, HttpModel):
            return resolved
        return replace(resolved, model=HttpModel(resolved.model.caller.for_text(), self.transport()))

    # --- requests made by a client --------------------------------------------------------------------------------

    def tunnel_through(self, client: Client) -> None:
        """Make all further model requests through ``client``.

        Raises:
            InvalidRequestError: another client already makes them.
        """
        from jumpseat.adapters.transport.tunnel import Tunnel

        if self.tunnel is not None:
            if self.tunnel.client is client:
                return
            raise InvalidRequestError("Another client is already the LLM inference provider.")
        self.tunnel = Tunnel(client)
        self.transport().set_route(self.tunnel)

    def release(self, client: Client) -> None:
        """Handle the disconnection of a client; if it made the model requests, they use the network again."""
        if self.tunnel is not None and self.tunnel.client is client:
            self.tunnel.close()
            self.tunnel = None
            self.transport().set_route(None)

    async def close(self) -> None:
        """Close the connections to all providers."""
        if self._transport is not None:
            await self._transport.aclose()

    @cached_property
    def _resolver(self) -> EnvResolver:
        from jumpseat.declared.env import EnvResolver

        return EnvResolver(self._whole_environ, self.child_environment.variables_for)


def user_agent(client_name: str | None) -> str:
    """Return the User-Agent header for a client."""
    product = f"jumpseat/{__version__}"
    return f"{product} {client_name}" if client_name else product


def _middleware(options: Options, mask: Callable[[str], str]) -> Callable[[], TransportMiddleware] | None:
    """Return a function that creates the recorder or replayer, or ``None`` if neither is configured."""
    if options.replay is not None:
        from jumpseat.adapters.recording.recordings import open_for_replay

        replay, recorded = options.replay, open_for_replay(options.replay.folder)

        def replayer() -> TransportMiddleware:
            from jumpseat.adapters.recording.replayer import Replayer

            return Replayer(recorded, in_order=replay.in_order, delays=replay.delays)

        return replayer
    if options.record is not None:
        from jumpseat.adapters.recording.recordings import open_for_recording

        folder = open_for_recording(options.record)

        def recorder() -> TransportMiddleware:
            from jumpseat.adapters.recording.recorder import Recorder

            return Recorder(folder, mask)

        return recorder
    return None


async def _load_turns() -> None:
    await anyio.sleep(LOAD_AFTER_S)
    for module in ("jumpseat.agent.turns.loop", "jumpseat.adapters.transport.connections"):
        # A failure is that of the first turn, which tries again.
        with suppress(Exception):
            await anyio.to_thread.run_sync(import_module, module)
