"""The model that is used if none is named."""

from __future__ import annotations

from jumpseat.adapters.models.usual_model import usual_model
from jumpseat.agent.model import ModelInfo


def test_a_usual_model_wins_over_one_that_calls_tools_and_that_over_any_other() -> None:
    whisper, tools = ModelInfo("openai/whisper", tools=False), ModelInfo("openai/new", tools=True)
    usual, unknown = ModelInfo("openai/gpt-5", tools=True), ModelInfo("openai/unknown")
    assert usual_model("openai", [whisper, unknown, tools, usual]) == "gpt-5"
    assert usual_model("openai", [whisper, unknown, tools]) == "new"
    assert usual_model("openai", [whisper, unknown]) == "unknown"
    assert usual_model("openai", [whisper, ModelInfo("openai/off", enabled=False)]) is None
    assert usual_model("other", [ModelInfo("other/a/b")]) == "a/b"
