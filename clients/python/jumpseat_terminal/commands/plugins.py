"""The commands about programs that others bring: ``/hooks`` and ``/plugins``."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from jumpseat_protocol.safe import one_line
from jumpseat_protocol.visible import exact_line
from jumpseat_terminal.commands.base import Chat
from jumpseat_terminal.dialogue import Option


async def hooks(chat: Chat, _args: str) -> None:
    found = await chat.client.request("hooks.discover", {"projectPaths": [str(chat.folder)]})
    if found["hooks"]:
        rows = [
            (
                str(hook["hookType"]),
                str(hook["origin"]),
                "runs" if hook["enabled"] else "does not run",
                exact_line(str(hook.get("matcher") or "all tools")) if "Tool" in hook["hookType"] else "",
                exact_line(str(hook["command"])),
            )
            for hook in found["hooks"]
        ]
        chat.feed.show(chat.screen.painter().table(rows))
    else:
        chat.feed.note("There are no hooks in files: put one into .github/hooks of a trusted project.")
    for problem in (*found["warnings"], *found["errors"]):
        chat.feed.note(one_line(str(problem)), "yellow")


async def plugins(chat: Chat, args: str) -> None:
    action, _, name = args.partition(" ")
    name = name.strip()
    if args:
        if action not in _PLUGIN_ACTIONS or not (name or action == "update"):
            chat.feed.note(f"Expected /plugins, or /plugins {', '.join(_PLUGIN_ACTIONS)} and a name.", "yellow")
            return
        await _PLUGIN_ACTIONS[action](chat, name)
    found = (await chat.session.request("session.plugins.list"))["plugins"]
    if not found:
        chat.feed.note("No plugins are installed: /plugins install plugin@marketplace, a folder or owner/repo.")
        return
    rows: list[tuple[str, str, str]] = []
    for plugin in found:
        local = plugin["marketplace"] == "local"
        name = plugin["name"] if local or not plugin["marketplace"] else f"{plugin['name']}@{plugin['marketplace']}"
        state = "enabled" if plugin["enabled"] else "disabled"
        if not local:
            shown = await _programs_of(chat, name, plugin.get("directSourceId"))
            if shown["programs"] and not shown["trusted"]:
                state = f"{state}, runs nothing before /plugins trust {name}"
        rows.append((str(name), str(plugin.get("version") or ""), state))
    chat.feed.show(chat.screen.painter().table(rows))


async def _install(chat: Chat, source: str) -> None:
    done = await chat.session.request("session.plugins.install", source=source)
    installed = done["plugin"]
    name = f"{installed['name']}@{installed['marketplace']}" if installed["marketplace"] else installed["name"]
    chat.feed.note(f"installed {name}")
    await _trust(chat, str(name))


async def _update(chat: Chat, name: str) -> None:
    if name:
        await chat.session.request("session.plugins.update", name=name)
        await _trust(chat, name)
        return
    for done in (await chat.client.request("plugins.updateAll", {}))["results"]:
        problem = done.get("error")
        chat.feed.note(f"{done['name']}: {problem or 'updated'}", "yellow" if problem else "")
    await chat.session.request("session.plugins.reload")


async def _trust(chat: Chat, name: str) -> None:
    """Show what a plugin would run, and ask the user whether it may."""
    shown = await _programs_of(chat, name)
    if shown["trusted"] or not shown["programs"]:
        return
    chat.feed.note(f"{shown['name']} runs these programs with your rights, in all sessions:")
    programs = [
        tuple(exact_line(str(program[key])) for key in ("kind", "name", "command")) for program in shown["programs"]
    ]
    chat.feed.show(chat.screen.painter().table(programs))
    options = [Option("no", False, aside="they do not run"), Option("yes", True, aside="until its files change")]
    if await chat.screen.asking.pick("Run these programs?", options):
        await chat.client.request("jumpseat.plugins.trust", {"name": name, "digest": shown["digest"]})
        await chat.session.request("session.plugins.reload")
        chat.feed.note(f"{shown['name']} is trusted")


async def _programs_of(chat: Chat, name: str, source_id: str | None = None) -> dict[str, Any]:
    named = {"name": name} if source_id is None else {"name": name, "directSourceId": source_id}
    return await chat.client.request("jumpseat.plugins.programs", named)


async def _switch(chat: Chat, name: str, method: str) -> None:
    await chat.session.request(method, names=[name])


async def _remove(chat: Chat, name: str) -> None:
    await chat.session.request("session.plugins.uninstall", name=name)


_PLUGIN_ACTIONS: Final = {
    "install": _install,
    "trust": _trust,
    "enable": partial(_switch, method="session.plugins.enable"),
    "disable": partial(_switch, method="session.plugins.disable"),
    "update": _update,
    "remove": _remove,
}
