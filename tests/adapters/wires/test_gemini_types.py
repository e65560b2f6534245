"""Traffic of Gemini's wires, validated with the types of Google's own SDK.

The types of the Interactions API are in a private part of that package.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers import load_adapter
from jumpseat.agent.model import ModelRequest
from tests.adapters.conversations import REQUESTS
from tests.adapters.golden import DATA, recorded_message
from tests.adapters.provider_sdks import import_sdk
from tests.support.cases import all_cases

# Answers of gateways, and errors.
NOT_OF_THE_FORM = {
    "error_half_a_frame.sse",
    "error_in_a_list.sse",
    "error_not_json.sse",
    "tools_concatenated_arguments_as_text.sse",
    "unknown_fields_and_parts.sse",
    "tools_signed_with_one_id.sse",
    "unnamed_events_without_starts_and_unknown_ones.sse",
    "error_without_steps.json",
    "deltas_that_do_not_belong_to_their_step.sse",
}
# Fields of the API that the SDK lacks.
BESIDE = {"Interaction.object", "InteractionSseEventInteraction.errors"}


def request_body(name: str, request: ModelRequest) -> dict[str, Any]:
    body = (
        load_adapter(name).request(Endpoint("https://h", options={"hosted_tools": ["google_search"]}), request).body
    )
    return json.loads(json.dumps(body))


def answers(name: str, suffix: str) -> list[Path]:
    return [path for path in sorted((DATA / name).glob(f"*{suffix}")) if path.name not in NOT_OF_THE_FORM]


def chunks(path: Path) -> Iterator[dict[str, Any]]:
    """Return the JSON texts of a recorded answer that are not errors."""
    if path.suffix == ".json":
        texts = [path.read_text(encoding="utf-8")]
    else:
        lines = path.read_text(encoding="utf-8").splitlines()
        texts = [line.removeprefix("data: ") for line in lines if line.startswith("data: {")]
    yield from (chunk for chunk in map(json.loads, texts) if "error" not in chunk)


def test_requests_of_generate_content_match_the_sdk() -> None:
    genai = import_sdk("google.genai.types")
    with all_cases() as case:
        for conversation, request in REQUESTS.items():
            with case(conversation):
                body = request_body("gemini", request)

                assert set(body) <= {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"}
                for content in body["contents"]:
                    assert genai.Content.model_validate(content).parts
                genai.Content.model_validate(body.get("systemInstruction", {}))
                for tool in body.get("tools", []):
                    genai.Tool.model_validate(tool)
                genai.ToolConfig.model_validate(body.get("toolConfig", {}))
                genai.GenerationConfig.model_validate(body.get("generationConfig", {}))


def test_answers_of_generate_content_match_the_sdk() -> None:
    genai = import_sdk("google.genai.types")
    with all_cases() as case:
        for path in [*answers("gemini", ".sse"), *answers("gemini", ".json")]:
            with case(path.name):
                for chunk in chunks(path):
                    genai.GenerateContentResponse.model_validate(chunk)


def test_requests_of_interactions_match_the_sdk() -> None:
    kinds = import_sdk("google.genai._gaos.types.interactions")
    with all_cases() as case:
        for conversation, request in REQUESTS.items():
            with case(conversation):
                body = request_body("gemini_interactions", request)
                assert unknown(kinds.CreateModelInteraction.model_validate(body)) == []


@pytest.mark.parametrize("file", ["thinking_and_tools.sse", "google_search.sse"])
def test_steps_that_are_sent_back_match_the_sdk(file: str) -> None:
    kinds = import_sdk("google.genai._gaos.types.interactions")
    body = request_body(
        "gemini_interactions", ModelRequest("m", "", [recorded_message("gemini_interactions", file)])
    )

    assert unknown(kinds.CreateModelInteraction.model_validate(body)) == []


def test_answers_of_interactions_match_the_sdk() -> None:
    kinds = import_sdk("google.genai._gaos.types.interactions")
    types = {
        ".sse": pydantic.TypeAdapter(kinds.InteractionSSEEvent),
        ".json": pydantic.TypeAdapter(kinds.Interaction),
    }
    with all_cases() as case:
        for suffix, kind in types.items():
            for path in answers("gemini_interactions", suffix):
                with case(path.name):
                    for chunk in chunks(path):
                        assert set(unknown(kind.validate_python(chunk))) <= BESIDE


def unknown(value: Any) -> list[str]:
    """Return fields and kinds that the SDK's types, which accept anything, do not know."""
    if isinstance(value, list):
        return [name for item in value for name in unknown(item)]
    if not isinstance(value, pydantic.BaseModel):
        return []
    found = [f"{type(value).__name__}.{name}" for name in value.model_extra or {}]
    if getattr(value, "is_unknown", False):
        found.append(type(value).__name__)
    return found + [name for field in vars(value).values() for name in unknown(field)]
