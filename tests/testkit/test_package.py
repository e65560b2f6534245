"""The wheel ``jumpseat-testkit`` alone, and the package for npm in both runners of tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from jumpseat_protocol.version import __version__
from jumpseat_testkit.patterns import differences
from tests.script.scripts import one_turn
from tests.support.forked import executable
from tests.support.limits import WAIT_S
from tests.support.pages import code_blocks
from tests.support.toolchains import missing, require_npm, require_program, tool_folder

ROOT = Path(__file__).parents[2]
NPM = ROOT / "testkit" / "node"
VITEST = "4.1.12"
PEER = [sys.executable, "-P", "-m", "jumpseat_testkit.faults"]

BUILD = "import sys, hatchling.build; hatchling.build.build_wheel(sys.argv[1])"
# Without the module `site`, nothing of this checkout is on the path.
RUN = """
import sys
sys.path[:0] = sys.argv[1:3]
from importlib.util import find_spec
assert find_spec("jumpseat") is None, "jumpseat is installed"
import pytest
sys.exit(pytest.main(["-q", "-p", "jumpseat_testkit.pytest_plugin", "-p", "no:cacheprovider", *sys.argv[3:]]))
"""

TESTS = """
import sys
import pytest

AGENT = [sys.executable, "-P", "-m", "jumpseat_testkit.faults", "none", "acp-1"]
SCRIPT = "one.json"


@pytest.fixture
def anyio_backend():
    return "asyncio"


def test_a_script(play_script, faulty_server):
    play_script(SCRIPT, AGENT)
    with pytest.raises(pytest.fail.Exception, match="already answered"):
        play_script(SCRIPT, faulty_server("two_answers", "acp-1"))
    with pytest.raises(pytest.fail.Exception, match="expected the command of the server"):
        play_script(SCRIPT)


def test_a_faulty_client(faulty_client):
    assert faulty_client("two_answers", SCRIPT, AGENT).how == "goes on"
    with pytest.raises(pytest.fail.Exception, match="'broken_line': ends"):
        faulty_client("broken_line", SCRIPT, AGENT)


@pytest.mark.anyio
async def test_by_hand(agent_server, assert_events):
    async with agent_server(AGENT, protocol="acp-1") as agent:
        await agent.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        session = await agent.call("session/new", {})
        await agent.send({"id": "p", "method": "session/prompt", "params": session})
        assert await agent.until(lambda: agent.incoming()[-1].get("id") == "question-1", 20)
        assert_events(agent, "agent_message_chunk", {"sessionUpdate": "tool_call", "status": "pending"})
        with pytest.raises(AssertionError, match='status: expected "done", got "pending"'):
            assert_events(agent, {"sessionUpdate": "tool_call", "status": "done"})
        assert agent.problems == []
"""


@pytest.mark.thorough
def test_the_wheel_needs_no_server_of_ours(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", BUILD, str(tmp_path)], cwd=ROOT / "testkit", check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"jumpseat_testkit-{__version__}-py3-none-any.whl"
    with ZipFile(wheel) as archive:
        # Without the metadata: those of jumpseat are found beside the libraries.
        archive.extractall(tmp_path / "installed", [name for name in archive.namelist() if "dist-info" not in name])
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "one.json").write_text(json.dumps(one_turn("acp-1", within=20)))
    installed = str(tmp_path / "installed")
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", RUN, installed, sysconfig.get_path("purelib"), "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": installed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_the_example_of_the_page_tests_an_agent(tmp_path: Path) -> None:
    (example,) = code_blocks("docs/testing.md", "python")
    (tmp_path / "test_my_agent.py").write_text(example.replace('"my-agent"', repr(executable())))
    arguments = ["-q", "-p", "jumpseat_testkit.pytest_plugin", "-p", "no:cacheprovider", "test_my_agent.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


JAVASCRIPT = """
import assert from "node:assert/strict";
import { test } from "RUNNER";
import { assertScript, differences, serveModel, startAgent } from "@jumpseat/testkit";

