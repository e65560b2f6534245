"""GPT-5 and later models of OpenAI, also as deployments of Azure such as ``team-gpt-51-eu``."""

from __future__ import annotations

import re
from typing import Final

from jumpseat.agent.profiles.profile import Profile

# Not GPT-3.5, which Azure calls gpt-35, nor the size of another model, such as cerebras-gpt-6.7b.
PROFILE: Final = Profile(
    re.compile(r"gpt[-_ .]?(?:[5-9]|1\d)(?!\d*(?:\.\d+)?[bm](?![a-z]))"),
    edit_tools="apply_patch",
    free_form=True,
)
