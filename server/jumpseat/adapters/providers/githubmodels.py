"""GitHub Models: chat completions. The key is a GitHub token with the permission ``models: read``."""

from __future__ import annotations

from typing import Final

from jumpseat.adapters.provider import ProviderInfo
from jumpseat.adapters.wires.settings import CHAT

PROVIDER: Final = ProviderInfo(
    type="githubmodels",
    adapter="chat:ChatAdapter",
    default_base_url="https://models.github.ai/inference",
    key_variable="GITHUB_TOKEN",
    options={"replay_reasoning": False},
    headers={"X-GitHub-Api-Version": "2022-11-28"},
    settings=CHAT,
    own_limits=True,
)
