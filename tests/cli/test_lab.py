"""``jumpseat lab``: the tasks and their checks, the simulated model, and a few tasks through the real server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from jumpseat.cli.lab.clumsy import Asked, ClumsyModel, Said
from jumpseat.cli.lab.model_server import RealModel
from jumpseat.cli.lab.offers import Offer, Tool
from jumpseat.cli.lab.runs import Outcome, Plan, run_tasks, summary
from jumpseat.cli.lab.slips import RATES
from jumpseat.cli.lab.tasks import Step, Task, load_tasks, malformed
from jumpseat.cli.lab.wires import WIRES, read, stream, write
from tests.support.cases import check_each
from tests.support.fake_openai import calls as fakes
from tests.support.fake_openai import fake_openai, says
from tests.support.forked import executable
from tests.support.limits import WAIT_S

KINDS = {"edit": 25, "find": 20, "fix": 15, "refactor": 15, "follow": 15, "long": 10}


def tool(name: str, *arguments: str) -> Tool:
    return Tool(name, {"properties": {argument: {"type": "string"} for argument in arguments}})


AGENTS = {
    "one with many tools": [
        *(tool("view", "path", "view_range"), tool("edit", "path", "old_str", "new_str")),
        *(tool("create", "path", "file_text"), tool("grep", "pattern", "path"), tool("bash", "command")),
    ],
    "one with other names": [
        *(tool("read_file", "filePath"), tool("replace", "filePath", "oldString", "newString")),
        *(tool("write_file", "filePath", "content"), tool("execute", "cmd")),
    ],
    "one with a list of edits": [
        *(tool("read", "path"), tool("write", "path", "content"), tool("bash", "command")),
        Tool("edit", {"properties": {"path": {}, "edits": {"items": tool("", "oldText", "newText").schema}}}),
    ],
    "a shell": [tool("shell", "command")],
}


def test_there_are_a_hundred_tasks_of_all_kinds_in_five_languages() -> None:
    tasks = load_tasks()

    assert len({(task.prompt, task.checks) for task in tasks}) == len(tasks) == 100
    assert {kind: sum(task.kind == kind for task in tasks) for kind in KINDS} == KINDS
    languages = [task.language for task in tasks]
    assert {languages.count(language) for language in languages} == {20}


def solved(task: Task, folder: Path) -> str:
    """Do the steps of a task as they are written, and return the answer."""
    task.lay(folder)
    for step in task.steps:
        if step.edit:
            before = (folder / step.edit).read_text(encoding="utf-8")
            assert before.count(step.old) == 1, task.id
            (folder / step.edit).write_text(before.replace(step.old, step.new), encoding="utf-8", newline="")
        if step.create:
            (folder / step.create).parent.mkdir(parents=True, exist_ok=True)
            (folder / step.create).write_text(step.text, encoding="utf-8", newline="")
    return task.steps[-1].answer


def test_each_check_accepts_the_solution_and_refuses_an_untouched_project(tmp_path: Path) -> None:
    def check(task: Task) -> None:
        folder = tmp_path / task.id
        answer = solved(task, folder)
        # The toolchains of five languages take minutes.
        quick = replace(task, checks=tuple(check for check in task.checks if not check.command))
        assert quick.problems(folder, answer) == []
        untouched = tmp_path / f"{task.id}-untouched"
        quick.lay(untouched)
        assert quick.problems(untouched, "") != []

    check_each({task.id: task for task in load_tasks()}, check)


def test_a_broken_file_and_a_changed_file_beside_it_are_wrong(tmp_path: Path) -> None:
    (task,) = load_tasks(("go/edit-constant",))
    answer = solved(task, tmp_path)
    (tmp_path / "policy.go").write_text("package main\n", encoding="utf-8")
    (tmp_path / "cache.go").write_text((tmp_path / "cache.go").read_text() + "func broken( {\n", encoding="utf-8")

    assert task.problems(tmp_path, answer) == ["cache.go: malformed: '{' without its end", "policy.go: changed"]
    assert malformed("a.js", 'say("(");  // )') is None
    assert malformed("a.json", "{") is not None


class Workspace:
    """Runs calls of the simulated model on files, as the simplest agent does: nothing is forgiven."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def call(self, said: Said, tools: Sequence[Tool]) -> str:
        try:
            given: dict[str, Any] = json.loads(said.arguments)
            names = {each.name for each in tools}
            if said.name not in names:
                return f"unknown tool; there are {', '.join(names)}"
            path = self._folder / str(given.get("path"))
            if said.name == "grep":
                return "\n".join(map(str, self._found(str(given["pattern"]))))
            if said.name == "view":
                return path.read_text(encoding="utf-8")
            if said.name == "create":
                path.write_text(given["file_text"], encoding="utf-8")
                return "created"
            text = path.read_text(encoding="utf-8")
            if text.count(given["old_str"]) != 1:
                return "not found"
            path.write_text(text.replace(given["old_str"], given["new_str"]), encoding="utf-8")
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            return f"invalid: {error}"
        return "updated"

    def _found(self, text: str) -> list[str]:
        paths = [path for path in self._folder.rglob("*") if path.is_file()]
        lines = [(path, line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
        return [f"{path.relative_to(self._folder).as_posix()}: {line}" for path, line in lines if text in line]


def play(task: Task, seed: str, folder: Path) -> tuple[list[Said], list[str], list[str]]:
    """Return what the model says, its mistakes, and what is wrong in the end."""
    task.lay(folder)
    model, workspace = ClumsyModel(task, seed), Workspace(folder)
    tools = [each for each in AGENTS["one with many tools"] if each.name != "bash"]
    said = [model.answer(Asked([task.prompt], [], tools))]
    while said[-1].name:
        result = workspace.call(said[-1], tools)
        said.append(model.answer(Asked([task.prompt], [result], tools)))
    return said, model.slips, task.problems(folder, said[-1].text)


def test_the_same_seed_makes_the_same_mistakes_and_every_kind_occurs(tmp_path: Path) -> None:
    tasks = [task for task in load_tasks() if not any(step.run for step in task.steps)]
    slips: set[str] = set()
    wrong = 0
    for task in tasks:
        said, made, problems = play(task, "7", tmp_path / "once" / task.id)
        assert play(task, "7", tmp_path / "again" / task.id) == (said, made, problems)
        assert made or not problems, task.id
        slips.update(made)
        wrong += bool(problems)

    assert slips == set(RATES)
    # The simplest agent loses some, and not all.
    assert 0 < wrong < len(tasks) / 2


HINTS = {
    "wrong_path": ["ENOENT: no such file. Did you mean {path}?", "File not found; similar names: ./{path}"],
    "old_text": ["Error: no exact match. The nearest text is:\n{old}", "not found, closest lines:\n>{old}"],
    "foreign_name": [
        "Unknown tool, expected one of view, edit, bash.",
        "Model tried to call an invalid tool [edit,view]",
    ],
}
PLAIN = ["It was not found.", "error: failed", '{"ok": false, "reason": "Could not do it, invalid request"}']


def blundered(slip: str) -> tuple[Callable[[], tuple[ClumsyModel, Step]], str, str]:
    """Return a function that brings a model to its first mistake, the prompt of its task, and the right call."""
    tools = AGENTS["one with many tools"]
    for task in load_tasks(("python/edit-",)):
        files = dict(task.files())
        for seed in map(str, range(40)):

            def begin(
                task: Task = task, files: dict[str, str] = files, seed: str = seed
            ) -> tuple[ClumsyModel, Step]:
                model = ClumsyModel(task, seed)
                model.answer(Asked([task.prompt], [], tools))
                step = task.steps[0]
                if not model.slips:
                    model.answer(Asked([task.prompt], [files[step.view]], tools))
                    step = task.steps[1]
                return model, step

            model, step = begin()
            if model.slips == [slip]:
                right = (
                    Offer(tools).view(step.view) if step.view else Offer(tools).edit(step.edit, step.old, step.new)
                )
                assert right is not None
                return begin, task.prompt, json.dumps(right.arguments, ensure_ascii=False)
    pytest.fail(f"{slip} never comes first")


@pytest.mark.parametrize("slip", HINTS)
def test_hints_are_followed_whatever_their_words(slip: str) -> None:
    begin, prompt, right = blundered(slip)
    tools = AGENTS["one with many tools"]

    def after(result: str) -> Said:
        model, step = begin()
        told = result.replace("{path}", step.view or step.edit).replace("{old}", step.old)
        return model.answer(Asked([prompt], [told], tools))

    assert {after(hint).arguments for hint in HINTS[slip]} == {right}
    # Without a hint, the seed alone decides what comes next.
    assert len({after(result) for result in PLAIN}) == 1


def test_the_model_uses_the_tools_of_any_agent() -> None:
    (task,) = load_tasks(("python/edit-guard",))
    for name, tools in AGENTS.items():
        # A seed without a mistake in the first two steps.
        for seed in map(str, range(100)):
            model = ClumsyModel(task, seed)
            first = model.answer(Asked([task.prompt], [], tools))
            second = model.answer(Asked([task.prompt], [(dict(task.files()))["shop/prices.py"]], tools))
            if not model.slips:
                break
        else:
            pytest.fail(f"{name}: always a mistake")
        assert {first.name, second.name} <= {each.name for each in tools}
        assert "shop/prices.py" in first.arguments
        assert "a price is negative" in second.arguments


def test_each_wire_reads_results_and_writes_calls() -> None:
    said = Said("", "view", '{"path": "a"}')
    bodies: dict[str, dict[str, Any]] = {
        "chat/completions": {
            "messages": [{"role": "user", "content": "go"}, {"role": "tool", "content": "text of a"}],
            "tools": [{"type": "function", "function": {"name": "view", "parameters": {}}}],
        },
        "responses": {
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
                {"type": "function_call_output", "call_id": "1", "output": "text of a"},
            ],
            "tools": [{"type": "function", "name": "view", "parameters": {}}],
        },
        "messages": {
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "text of a"}]},
            ],
            "tools": [{"name": "view", "input_schema": {}}],
        },
    }
    for wire in WIRES:
        asked = read(wire, bodies[wire])
        assert (asked.prompts[0], asked.results[0], asked.tools[0].name) == ("go", "text of a", "view")
        assert '"view"' in json.dumps(write(wire, said, 1, (10, 4)))
        assert any('"view"' in event for event in stream(wire, said, 1, (10, 4)))


