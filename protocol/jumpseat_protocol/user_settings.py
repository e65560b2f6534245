"""``user.settings.*``: the user's settings for new sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pydantic import Field, StrictBool

from jumpseat_protocol.server import EmptyParams
from jumpseat_protocol.wire import Method, NestedNulls, WireModel


class UserSetting(NestedNulls):
    """``is_default`` is true if the setting is not set, whatever the values."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("value", "default")

    value: StrictBool | str | None = None
    """The value."""
    default: StrictBool | str | None = None
    """The value that applies if none is set."""
    is_default: StrictBool
    """Whether none is set."""


class UserSettingsResult(WireModel):
    """All settings, by name."""

    settings: dict[str, UserSetting]
    """The settings by name."""


class UserSettingsSetParams(WireModel):
    """The settings to change, by name; ``null`` resets one to its default."""

    settings: dict[str, Any]
    """The values to set; ``null`` resets one."""


class UserSettingsSetResult(WireModel):
    """``shadowed_keys`` are settings that a source of higher priority overrides."""

    shadowed_keys: list[str] = Field(default_factory=list)
    """The settings that have no effect, because something else overrides them."""


METHODS: Final[Mapping[str, Method]] = {
    "user.settings.get": Method(EmptyParams, UserSettingsResult, "Return the user's settings."),
    "user.settings.set": Method(UserSettingsSetParams, UserSettingsSetResult, "Change the user's settings."),
    "user.settings.reload": Method(EmptyParams, None, "Read the user's settings from their file again."),
}
