"""The provider that the variables of the Copilot CLI describe: ``COPILOT_PROVIDER_*`` and ``COPILOT_MODEL``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jumpseat.config import AdapterConfig, ModelConfig
from jumpseat.errors import ConfigError

GIVEN: Final = "provider"
"""Name of the adapter that ``COPILOT_PROVIDER_BASE_URL`` and related variables describe."""


def provider_of_environ(environ: Mapping[str, str]) -> dict[str, AdapterConfig]:
    """Return the adapter that the variables of the Copilot CLI describe, if ``COPILOT_PROVIDER_BASE_URL`` is set.

    Raises:
        ConfigError: a variable has an invalid value.
    """
    base_url = environ.get("COPILOT_PROVIDER_BASE_URL")
    if not base_url:
        return {}
    kind = environ.get("COPILOT_PROVIDER_TYPE") or "openai"
    wire_api = environ.get("COPILOT_PROVIDER_WIRE_API") or "completions"
    if kind not in ("openai", "azure", "anthropic"):
        raise ConfigError(f"COPILOT_PROVIDER_TYPE is {kind!r}, expected openai, azure or anthropic")
    if wire_api not in ("completions", "responses"):
        raise ConfigError(f"COPILOT_PROVIDER_WIRE_API is {wire_api!r}, expected completions or responses")
    token = environ.get("COPILOT_PROVIDER_BEARER_TOKEN")
    wire_model = environ.get("COPILOT_PROVIDER_WIRE_MODEL")
    names = (environ.get("COPILOT_MODEL"), environ.get("COPILOT_PROVIDER_MODEL_ID"), wire_model)
    model = next(filter(None, names), None)
    version = environ.get("COPILOT_PROVIDER_AZURE_API_VERSION")
    has_key = bool(environ.get("COPILOT_PROVIDER_API_KEY")) and not token
    return {
        GIVEN: AdapterConfig(
            type=f"{kind}_responses" if wire_api == "responses" and kind != "anthropic" else kind,
            base_url=base_url,
            api_key_env="COPILOT_PROVIDER_API_KEY" if has_key else None,
            headers={"Authorization": f"Bearer {token.strip()}"} if token else {},
            options={"api_version": version} if version else {},
            models=[
                ModelConfig(
                    id=model,
                    wire_model=wire_model,
                    context_window=_tokens(environ, "COPILOT_PROVIDER_MAX_PROMPT_TOKENS"),
                    max_output_tokens=_tokens(environ, "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS"),
                )
            ]
            if model
            else [],
        )
    }


def _tokens(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name)
    if text and not (text.isdecimal() and int(text) > 0):
        raise ConfigError(f"{name} is {text[:40]!r}, expected a number of tokens")
    return int(text) if text else None
