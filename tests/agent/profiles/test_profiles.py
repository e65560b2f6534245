"""Families of models: the names that belong to them, and the tools that their models are offered."""

from __future__ import annotations

from pathlib import Path

import pytest
from anyio.abc import TaskGroup

from jumpseat.agent.profiles import profile_of
from jumpseat.agent.settings import SessionSettings
from jumpseat.tools.builtin import builtin_tools
from jumpseat_protocol.sessions import ClientTool
from tests.support.sessions import make_session

pytestmark = pytest.mark.anyio

TRAINED_ON_PATCHES = (
    *("gpt-5", "GPT-5", "gpt-5-mini", "gpt-5.1-codex", "openai/gpt-5.1-codex", "openai/gpt-5:online", "gpt-6"),
    *("team-gpt-5-eu", "prod-gpt-51", "mygpt5mini", "chat_gpt_5", "chatgpt-5-latest", "gpt-5.2-2026-01-15"),
    *("codex-mini-latest", "accounts/x/models/gpt-5-codex", "my-codex"),
)
TRAINED_ON_EDITS = (
    *("claude-sonnet-4.5", "anthropic.claude-sonnet-4-20250514-v1:0", "us.anthropic.claude-opus-4-v1:0"),
    *("publishers/anthropic/models/claude-opus-4", "models/gemini-2.5-pro", "gemini-3-flash"),
    *("gpt-4.1", "gpt-4o", "gpt-35-turbo", "gpt-3.5-turbo", "gpt-oss-120b", "o3", "cerebras-gpt-6.7b", "gpt-j-6b"),
    *("qwen3-coder", "gpt-5-gateway/llama-4", "", "auto"),
)


def test_names_belong_to_families_whoever_serves_the_model() -> None:
    assert {name: profile_of(name).edit_tools for name in TRAINED_ON_PATCHES} == dict.fromkeys(
        TRAINED_ON_PATCHES, "apply_patch"
    )
    assert {name: profile_of(name).edit_tools for name in TRAINED_ON_EDITS} == dict.fromkeys(
        TRAINED_ON_EDITS, "edit"
    )
    assert all(profile_of(name).free_form for name in TRAINED_ON_PATCHES)
    # The name of the provider counts before the name that the user has given to the model.
    assert profile_of("claude-opus-4", "gpt-5").edit_tools == "edit"
    assert profile_of("deployment-1", "azure/gpt-5").edit_tools == "apply_patch"


def offered(tasks: TaskGroup, model: str | None, tools: tuple[ClientTool, ...] = (), **options: object) -> set[str]:
    settings = SessionSettings.of(Path("/"), model=model, **options)
    made = make_session(tasks, script=[], settings=settings, tools=list(tools), builtin=list(builtin_tools()))
    return {spec.name for spec in made.session.tools.specs()} & {"edit", "create", "apply_patch"}


async def test_a_model_is_offered_the_edit_tools_of_its_family_as_far_as_the_filters_allow(
    tasks: TaskGroup,
) -> None:
    edits, patch = {"edit", "create"}, {"apply_patch"}
    assert offered(tasks, "claude-sonnet-4.5") == offered(tasks, None) == edits
    assert offered(tasks, "openai/gpt-5") == patch

    assert offered(tasks, "gpt-5", available_tools=["view", *edits]) == edits
    assert offered(tasks, "claude", available_tools=["apply_patch"]) == patch
    assert offered(tasks, "gpt-5", available_tools=["builtin:*"]) == patch
    assert offered(tasks, "gpt-5", excluded_tools=["apply_patch"]) == edits


async def test_who_excludes_or_replaces_a_tool_that_changes_files_is_not_passed_by_a_patch(
    tasks: TaskGroup,
) -> None:
    own = ClientTool(name="edit", description="Edit", overrides_built_in_tool=True)
    assert offered(tasks, "gpt-5", excluded_tools=["edit", "create"]) == set()
    assert offered(tasks, "gpt-5", excluded_tools=["builtin:create"]) == {"edit"}
    assert offered(tasks, "gpt-5", (own,)) == {"edit", "create"}

    settings = SessionSettings.of(Path("/"), model="claude", excluded_tools=["edit"])
    made = make_session(tasks, script=[], settings=settings, builtin=list(builtin_tools()))
    assert "apply_patch" not in {spec.name for spec in made.session.tools.unlisted_specs()}
