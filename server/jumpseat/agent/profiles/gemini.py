"""Gemini models of Google."""

from __future__ import annotations

import re
from typing import Final

from jumpseat.agent.profiles.profile import Profile

PROFILE: Final = Profile(re.compile("gemini"))
