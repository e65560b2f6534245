"""``jumpseat setup``: connect a provider of models, with questions in a terminal or by options in a script."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import anyio

from jumpseat_client import Client, JumpseatClientError, RpcError
from jumpseat_protocol.safe import one_line, safe
from jumpseat_terminal.connecting import Connected, connect_model
from jumpseat_terminal.dialogue import Option
from jumpseat_terminal.opening import start_server
from jumpseat_terminal.options import SetupOptions
from jumpseat_terminal.screen import Screen, Suggestion

FAILED: Final = 1


class _KeyFileError(Exception):
    """A file with a key cannot be read; the message is for people."""


def main(options: SetupOptions) -> int:
    """Set up a provider, and return the exit code."""
    # Log lines on stderr would disturb the screen.
    logging.getLogger("jumpseat_client").addHandler(logging.NullHandler())
    try:
        return anyio.run(_run, options)
    except KeyboardInterrupt:
        return 130
    except (JumpseatClientError, _KeyFileError) as error:
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        return FAILED


async def _run(options: SetupOptions) -> int:
    async with start_server(Path.cwd()) as client:
        if options.list:
            return _print(await client.request("jumpseat.setup.get"), as_json=options.json)
        if options.remove_key is not None:
            done = await client.request("jumpseat.setup.removeKey", {"provider": options.remove_key})
            print("The key is removed." if done["removed"] else "There was no key to remove.")
            return 0
        if options.provider is not None:
            return await _by_options(client, options)
        connected = await SetupScreen(client).run()
    if connected is None:
        return FAILED
    model = "" if connected.kept else f" --model {connected.model}"
    print(f"Next: jumpseat chat{model}")
    return 0


def _print(found: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    rows = [(str(one["name"]), "ready" if one["ready"] else "-", str(one["detail"])) for one in found["providers"]]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, state, detail in rows:
        print(safe(f"{name.ljust(widths[0])}  {state.ljust(widths[1])}  {detail}"))
    print(safe(f"\ndefault model: {found.get('defaultModel') or 'none chosen'}"))
    return 0


async def _by_options(client: Client, options: SetupOptions) -> int:
    """Set up the provider of the options. If its model does not work, its new key and the default stay unset."""
    provider = options.provider
    assert provider is not None
    key = None if options.key_file is None else _read_key(options.key_file)
    if options.base_url is not None:
        await client.request(
            "jumpseat.setup.addServer",
            {"name": provider, "baseUrl": options.base_url, "needsKey": key is not None},
        )
    if key is not None:
        await client.request("jumpseat.setup.putKey", {"provider": provider, "key": key})
    model = options.model
    if options.check:
        asked = {"provider": provider, **({"model": model} if model is not None else {})}
        result = await client.request("jumpseat.setup.check", asked)
        if not result["works"]:
            if key is not None:
                await client.request("jumpseat.setup.removeKey", {"provider": provider})
            print(f"error: {one_line(str(result['explanation']))}", file=sys.stderr)
            return FAILED
        chosen = str(result["model"])
    else:
        chosen = f"{provider}/{model}"
    name = chosen.removeprefix("copilot/")
    done = await client.request("jumpseat.setup.setModel", {"model": name})
    print(safe(f"{name} is the default model now, in {done['file']}"))
    return 0


def _read_key(path: Path) -> str:
    """Read a key from a file, ``-`` for stdin.

    Raises:
        _KeyFileError: the file cannot be read.
    """
    try:
        return (sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")).strip()
    except OSError as error:
        raise _KeyFileError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except ValueError:
        raise _KeyFileError(f"{str(path)!r} is not a text in UTF-8") from None


class SetupScreen:
    """The screen of ``jumpseat setup``, which only asks questions."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._screen = Screen(self, colour=not os.environ.get("NO_COLOR"))
        self._connected: Connected | None = None
        self._failure: RpcError | None = None

    async def run(self) -> Connected | None:
        """Ask until a model is chosen or the user leaves.

        Raises:
            RpcError: the server refused a change.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._ask)
            await self._screen.run()
            tasks.cancel_scope.cancel()
        if self._failure is not None:
            raise self._failure
        return self._connected

    async def _ask(self) -> None:
        try:
            self._connected = await connect_model(self, self._client)
        except RpcError as error:
            self._failure = error
        self._screen.leave()

    # --- questions ----------------------------------------------------------------------------------------------

    async def pick(self, title: str, options: Sequence[Option]) -> Any:
        return await self._screen.asking.pick(title, options)

    async def read_line(self, title: str, text: str = "", *, secret: bool = False) -> str | None:
        return await self._screen.asking.read_line(title, text, secret=secret)

    def note(self, text: str, style: str = "dim") -> None:
        self._screen.write(self._screen.painter().notice(text, style))

    # --- for the screen -----------------------------------------------------------------------------------------

    def live_text(self, height: int) -> str:
        return ""

    def activity(self) -> str:
        return ""

    def status_line(self) -> str:
        return "jumpseat setup · ctrl-c quits"

    def mode(self) -> str:
        return ""

    def change_mode(self) -> None:
        return

    def submit(self, text: str) -> None:
        return

    def interrupt(self) -> bool:
        self._screen.leave()
        return True

    def expand(self) -> None:
        return

    def completions(self, text: str) -> tuple[int, list[Suggestion]]:
        return 0, []
