"""The dialogue that connects a provider of models: choose one, enter a key, try it, choose a model.

``/connect`` and ``jumpseat setup`` share it. A key is sent to the server alone, and shown nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from jumpseat_client import Client, RpcError
from jumpseat_protocol.safe import one_line
from jumpseat_terminal.dialogue import Option

_GITHUB: Final = "https://github.com"

_START: Final = {
    "ollama": "ollama serve",
    "lmstudio": "lms server start",
    "llamacpp": "llama-server -m MODEL.gguf --jinja",
    "vllm": "vllm serve MODEL --enable-auto-tool-choice",
}
"""The commands that start servers on this machine."""


class Dialogue(Protocol):
    """Asks the user. All questions return ``None`` if the user dismisses them."""

    async def pick(self, title: str, options: Sequence[Option]) -> Any: ...

    async def read_line(self, title: str, text: str = "", *, secret: bool = False) -> str | None: ...

    def note(self, text: str, style: str = "dim") -> None: ...


@dataclass(frozen=True, slots=True)
class Connected:
    """The model that the user has chosen. A ``kept`` one is the default model of later sessions, too."""

    model: str
    kept: bool


async def connect_model(ask: Dialogue, client: Client) -> Connected | None:
    """Let the user choose a provider and a model; ``None`` if they leave.

    Raises:
        RpcError: the server does not let this client set it up.
    """
    while True:
        found: dict[str, Any] = await client.request("jumpseat.setup.get")
        chosen: Any = await ask.pick("Which provider of models?", _offers(found))
        match chosen:
            case None:
                return None
            case "trial":
                return Connected(found["trialModel"], kept=False)
            case "server":
                done = await _Steps(ask, client).own_server()
            case "remove":
                await _remove_key(ask, client, found["providers"])
                continue
            case provider:
                done = await _Steps(ask, client).use(provider)
        if done is not None:
            return Connected(done, kept=True)


def _offers(found: dict[str, Any]) -> list[Option]:
    providers: list[dict[str, Any]] = found["providers"]
    offers = [
        Option(f"{'✓' if one['ready'] else ' '} {one_line(one['title'])}", one, aside=one_line(one["detail"]))
        for one in providers
    ]
    ready = sum(one["ready"] for one in providers)
    trial = Option("  Try jumpseat without a model", "trial", aside="trial: a script answers, offline")
    server = Option("  Another server", "server", aside="any OpenAI-compatible address")
    offers[ready:ready] = [trial]
    offers.append(server)
    if any(one.get("keyFrom") in ("keyring", "file") for one in providers):
        offers.append(Option("  Remove a key", "remove", aside="that was entered here"))
    return offers


async def _remove_key(ask: Dialogue, client: Client, providers: list[dict[str, Any]]) -> None:
    kept = [one for one in providers if one.get("keyFrom") in ("keyring", "file")]
    chosen = await ask.pick(
        "Remove which key?", [Option(one_line(one["title"]), one, aside=one_line(one["detail"])) for one in kept]
    )
    if chosen is not None:
        await client.request("jumpseat.setup.removeKey", {"provider": chosen["name"]})
        ask.note(f"The key of {one_line(chosen['title'])} is removed.")


class _Steps:
    """The steps for one provider. Each returns ``None`` if the user goes back."""

    def __init__(self, ask: Dialogue, client: Client) -> None:
        self._ask = ask
        self._client = client

    async def use(self, provider: dict[str, Any]) -> str | None:
        """Make a provider ready, then choose and try a model; return the model's name."""
        title, name = one_line(provider["title"]), str(provider["name"])
        if provider["kind"] == "copilot":
            if not provider["ready"] and not await self._log_in():
                return None
        elif not provider["ready"]:
            if provider["kind"] == "local":
                start = f", for example with: {_START[name]}" if name in _START else ""
                self._ask.note(f"{title}: {one_line(provider['detail'])}. Start it{start}", "yellow")
                return None
            if not await self._enter_key(provider):
                return None
        return await self._choose(provider)

    async def own_server(self) -> str | None:
        """Add a server by its address, then choose and try a model."""
        address = await self._ask.read_line("Its address, such as http://127.0.0.1:8080/v1:")
        if not address:
            return None
        host = (urlsplit(address).hostname or "").removeprefix("www.").replace(".", "-")
        name = await self._ask.read_line("A name for it:", host if host[:1].isalpha() else "server")
        if not name:
            return None
        key = await self._ask.read_line("Its key (enter: it needs none):", secret=True)
        if key is None:
            return None
        settings = {"name": name, "baseUrl": address, "needsKey": bool(key)}
        try:
            await self._client.request("jumpseat.setup.addServer", settings)
            if key:
                await self._client.request("jumpseat.setup.putKey", {"provider": name, "key": key})
        except RpcError as error:
            self._ask.note(str(error), "yellow")
            return None
        return await self._choose({"name": name, "title": name, "kind": "configured", "keyVariable": key or None})

    async def _enter_key(self, provider: dict[str, Any]) -> bool:
        title = one_line(provider["title"])
        while True:
            key = await self._ask.read_line(f"The key of {title} (it is not shown):", secret=True)
            if not key:
                return False
            try:
                stored = await self._client.request(
                    "jumpseat.setup.putKey", {"provider": provider["name"], "key": key}
                )
            except RpcError as error:
                self._ask.note(str(error), "yellow")
                continue
            where = "in the keyring" if stored["place"] == "keyring" else "in a private file in the home folder"
            self._ask.note(f"The key is stored {where}.")
            if stored.get("hiddenBy"):
                self._ask.note(f"{stored['hiddenBy']} in the environment takes precedence over it.", "yellow")
            return True

    async def _log_in(self) -> bool:
        self._ask.note("GitHub Copilot needs a login: run 'gh auth login', or enter a token of your account here.")
        token = await self._ask.read_line("A GitHub token (it is not shown):", secret=True)
        if not token:
            return False
        try:
            await self._client.request("account.login", {"host": _GITHUB, "token": token.strip()})
        except RpcError as error:
            self._ask.note(str(error), "yellow")
            return False
        return True

    async def _choose(self, provider: dict[str, Any]) -> str | None:
        """Choose a model, try it, and make it the default one."""
        while True:
            model = await self._pick_model(provider)
            if model is None:
                return None
            match await self._try(provider, model):
                case "keep":
                    done = await self._client.request("jumpseat.setup.setModel", {"model": model})
                    self._ask.note(f"{one_line(model)} is the default model now, in {one_line(done['file'])}.")
                    return model
                case "key":
                    if not await self._enter_key(provider):
                        return None
                case "model":
                    continue
                case _:
                    return None

    async def _pick_model(self, provider: dict[str, Any]) -> str | None:
        name = str(provider["name"])
        try:
            listed = await self._client.request("jumpseat.setup.models", {"provider": name})
        except RpcError as error:
            self._ask.note(str(error), "yellow")
            return None
        if listed.get("problem") and not listed["models"]:
            self._ask.note(one_line(str(listed["problem"])), "yellow")
            again = await self._ask.pick("The models cannot be listed. What now?", self._ways_out(provider, []))
            if again == "key" and await self._enter_key(provider):
                return await self._pick_model(provider)
            return None
        models: list[dict[str, Any]] = listed["models"]
        suggested = listed.get("suggested")
        models.sort(key=lambda model: model["id"] != suggested)
        other = Option("another, by its name", "")
        chosen: str | None = await self._ask.pick("Which model?", [*map(_model_option, models), other])
        if chosen != "":
            return chosen
        typed = await self._ask.read_line("The name of the model:")
        return None if not typed else typed if name == "copilot" else f"{name}/{typed.removeprefix(f'{name}/')}"

    async def _try(self, provider: dict[str, Any], model: str) -> str | None:
        """Send a small request; return ``keep`` if it worked, else what the user wants to do."""
        name = str(provider["name"])
        self._ask.note(f"trying {one_line(model)} ...")
        params = {"provider": name, "model": model.removeprefix(f"{name}/")}
        result = await self._client.request("jumpseat.setup.check", params)
        if result["works"]:
            self._ask.note("It works.")
            return "keep"
        self._ask.note(str(result["explanation"]), "yellow")
        ways = [Option("choose another model", "model"), Option("use it nevertheless", "keep")]
        return await self._ask.pick("It does not work. What now?", self._ways_out(provider, ways))

    @staticmethod
    def _ways_out(provider: dict[str, Any], ways: list[Option]) -> list[Option]:
        key = [Option("enter another key", "key")] if provider.get("keyVariable") else []
        return [*key, *ways, Option("back to the providers", None)]


def _model_option(model: dict[str, Any]) -> Option:
    window = model.get("contextWindow")
    return Option(one_line(model["id"]), model["id"], aside=f"{window // 1000}k" if isinstance(window, int) else "")
