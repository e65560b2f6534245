"""The system message: its default sections, and the edits of clients."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.conversation.prompt import SECTIONS, system_prompt, to_transform
from jumpseat_protocol.sessions import SystemMessageConfig

CWD = Path("/home/me/project")
ENVIRONMENT = (
    f"Current working directory: /home/me/project\nOperating System: {platform.system()} {platform.machine()}"
)
DEFAULT_TEXTS = {**SECTIONS, "environment_context": ENVIRONMENT}
EDITABLE = [name for name in SECTIONS if name != "custom_instructions"]


def made(**config: Any) -> str:
    return system_prompt(SystemMessageConfig.model_validate(config), CWD)


def customized(**sections: dict[str, str]) -> str:
    return made(mode="customize", sections=sections)


def joined(**changed: str) -> str:
    """Return the default message with the texts of some sections replaced; empty sections are left out."""
    return "\n\n".join(text for text in {**DEFAULT_TEXTS, **changed}.values() if text)


def test_the_sections_are_those_of_the_sdk_in_the_same_order() -> None:
    assert list(SECTIONS) == [
        "preamble",
        "tone",
        "tool_efficiency",
        "environment_context",
        "code_change_rules",
        "guidelines",
        "safety",
        "tool_instructions",
        "custom_instructions",
        "runtime_instructions",
        "last_instructions",
    ]
    assert all(DEFAULT_TEXTS[name] for name in EDITABLE)


def test_the_default_message_is_its_sections_separated_by_blank_lines() -> None:
    assert made() == joined()
    assert "\n\n\n" not in made()


def test_the_default_message_mentions_github_and_stays_small() -> None:
    assert "GitHub" in made()
    assert len(made().encode()) < 1000


def test_no_section_names_a_tool() -> None:
    assert not re.search(r"\b(bash|grep|glob|view|edit|create)\b", made())


def test_content_is_appended_verbatim() -> None:
    assert made(content="  Speak like a pirate.\n") == f"{joined()}\n\n  Speak like a pirate.\n"
    assert made(mode="append", content="") == joined()


@pytest.mark.parametrize("content", ["You are a pirate.", "  \n a\n\n\nb ", ""])
def test_a_replaced_message_is_the_content_alone(content: str) -> None:
    assert made(mode="replace", content=content) == content
    assert made(mode="replace", content=content, sections={"tone": {"action": "append", "content": "x"}}) == content


def test_replace_without_content_is_empty() -> None:
    assert made(mode="replace") == ""


@pytest.mark.parametrize("name", list(SECTIONS))
def test_a_section_can_be_replaced_and_removed(name: str) -> None:
    assert customized(**{name: {"action": "replace", "content": "Mine."}}) == joined(**{name: "Mine."})
    assert customized(**{name: {"action": "remove"}}) == joined(**{name: ""})


@pytest.mark.parametrize("name", EDITABLE)
def test_text_can_be_put_before_and_after_a_section(name: str) -> None:
    text = DEFAULT_TEXTS[name]

    assert customized(**{name: {"action": "append", "content": "Mine."}}) == joined(**{name: f"{text}\nMine."})
    assert customized(**{name: {"action": "prepend", "content": "Mine."}}) == joined(**{name: f"Mine.\n{text}"})


@pytest.mark.parametrize("action", ["append", "prepend", "replace"])
def test_an_empty_section_can_be_filled(action: str) -> None:
    assert customized(custom_instructions={"action": action, "content": "Mine."}) == joined(
        custom_instructions="Mine."
    )


@pytest.mark.parametrize("action", ["preserve", "transform"])
def test_preserve_and_transform_leave_a_section_unchanged(action: str) -> None:
    assert customized(tone={"action": action, "content": "Mine."}) == joined()


def test_content_follows_the_sections_of_a_customized_message() -> None:
    sections = {"tone": {"action": "remove"}}

    assert made(mode="customize", sections=sections, content="The end.") == f"{joined(tone='')}\n\nThe end."


def test_edits_of_sections_apply_in_customize_mode_only() -> None:
    assert made(mode="append", sections={"tone": {"action": "remove"}}) == joined()


@pytest.mark.parametrize("action", ["replace", "append", "prepend"])
def test_the_content_of_an_unknown_section_comes_last(action: str) -> None:
    assert customized(of_tomorrow={"action": action, "content": "Mine."}) == f"{joined()}\n\nMine."


def test_removing_or_preserving_an_unknown_section_changes_nothing() -> None:
    assert customized(of_tomorrow={"action": "remove"}) == joined()
    assert customized(of_tomorrow={"action": "preserve"}) == joined()


def test_identity_is_a_group_of_three_sections() -> None:
    text, last = SECTIONS["preamble"], SECTIONS["tool_efficiency"]
    gone = {"preamble": "", "tone": "", "tool_efficiency": ""}

    assert customized(identity={"action": "replace", "content": "I am me."}) == joined(
        **gone | {"preamble": "I am me."}
    )
    assert customized(identity={"action": "remove"}) == joined(**gone)
    assert customized(identity={"action": "append", "content": "More."}) == joined(tool_efficiency=f"{last}\nMore.")
    assert customized(identity={"action": "prepend", "content": "Less."}) == joined(preamble=f"Less.\n{text}")


@pytest.mark.parametrize("preserved", ["preamble", "tone", "tool_efficiency"])
def test_a_preserved_section_remains_when_its_group_is_removed(preserved: str) -> None:
    gone = {name: "" for name in ("preamble", "tone", "tool_efficiency") if name != preserved}

    assert customized(**{"identity": {"action": "remove"}, preserved: {"action": "preserve"}}) == joined(**gone)


def test_a_preserved_section_remains_beside_the_replacement_of_its_group() -> None:
    text = SECTIONS["preamble"]
    replaced = customized(identity={"action": "replace", "content": "I am me."}, preamble={"action": "preserve"})

    assert replaced == joined(preamble=f"{text}\nI am me.", tone="", tool_efficiency="")


def test_the_order_of_edits_of_a_group_and_its_members_does_not_matter() -> None:
    group: dict[str, Any] = {"identity": {"action": "replace", "content": "I am me."}}
    member: dict[str, Any] = {"tone": {"action": "append", "content": "More."}}
    expected = joined(preamble="I am me.", tone="More.", tool_efficiency="")

    assert customized(**group, **member) == customized(**member, **group) == expected


def test_a_group_is_transformed_without_members_that_are_preserved_or_transformed_by_name() -> None:
    edits = {"identity": "transform", "tone": "transform", "preamble": "preserve"}
    config = SystemMessageConfig.model_validate(
        {"mode": "customize", "sections": {name: {"action": action} for name, action in edits.items()}}
    )

    assert to_transform(config, CWD) == {"identity": SECTIONS["tool_efficiency"], "tone": SECTIONS["tone"]}
    rewritten = system_prompt(config, CWD, transformed={"identity": "Quick.", "tone": "Loud."})
    assert rewritten == joined(tool_efficiency="Quick.", tone="Loud.")


def test_the_labels_of_the_environment_occur_in_that_section_only() -> None:
    labels = re.compile(r"Current working directory:|Operating System:", re.IGNORECASE)

    assert labels.findall(made()) == ["Current working directory:", "Operating System:"]
    assert not labels.search(customized(environment_context={"action": "remove"}))


def test_the_tag_of_code_changes_occurs_in_that_section_only() -> None:
    assert made().count("<code_change_instructions>") == 1
    assert "code_change_instructions" not in customized(code_change_rules={"action": "remove"})
