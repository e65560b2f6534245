"""``jumpseat.plugins.*``: show a person what an installed plugin would run, and keep the agreement to it."""

from __future__ import annotations

import anyio.to_thread

from jumpseat.sessions.context import Context
from jumpseat.sessions.plugin_programs import programs_of
from jumpseat.store.plugins.manifests import read_plugin
from jumpseat_protocol.plugins import (
    PluginParams,
    PluginProgram,
    PluginProgramsResult,
    PluginTrustParams,
)
from jumpseat_protocol.server import SuccessResult


async def programs(ctx: Context, params: PluginParams) -> PluginProgramsResult:
    """Return what a plugin would run, for a person who decides about it.

    Raises:
        InvalidRequestError: the plugin is not installed, or more than one has this name.
    """
    installed = ctx.process.installed_plugins
    plugin = installed.find(params.name, params.direct_source_id)
    folder = installed.folder_of(plugin)
    found = await anyio.to_thread.run_sync(lambda: programs_of(read_plugin(folder)))
    return PluginProgramsResult(
        name=plugin.spec,
        folder=str(folder),
        trusted=plugin.trusted,
        digest=plugin.digest,
        programs=[PluginProgram(kind=one.kind, name=one.name, command=one.command) for one in found],
    )


async def trust(ctx: Context, params: PluginTrustParams) -> SuccessResult:
    """Let a plugin run its programs, in all sessions, until its files change; or withdraw that.

    Raises:
        InvalidRequestError: the plugin is not installed, or has changed since its programs were shown.
        StoreError: the list of plugins cannot be written.
    """
    installed = ctx.process.installed_plugins
    plugin = installed.find(params.name, params.direct_source_id)
    if params.trusted:
        await installed.trust(plugin, params.digest)
    else:
        await installed.distrust(plugin)
    return SuccessResult()
