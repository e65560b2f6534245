"""Skills over the real wire: their locations, loading by the model, and enabling."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.provided import at, says, send_prompt, serving
from tests.support.server import Wire, calls, running_server, scripted
from tests.support.skills import write_skill

pytestmark = pytest.mark.anyio

LOADED = 'Skill "tea" loaded successfully. Follow the instructions in the skill context.'


async def list_skills(wire: Wire, session: str) -> dict[str, dict[str, Any]]:
    skills = (await wire.call("session.skills.list", {"sessionId": session}))["skills"]
    return {skill["name"]: skill for skill in skills}


async def test_a_model_loads_a_skill_and_gets_its_text(tmp_path: Path) -> None:
    path = write_skill(
        tmp_path / "skills", front="name: tea\ndescription: How to make tea.\nallowed-tools: view, bash"
    )
    context = (
        f'<skill-context name="tea">\nBase directory for this skill: {path.parent}\n\n# Tea\n\nWarm the pot.\n\n'
        "</skill-context>"
    )
    script = scripted(calls("skill", skill="tea"), {"text": "It is ready."})
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(script, skillDirectories=[str(tmp_path / "skills")])
        events = await wire.prompt(session)
        invoked = {
            "name": "tea",
            "path": str(path),
            "content": "# Tea\n\nWarm the pot.",
            "allowedTools": ["view", "bash"],
        }
        assert await wire.call("session.skills.getInvoked", {"sessionId": session}) == {
            "skills": [{**invoked, "invokedAtTurn": 1}]
        }
    assert [event["data"]["content"] for event in events if event["type"] == "assistant.message"] == [
        "",
        "It is ready.",
    ]
    (event,) = [event for event in events if event["type"] == "skill.invoked"]
    assert event["data"] == {
        **invoked,
        "description": "How to make tea.",
        "source": "custom",
        "trigger": "agent-invoked",
    }
    assert "permission.requested" not in [event["type"] for event in events]
    (completions,) = [event for event in events if event["type"] == "tool.execution_complete"]
    assert completions["data"]["result"]["content"] == LOADED
    (told,) = [event["data"] for event in events if event["type"] == "user.message" and event["data"].get("source")]
    assert (told["source"], told["content"]) == ("skill-tea", context)


async def test_the_tool_lists_enabled_skills_and_is_offered_only_if_there_are_any(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills")
    write_skill(tmp_path / "skills", "coffee")
    write_skill(tmp_path / "skills", "secret", front="description: For people.\ndisable-model-invocation: true")
    async with serving(tmp_path) as (server, provider):
        wire = server.wire

        async def tool(session: str) -> str | None:
            tools = (await send_prompt(wire, provider, session)).json["tools"]
            found = [tool["function"]["description"] for tool in tools if tool["function"]["name"] == "skill"]
            return found[0] if found else None

        session = await wire.create(at(provider), model="m", skillDirectories=[str(tmp_path / "skills")])
        head = "Load a skill: instructions for one kind of task. Do so first where one fits."
        assert await tool(session) == f"{head}\n- coffee: How to make coffee.\n- tea: How to make tea."
        await wire.call("session.skills.disable", {"sessionId": session, "name": "coffee"})
        assert await tool(session) == f"{head}\n- tea: How to make tea."
        await wire.call("session.skills.disable", {"sessionId": session, "name": "tea"})
        assert await tool(session) is None
        await wire.call("session.skills.enable", {"sessionId": session, "name": "tea"})
        assert await tool(session) == f"{head}\n- tea: How to make tea."
        assert await tool(await wire.create(at(provider), model="m")) is None


async def test_the_nearest_skill_of_a_name_wins(tmp_path: Path) -> None:
    project = tmp_path / "repository" / "sub" / "here"
    home = tmp_path / "home"
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    given = write_skill(tmp_path / "given", "one")
    write_skill(project / ".github" / "skills", "one")
    here = write_skill(project / ".claude" / "skills", "two")
    above = write_skill(project.parent / ".agents" / "skills", "three")
    root = write_skill(tmp_path / "repository" / ".github" / "skills", "four")
    write_skill(tmp_path / ".github" / "skills", "outside")
    mine = write_skill(home / "skills", "five")
    shared = write_skill(tmp_path / "user" / ".agents" / "skills", "six")
    async with running_server(tmp_path, env={"HOME": str(tmp_path / "user")}) as server:
        wire = server.wire
        options = {"workingDirectory": str(project), "skillDirectories": ["../../../given"]}
        session = await wire.create(scripted(), **options, enableConfigDiscovery=True)
        found = {
            name: (skill["source"], skill["path"]) for name, skill in (await list_skills(wire, session)).items()
        }
        relative = str(project / "../../../given/one/SKILL.md")
        assert found == {
            "one": ("custom", relative),
            "two": ("project", str(here)),
            "three": ("inherited", str(above)),
            "four": ("project", str(root)),
            "five": ("personal-copilot", str(mine)),
            "six": ("personal-agents", str(shared)),
        }
        assert os.path.samefile(relative, given)  # noqa: ASYNC240 - the test has nothing else to do
        problems = await wire.call("session.skills.reload", {"sessionId": session})
        (warning,) = problems["warnings"]
        assert "ignored, because" in warning
        # Skills of the project are found only with discovery; `enableSkills` can disable all.
        assert set(await list_skills(wire, await wire.create(scripted(), **options))) == {"one", "five", "six"}
        assert await list_skills(wire, await wire.create(scripted(), **options, enableSkills=False)) == {}


async def test_skills_can_be_disabled_for_a_session_persistently(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills")
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(
            scripted({"text": "x"}),
            sessionId="kept",
            skillDirectories=[str(tmp_path / "skills")],
            disabledSkills=["tea", "of-later"],
        )
        loaded = await wire.event("session.skills_loaded", session=session)
        assert [(skill["name"], skill["enabled"]) for skill in loaded["data"]["skills"]] == [("tea", False)]
        since = len(wire.messages)
        await wire.call("session.skills.enable", {"sessionId": session, "name": "tea"})
        loaded = await wire.event("session.skills_loaded", session=session, since=since)
        assert loaded["data"]["skills"][0]["enabled"] is True
        await wire.call("session.skills.enable", {"sessionId": session, "name": "of-later"})
        error = await wire.error_of("session.skills.enable", {"sessionId": session, "name": "none"})
        assert error["message"] == "unknown skill 'none'"
        await wire.call("session.skills.disable", {"sessionId": session, "name": "tea"})
        await wire.prompt(session)
        await wire.call("session.destroy", {"sessionId": session})
        await wire.call("session.resume", {"sessionId": "kept"})
        assert (await list_skills(wire, "kept"))["tea"]["enabled"] is False


async def test_new_and_changed_skills_apply_after_a_reload(tmp_path: Path) -> None:
    folder = tmp_path / "skills"
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted(), skillDirectories=[str(folder)])
        await wire.call("session.skills.ensureLoaded", {"sessionId": session})
        assert await list_skills(wire, session) == {}
        path = write_skill(folder, front="description: New.\nargument-hint: '[kind]'\nuser-invocable: false")
        assert await list_skills(wire, session) == {}
        assert await wire.call("session.skills.reload", {"sessionId": session}) == {"warnings": [], "errors": []}
        assert await list_skills(wire, session) == {
            "tea": {
                "name": "tea",
                "description": "New.",
                "source": "custom",
                "userInvocable": False,
                "enabled": True,
                "path": str(path),
                "argumentHint": "[kind]",
            }
        }
        assert await wire.call("session.skills.getInvoked", {"sessionId": session}) == {"skills": []}


INVALID = {
    "a": ("---\nname: [\n---\nx", "the front matter is not YAML (line 3)"),
    "b": ("---\n- a\n---\nx", "the front matter is not a mapping"),
    "c": ("---\nname: 'a\"b'\n---\nx", "invalid name: expected 1 to 128 letters, digits and . _ - :"),
    "d": ("---\nname: 3\n---\nx", "invalid name: expected 1 to 128 letters, digits and . _ - :"),
    "e": ("---\nx: " + "[" * 5000 + "\n---\n", "the front matter is not YAML"),
    "e2": ("---\nx: &x [1]\ny: [*x, *x]\n---\nx", "the front matter contains an alias"),
    "e3": (f"---\nx: {'x' * 20_000}\n---\nx", "the front matter has more than 16384 characters"),
    "f": ("x" * 300_000, "cannot be read: more than 262144 bytes"),
}


async def test_an_invalid_file_is_reported_and_loses_only_its_skill(tmp_path: Path) -> None:
    folder = tmp_path / "skills"
    write_skill(folder)
    for name, (text, _) in INVALID.items():
        (folder / name).mkdir()
        (folder / name / "SKILL.md").write_text(text)
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted(), skillDirectories=[str(folder)])
        assert set(await list_skills(server.wire, session)) == {"tea"}
        found = await server.wire.call("session.skills.reload", {"sessionId": session})
    for error, (name, (_, problem)) in zip(sorted(found["errors"]), INVALID.items(), strict=True):
        assert error.startswith(f"{folder}/{name}/SKILL.md: {problem}")


async def test_an_unknown_skill_is_an_error_that_lists_the_known_ones(tmp_path: Path) -> None:
    path = write_skill(tmp_path / "skills")
    script = scripted(calls("skill", skill="nope"), calls("skill", "call-2", skill="/tea"), {"text": "x"})
    async with running_server(tmp_path) as server:
        session = await server.wire.create(script, skillDirectories=[str(tmp_path / "skills")])
        path.unlink()
        events = await server.wire.prompt(session)
    failed = [event["data"]["error"]["message"] for event in events if event["type"] == "tool.execution_complete"]
    assert failed == [
        "There is no skill 'nope'. Skills: tea.",
        "The skill 'tea' cannot be loaded: cannot be read: No such file or directory.",
    ]
    assert "skill.invoked" not in [event["type"] for event in events]


async def test_skills_are_discovered_and_disabled_for_the_server(tmp_path: Path) -> None:
    given, project = tmp_path / "given", tmp_path / "project"
    one = write_skill(given, "one")
    two = write_skill(project / ".claude" / "skills", "two")
    write_skill(tmp_path / "home" / "skills", "mine")
    (given / "bad").mkdir()
    (given / "bad" / "SKILL.md").write_text("---\nname: '?'\n---\n")
    everything = {"skillDirectories": [str(given)], "projectPaths": [str(project)]}
    async with running_server(tmp_path, env={"HOME": str(tmp_path / "user")}) as server:
        wire = server.wire
        found = await wire.call("skills.discover", everything)
        assert [(skill["name"], skill["path"], skill.get("projectPath")) for skill in found["skills"]] == [
            ("one", str(one), None),
            ("two", str(two), str(project)),
            ("mine", str(server.home / "skills" / "mine" / "SKILL.md"), None),
        ]
        assert all(skill["enabled"] for skill in found["skills"])
        assert len(found["errors"]) == 1
        named = await wire.call("skills.discover", {"skillDirectories": [str(given)], "excludeHostSkills": True})
        assert [skill["name"] for skill in named["skills"]] == ["one"]

        assert await wire.call("skills.config.setDisabledSkills", {"disabledSkills": ["one", "one"]}) is None
        assert await wire.call("skills.config.setSkillDisabled", {"name": "two", "disabled": True}) is None
        stored = json.loads((server.home / "settings.json").read_text())
        assert stored == {"disabledSkills": ["one", "two"]}
        found = await wire.call("skills.discover", everything)
        assert [skill["enabled"] for skill in found["skills"]] == [False, False, True]
        session = await wire.create(scripted(), skillDirectories=[str(given)], disabledSkills=["mine"])
        assert {name: skill["enabled"] for name, skill in (await list_skills(wire, session)).items()} == {
            "one": False,
            "mine": False,
        }
        await wire.call("skills.config.setSkillDisabled", {"name": "two", "disabled": False})
        assert json.loads((server.home / "settings.json").read_text()) == {"disabledSkills": ["one"]}
        error = await wire.error_of("skills.discover", {"projectPaths": ["relative"]})
        assert error["message"] == "'relative' is not an absolute path"


async def test_the_folders_of_skills_are_listed_with_the_one_for_new_skills(tmp_path: Path) -> None:
    async with running_server(tmp_path, env={"HOME": str(tmp_path)}) as server:
        paths = (await server.wire.call("skills.getDiscoveryPaths", {"projectPaths": ["/p"]}))["paths"]
        assert [(path["path"], path["scope"], path["preferredForCreation"]) for path in paths] == [
            ("/p/.github/skills", "project", True),
            ("/p/.claude/skills", "project", False),
            ("/p/.agents/skills", "project", False),
            (f"{server.home}/skills", "personal-copilot", True),
            (f"{tmp_path}/.agents/skills", "personal-agents", True),
        ]
        assert paths[0]["projectPath"] == "/p"
        alone = await server.wire.call(
            "skills.getDiscoveryPaths", {"projectPaths": ["/p"], "excludeHostSkills": True}
        )
        assert len(alone["paths"]) == 3


async def test_a_resumed_session_keeps_the_text_of_a_loaded_skill(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills")
    async with serving(tmp_path, says("one"), says("two")) as (server, provider):
        wire = server.wire
        script = scripted(calls("skill", skill="tea"), {"text": "ok"})
        session = await wire.create(script, skillDirectories=[str(tmp_path / "skills")])
        await wire.prompt(session)
        await wire.call("session.destroy", {"sessionId": session})
        await wire.call("session.resume", {"sessionId": session, "provider": at(provider), "model": "m"})
        messages = (await send_prompt(wire, provider, session)).json["messages"]
        assert [message["content"] for message in messages if message["role"] == "tool"] == [LOADED]
        assert sum("Warm the pot." in str(message["content"]) for message in messages) == 1
        assert len((await wire.call("session.skills.getInvoked", {"sessionId": session}))["skills"]) == 1


# --- calls by users -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", ["/tea green, please", " /TEA"])
async def test_a_prompt_that_begins_with_the_name_of_a_skill_loads_it(tmp_path: Path, prompt: str) -> None:
    path = write_skill(tmp_path / "skills", front="name: tea\ndescription: d\ndisable-model-invocation: true")
    async with serving(tmp_path) as (server, provider):
        wire = server.wire
        session = await wire.create(at(provider), model="m", skillDirectories=[str(tmp_path / "skills")])
        messages = str((await send_prompt(wire, provider, session, prompt)).json["messages"])
        events = wire.events(session)
    (event,) = [event["data"] for event in events if event["type"] == "skill.invoked"]
    assert (event["name"], event["trigger"], event["path"]) == ("tea", "user-invoked", str(path))
    prompt_message, skill_message = [event["data"] for event in events if event["type"] == "user.message"]
    assert (prompt_message["content"], skill_message["source"]) == (prompt, "skill-tea")
    assert skill_message["content"].startswith('<skill-context name="tea">')
    assert messages.index(prompt.strip()) < messages.index("Warm the pot.")


@pytest.mark.parametrize("prompt", ["/teapot", "/usr/bin/tea", "make /tea", "/hidden", "/off", "/"])
async def test_other_prompts_load_no_skill(tmp_path: Path, prompt: str) -> None:
    write_skill(tmp_path / "skills")
    write_skill(tmp_path / "skills", "hidden", front="description: d\nuser-invocable: false")
    write_skill(tmp_path / "skills", "off")
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(
            scripted({"text": "hm"}), skillDirectories=[str(tmp_path / "skills")], disabledSkills=["off"]
        )
        events = await wire.prompt(session, prompt)
    assert [event["data"]["content"] for event in events if event["type"] == "user.message"] == [prompt]
    assert "skill.invoked" not in [event["type"] for event in events]


async def test_an_unreadable_skill_is_reported_and_the_prompt_runs(tmp_path: Path) -> None:
    path = write_skill(tmp_path / "skills")
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted({"text": "hm"}), skillDirectories=[str(tmp_path / "skills")])
        assert "tea" in await list_skills(wire, session)
        path.unlink()
        events = await wire.prompt(session, "/tea")
    (warning,) = [event["data"] for event in events if event["type"] == "session.warning"]
    assert (warning["warningType"], "'tea'" in warning["message"]) == ("skill", True)
    assert [event["data"]["content"] for event in events if event["type"] == "assistant.message"] == ["hm"]