const agent = (kind, protocol) => [...PEER, kind, protocol];

for (const protocol of ["copilot", "acp-1", "acp-2", "ahp"]) {
  test(`plays ${protocol}`, () => assertScript(`${protocol}.json`, { server: agent("none", protocol) }));
}

test("says where an agent differs", async () => {
  const play = (kind) => assertScript("acp-1.json", { server: agent(kind, "acp-1") });
  await assert.rejects(play("two_answers"), /already answered/);
  await assert.rejects(play("unknown_stop_reason"), /result.stopReason: expected "end_turn"/);
  await assert.rejects(play("dies_in_turn"), /the agent has exited with/);
  await assert.rejects(assertScript({ steps: [], strict: true }, { server: "x" }), /only the player in Python/);
});

test("checks the rules that all protocols share", async () => {
  const kinds = {
    number: /JSON object/,
    no_params: /params to be an object/,
    no_session: /to be a string/,
    event_as_string: /to be an object/,
    no_kind: /to be a string/,
    kind_of_another_type: /to be a string/,
    asks_twice: /used by an earlier request/,
  };
  await Promise.all(
    Object.entries(kinds).map(([kind, expected]) =>
      assert.rejects(assertScript("acp-1.json", { server: agent(kind, "acp-1") }), expected, kind),
    ),
  );
});

test("finds files of the command beside the tests", async () => {
  await assertScript("acp-1.json", { server: [process.execPath, "here.mjs"] });
});

test("talks by hand", async () => {
  const one = startAgent(agent("none", "acp-1"), { protocol: "acp-1" });
  try {
    await one.call("initialize", { protocolVersion: 1, clientCapabilities: {} });
    assert.deepEqual(differences({ error: { code: -32601 } }, await one.request("no/such")), []);
    assert.deepEqual(one.problems, []);
    assert.equal(await one.closeInput(), 0);
  } finally {
    await one.kill();
  }
});

