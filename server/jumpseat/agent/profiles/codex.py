"""The codex models of OpenAI, whatever version of GPT they are built on."""

from __future__ import annotations

import re
from typing import Final

from jumpseat.agent.profiles.profile import Profile

PROFILE: Final = Profile(re.compile("codex"), edit_tools="apply_patch", free_form=True)
