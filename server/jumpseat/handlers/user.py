"""``user.settings.*``: the user's settings for new sessions."""

from __future__ import annotations

import anyio.to_thread

from jumpseat.sessions.context import Context
from jumpseat.store.user.settings import KNOWN
from jumpseat_protocol.server import EmptyParams
from jumpseat_protocol.user_settings import (
    UserSetting,
    UserSettingsResult,
    UserSettingsSetParams,
    UserSettingsSetResult,
)


def settings_get(ctx: Context, params: EmptyParams) -> UserSettingsResult:
    """Return all settings, whether they are set or not."""
    values = ctx.process.user_settings.get()
    return UserSettingsResult(
        settings={
            name: UserSetting(
                value=values.get(name, known.default), default=known.default, is_default=name not in values
            )
            for name, known in KNOWN.items()
        }
    )


async def settings_set(ctx: Context, params: UserSettingsSetParams) -> UserSettingsSetResult:
    """Change settings of sessions that are created from now on. No other source overrides them."""
    await anyio.to_thread.run_sync(ctx.process.user_settings.set, params.settings)
    return UserSettingsSetResult()


def settings_reload(ctx: Context, params: EmptyParams) -> None:
    """Read the file again, for changes by other programs."""
    ctx.process.user_settings.reload()
