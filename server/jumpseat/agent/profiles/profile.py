"""The form of a profile, and the one of models that belong to no family."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from jumpseat.agent.model import EditTools


class Profile(Struct, frozen=True):
    """The strengths of a family of models.

    ``matches`` finds the family in the last part of a model's name, in lower case. ``free_form`` is whether models
    of the family take tools whose input is free text that follows a grammar, where their wire has such tools.
    """

    matches: re.Pattern[str]
    edit_tools: EditTools = "edit"
    free_form: bool = False


DEFAULT: Final = Profile(re.compile(""))