test("serves a model", async () => {
  const model = await serveModel({ turns: [{ text: "Hello {{last_user}}" }] });
  const post = async (path, body) =>
    (await fetch(model.url + path, { method: "POST", body: JSON.stringify(body) })).json();
  const messages = [{ role: "user", content: "you" }];
  try {
    assert.equal((await post("/chat/completions", { messages })).choices[0].message.content, "Hello you");
    assert.equal((await post("/messages", { messages })).content[0].text, "Hello you");
    assert.equal((await post("/responses", { input: "you" })).output[0].content[0].text, "Hello you");
    assert.equal(model.requests.length, 3);
  } finally {
    await model.close();
  }
});
"""


HERE = """
import { spawn } from "node:child_process";
const [program, ...words] = WORDS;
spawn(program, words, { stdio: "inherit" }).on("exit", (code) => process.exit(code));
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder of a Node.js project that has our package."""
    yaml = require_npm("yaml", "2.9.1")
    modules = tmp_path / "node_modules"
    shutil.copytree(NPM, modules / "@jumpseat" / "testkit")
    (modules / "yaml").symlink_to(yaml / "node_modules" / "yaml")
    words = json.dumps([*PEER, "none", "acp-1"])
    (tmp_path / "here.mjs").write_text(HERE.replace("WORDS", words))
    for protocol in ("copilot", "acp-1", "acp-2", "ahp"):
        (tmp_path / f"{protocol}.json").write_text(json.dumps(one_turn(protocol, within=20)))
    return tmp_path


def write_tests(project: Path, runner: str) -> str:
    name = "our.test.mjs"
    (project / name).write_text(JAVASCRIPT.replace("...PEER", json.dumps(PEER)[1:-1]).replace("RUNNER", runner))
    return name


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=4 * WAIT_S)


@pytest.mark.thorough
def test_node_runs_our_package(project: Path) -> None:
    done = run(project, require_program("node"), "--test", write_tests(project, "node:test"))
    assert done.returncode == 0, done.stdout
    assert "pass 9" in done.stdout


def require_vitest() -> Path:
    """Return the folder of vitest. `require_npm` leaves out optional parts, such as its bundler."""
    npm = require_program("npm")
    with tool_folder(f"npm-vitest-{VITEST}-whole") as folder:
        if not (folder / ".installed").exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "package.json").write_text(json.dumps({"private": True}))
            done = run(folder, npm, "install", "--silent", "--no-audit", "--no-fund", f"vitest@{VITEST}")
            if done.returncode != 0:
                missing(f"cannot install vitest: {done.stderr[-300:]}")
            (folder / ".installed").touch()
        return folder


@pytest.mark.thorough
def test_vitest_runs_our_package(project: Path) -> None:
    vitest = require_vitest() / "node_modules"
    for path in vitest.iterdir():
        target = project / "node_modules" / path.name
        if not target.exists():
            target.symlink_to(path)
    program = str(vitest / "vitest" / "vitest.mjs")
    options = ("--testTimeout", "60000", "--no-color")
    done = run(project, require_program("node"), program, "run", *options, write_tests(project, "vitest"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 passed" in done.stdout


CASES: list[tuple[Any, Any]] = [
    ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 2], "c": 3}}),
    ([1, "..."], [1, 2, 3]),
    ([1, 2, "..."], [1]),
    ([1], [1, 2]),
    ({"$exactly": {"a": 1}}, {"a": 1, "b": 2}),
    ({"$exactly": {"a": [1]}}, {"a": [1]}),
    ({"$one_of": [1, "two"]}, "two"),
    ({"$one_of": [1, 2]}, 3),
    ({"$has": [{"n": 2}, {"n": 1}]}, [{"n": 1}, {"n": 2}, {"n": 3}]),
    ({"x": {"$has": [5]}}, {"x": [1]}),
    ({"$has": [5]}, 5),
    ("<any>", None),
    ("<number>", True),
    ("<id>", "0b6f0b5e-6c7b-4a57-9d5e-0c7a8b3c2d1e"),
    ("<time>", "2026-01-02T03:04:05.678Z"),
    ({"gone": "<absent>"}, {}),
    ({"gone": "<absent>"}, {"gone": 0}),
    ("/^a.c$/", "a\nc"),
    ("=/^a.c$/", "/^a.c$/"),
    ({"a": "${x}", "b": "${x}"}, {"a": 1, "b": 1}),
    ({"a": "${x}", "b": "${x}"}, {"a": 1, "b": 2}),
    ({"a": "id ${x}.", "b": "${x}"}, {"a": "id 7.", "b": "7"}),
    ({"a": "${x}"}, {}),
    (1, True),
    (None, None),
    ({"a": 1}, None),
]


def test_both_packages_match_the_same_values(project: Path) -> None:
    (project / "cases.json").write_text(json.dumps(CASES))
    (project / "cases.mjs").write_text(
        """
        import { readFileSync } from "node:fs";
        import { differences } from "@jumpseat/testkit";
        const cases = JSON.parse(readFileSync("cases.json", "utf8"));
        const places = (found) => found.map((one) => one.slice(0, one.indexOf(": expected")));
        console.log(JSON.stringify(cases.map(([pattern, value]) => places(differences(pattern, value)))));
        """
    )
    found = json.loads(run(project, require_program("node"), "cases.mjs").stdout)
    for (pattern, value), places in zip(CASES, found, strict=True):
        expected = [one.path or "(root)" for one in differences(pattern, value, {})]
        assert places == expected, (pattern, value)


def test_the_package_for_npm_has_our_version() -> None:
    about: Mapping[str, Any] = json.loads((NPM / "package.json").read_text())
    assert about["version"] == __version__
