"""Claude models of Anthropic, also as names of Bedrock such as ``anthropic.claude-sonnet-4-v1:0``."""

from __future__ import annotations

import re
from typing import Final

from jumpseat.agent.profiles.profile import Profile

PROFILE: Final = Profile(re.compile("claude"))
