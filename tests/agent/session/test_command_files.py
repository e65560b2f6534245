"""Prompt files and commands in Claude's format: where they are found, what they become, and that nothing is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jumpseat.agent.session.command_files import NOT_RUN, expand
from tests.support.events import data_of
from tests.support.fake_openai import MODEL, fake_openai, says, texts
from tests.support.server import running_server

FILE: dict[str, object] = {"type": "file", "path": "src/main.py"}
SELECTION: dict[str, object] = {"type": "selection", "filePath": "/project/a.py", "text": "x = 1"}


@pytest.mark.parametrize(
    ("text", "args", "expected"),
    [
        ("Fix issue $1, priority $2.", "12 high", "Fix issue 12, priority high."),
        ("Fix issue $1$2.", "12", "Fix issue 12."),
        ("Look at $ARGUMENTS", "the 'old one'", "Look at the 'old one'"),
        ("$ARGUMENTS[1] and $ARGUMENTS[0]", "'a b' c", "c and a b"),
        ("It's $1", "it's", "It's it's"),
        ("It costs $100 or ${PATH} or $HOME", "x", "It costs $100 or ${PATH} or $HOME"),
        ("Say $ARGUMENTS", "$1 ${file}", "Say $1 ${file}"),
        ("Make ${input:name} in ${input:kind:class or function}", "kind=class Tea", "Make Tea in class"),
        ("Make ${input:name} of ${input:rest}", "Tea from green leaves", "Make Tea of from green leaves"),
        ("Explain ${input:what}", "a = 'b c'", "Explain a = 'b c'"),
        ("Make ${input:name:the name}", "", "Make ${input:name:the name}"),
    ],
)
def test_the_words_of_a_call_take_their_places(text: str, args: str, expected: str) -> None:
    assert expand(text, args, [], Path("/project")) == expected


def test_variables_are_those_of_the_attached_file_and_selection() -> None:
    text = "${file} ${relativeFile} ${fileBasenameNoExtension} ${fileDirname} ${workspaceFolder} ${selection}"
    cwd = Path("/project")
    whole = "/project/src/main.py src/main.py main /project/src /project x = 1"
    assert expand(text, "", [SELECTION, FILE], cwd) == whole
    assert expand("${file}: ${selectedText}", "", [SELECTION], cwd) == "/project/a.py: x = 1"
    assert expand("${file}", "", [], cwd) == "${file}"


@pytest.mark.parametrize("text", ["State: !`git status`", "```!\ngit status\n```"])
def test_shell_commands_are_not_run_and_the_model_is_told(text: str) -> None:
    assert expand(text, "", [], Path("/project")) == f"{text}\n\n{NOT_RUN}"
    assert expand("$ARGUMENTS", "!`id`", [], Path("/project")) == "!`id`"


def write(path: Path, text: str, encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))


@pytest.mark.anyio
async def test_commands_of_all_places_are_listed_and_expand_in_a_prompt(tmp_path: Path) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    (project / ".git").mkdir(parents=True)
    front = (
        "---\ndescription: Explain it\nargument-hint: '[topic]'\nmode: ask\n---\nExplain ${input:topic} to a child."
    )
    write(project / ".github/prompts/explain.prompt.md", front, "utf-16")
    write(project / ".github/prompts/notes.md", "No prompt file.")
    write(project / ".github/prompts/my work.prompt.md", "\ufeff---\r\nname: named\r\n---\r\nNamed.")
    write(project / ".claude/commands/web/page.md", "Make the page $1.\n\nState: !`touch ran`")
    lenient = "---\nargument-hint: [pr] [priority]\ndescription: Review: well\n---\nReview."
    write(project / ".claude/commands/lenient.md", lenient)
    write(project / ".claude/commands/listed.md", "---\nargument-hint: [pr]\n---\n# Take it\n\nNow.")
    write(project / ".claude/commands/help.md", "---\ndescription: Call for help\n---\nHelp with $ARGUMENTS!")
    write(project / "sub/.claude/commands/deep.md", "Deep.")
    write(other / ".github/prompts/added.prompt.md", "Added.")
    write(tmp_path / "home/prompts/mine.prompt.md", "Mine.")
    write(tmp_path / ".claude/commands/own.md", "Own.")
    write(tmp_path / "outside.md", "Secret.")
    (project / ".claude/commands/link.md").symlink_to(tmp_path / "outside.md")
    script = {"/explain": [says("One.")], "/web:page": [says("Two.")], "/project:help": [says("Three.")]}
    async with fake_openai(script) as model, running_server(tmp_path) as server:
        wire = server.wire
        folders = {"workingDirectory": str(project / "sub"), "additionalDirectories": [str(other)]}
        provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"}
        session = await wire.create(provider, model=MODEL, **folders)
        about = {"sessionId": session}
        listed = (await wire.call("session.commands.list", about))["commands"]
        skills = {command["name"]: command for command in listed if command["kind"] == "skill"}
        of_project = ["deep", "explain", "lenient", "listed", "named", "project:help", "web:page"]
        assert sorted(skills) == sorted([*of_project, "added", "mine", "own"])
        assert (skills["lenient"]["description"], skills["lenient"]["input"]["hint"]) == (
            "Review: well",
            "[pr] [priority]",
        )
        assert (skills["listed"]["description"], skills["listed"]["input"]["hint"]) == ("Take it", "[pr]")
        assert skills["explain"]["description"] == "Explain it"
        assert skills["explain"]["input"] == {"hint": "[topic]"}
        assert skills["project:help"]["description"] == "Call for help (/help is another command)"
        reloaded = await wire.call("session.skills.reload", about)
        assert [error.rpartition(": ")[2] for error in reloaded["errors"]] == ["leads out of the project"]
        shown = await wire.call("session.commands.invoke", {**about, "name": "help"})
        assert "/explain [[topic]]  Explain it" in shown["text"]

        events = await wire.prompt(session, "/explain tea and coffee")
        assert "Explain tea and coffee to a child." in texts(model.requests[-1], "user")[-1]
        assert data_of(events, "session.info")[0]["message"].endswith("have no effect here: mode")
        await wire.prompt(session, "/web:page start")
        assert "Make the page start.\n\nState: !`touch ran`\n\n" + NOT_RUN in texts(model.requests[-1], "user")[-1]
        called = await wire.call("session.commands.invoke", {**about, "name": "project:help", "input": "tea"})
        assert called["prompt"] == "/project:help tea"
        await wire.prompt(session, called["prompt"])
        assert "Help with tea!" in texts(model.requests[-1], "user")[-1]
    assert not any("ran" in names for _, _, names in os.walk(tmp_path))