@pytest.mark.parametrize("protocol", ["copilot", "acp"])
def test_the_real_server_gets_through_a_few_tasks(protocol: str) -> None:
    arguments = ["--headless", "--stdio"] if protocol == "copilot" else ["acp"]
    tasks = load_tasks(("python/edit-guard", "go/find-value", "rust/follow-new-file"))
    outcomes: list[Outcome] = []

    plan = Plan([executable(), *arguments], protocol, ("3",), limit_s=WAIT_S)
    anyio.run(run_tasks, plan, tasks, outcomes.append)

    assert [outcome.problems for outcome in outcomes] == [[], [], []]
    figures = summary(outcomes)
    assert figures["succeeded"] == 3
    assert 0 < figures["cached"] < 1


@pytest.mark.anyio
async def test_a_real_model_gets_the_requests_and_its_key_and_the_agent_does_not() -> None:
    tasks = load_tasks(("python/find-value",))
    async with fake_openai(
        {tasks[0].prompt: [fakes("view", path="settings.json"), says("It is ", "7100.")]}
    ) as model:
        real = RealModel(model.base_url, "real-8b", "secret-key")
        plan = Plan([executable(), "--headless", "--stdio"], "copilot", real=real, window=8192, limit_s=WAIT_S)
        (outcome,) = await run_tasks(plan, tasks, lambda _outcome: None)

    assert (outcome.problems, outcome.rounds, outcome.slips) == ([], 2, [])
    assert set(model.authorizations) == {"Bearer secret-key"}
    assert {request["model"] for request in model.requests} == {"real-8b"}
    assert "secret-key" not in json.dumps(model.requests)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--protocol", "command"], "expected --agent with --protocol command"),
        (["--agent", "no-such-agent acp"], "--agent: there is no program 'no-such-agent'"),
        (["python/", "golang/"], "no task begins with 'golang/'; 'jumpseat lab --list' lists them"),
        (["--first", "0"], "argument --first: expected a whole number of at least 1, not '0'"),
        (["--model", "qwen3"], "expected both --model and --base-url, or neither"),
    ],
)
def test_arguments_that_mean_nothing_are_errors(arguments: list[str], told: str) -> None:
    done = subprocess.run(
        [executable(), "lab", *arguments], capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert (done.returncode, done.stderr) == (2, f"error: {told}\n")
