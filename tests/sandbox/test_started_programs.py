"""What commands have changed in the files of programs that are started outside of the sandbox."""

from __future__ import annotations

import os
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from jumpseat.sandbox.command_times import SLACK_NS
from jumpseat.sandbox.mechanisms import Mechanism
from jumpseat.sandbox.reached_files import CommandLine
from jumpseat.sandbox.started_programs import Start, StartedPrograms
from jumpseat.store.user.private_file import PrivateFile
from tests.sandbox.parts import MECHANISMS, Confining
from tests.tools.session import until

pytestmark = [pytest.mark.anyio, pytest.mark.skipif("bubblewrap" not in MECHANISMS, reason="needs bubblewrap")]

PYTHON = "/usr/bin/python3"
FILES = {
    "tools/srv.py": "import helper\nfrom pkg.inner import x\n",
    "tools/helper.py": "import json\n",
    "tools/pkg/__init__.py": "",
    "tools/pkg/inner.py": "x = 1\n",
    "tools/run": "#!/bin/sh\nexec node ../server/main.js\n",
    "server/main.js": "const x = require('./lib/x'); require('zod')\n",
    "server/lib/x.js": "",
    "node_modules/zod/index.js": "",
    "node_modules/.bin/mcp": "#!/usr/bin/env node\n",
    "package.json": '{"scripts": {"mcp": "node server/main.js"}}\n',
    "src/app.py": "",
    "README.md": "",
    "Makefile": "mcp:\n\tpython3 tools/srv.py\n",
}


class Programs:
    """A project with programs, and the server that starts them."""

    def __init__(self, folder: Path, mechanism: Mechanism) -> None:
        self.project = folder / "project"
        self._home = folder / "home"
        self._mechanism = mechanism
        for name, text in FILES.items():
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text(text)
        self.made_ns = time.time_ns()
        self.restart()

    async def run(self, line: str) -> None:
        """Run a command, which begins some time after the latest change by a person."""
        await until(lambda: time.time_ns() > self.made_ns + 2 * SLACK_NS)
        result = await self.session.run(line)
        assert result.exit_code == 0, result.output

    def restart(self) -> None:
        """Begin as another process of the server would."""
        home = self._home

        def record_of(name: str) -> PrivateFile:
            return PrivateFile(home / "command-times" / f"{name}.json")

        self.session = Confining(self.project, home, mechanism=self._mechanism, record_of=record_of)
        self.times = self.session.sandboxes.times

    def start(
        self, *words: str, given: Mapping[str, str] | None = None, settings: Sequence[Path] = ()
    ) -> Start | None:
        line = CommandLine(words, self.project, given or {}, os.environ["PATH"], settings)
        return StartedPrograms(self.times).look(line, [self.project])

    def accept(self, *words: str) -> None:
        if (found := self.start(*words)) is not None:
            assert found.changed == ()
            StartedPrograms(self.times).accept(found)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return Programs(tmp_path, MECHANISMS["bubblewrap"])


SERVER = (PYTHON, "tools/srv.py")
CHANGES = {
    "the program": (SERVER, "echo >> tools/srv.py", "tools/srv.py"),
    "a module beside it": (SERVER, "echo 'x = 2' >> tools/helper.py", "tools/helper.py"),
    "a module of a package": (SERVER, "echo >> tools/pkg/inner.py", "tools/pkg/inner.py"),
    "a new module": (SERVER, "echo > tools/json.py", "tools/json.py"),
    "its folder": (SERVER, "cp -r tools new; echo >> new/helper.py; mv tools old; mv new tools", "tools/helper.py"),
    "a link in place of it": (SERVER, "mv tools/srv.py a.py; ln -s ../a.py tools/srv.py", "tools/srv.py"),
    "times of its own": (SERVER, "echo >> tools/srv.py; touch -d 2001-01-01 tools/srv.py", "tools/srv.py"),
    "a module of python -m": ((PYTHON, "-m", "tools.srv"), "echo >> tools/helper.py", "tools/helper.py"),
    "one of an installed module": ((PYTHON, "-m", "mcp_server_time"), "echo > json.py", "json.py"),
    "a script of the shell": (
        ("sh", "-c", "cd tools && exec python3 srv.py"),
        "echo >> tools/srv.py",
        "tools/srv.py",
    ),
    "what a script calls": (("tools/run",), "echo >> server/lib/x.js", "server/lib/x.js"),
    "installed packages": (("node", "server/main.js"), "echo >> node_modules/zod/index.js", "node_modules"),
    "a script of npm": (("npm", "run", "mcp"), "echo >> server/lib/x.js", "server/lib/x.js"),
    "the settings of npm": (("npm", "run", "mcp"), "sed -i s/node/evil/ package.json", "package.json"),
    "a package of npx": (("npx", "mcp"), "echo evil >> node_modules/.bin/mcp", "node_modules/.bin/mcp"),
    "a library for its platform": (SERVER, "echo > tools/json.abi3-linux.so", "tools/json.abi3-linux.so"),
    "any file of what is built": (("go", "run", "./server"), "mkdir new; echo > new/x.go", "new/x.go"),
    "compiled modules": (
        (PYTHON, "-I", "tools/srv.py"),
        "mkdir tools/__pycache__; echo > tools/__pycache__/helper.cpython-311.pyc",
        "tools/__pycache__/helper.cpython-311.pyc",
    ),
    "a target of make": (("make", "mcp"), "echo >> tools/helper.py", "tools/helper.py"),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_what_a_command_changes_in_a_program_is_known_to_later_processes(
    programs: Programs, name: str
) -> None:
    words, change, path = CHANGES[name]
    programs.accept(*words)
    await programs.run(change)
    for _ in range(2):
        found = programs.start(*words)
        assert found is not None
        assert path in found.changed
        await programs.session.sandbox.close()
        programs.restart()


UNTOUCHED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "other files": (
        SERVER,
        "echo >> src/app.py; echo >> README.md; echo > tools/notes.md; mkdir tools/__pycache__",
    ),
    "the same contents": (SERVER, "cp tools/srv.py x; mv x tools/srv.py; touch tools/helper.py"),
    "a program elsewhere": (("/bin/cat", "/etc/passwd"), "echo > evil.py"),
    "a folder with data": (("npx", "-y", "@modelcontextprotocol/server-filesystem", "."), "echo > evil.js"),
}


@pytest.mark.parametrize("name", UNTOUCHED)
async def test_other_changes_are_not_asked_about(programs: Programs, name: str) -> None:
    words, change = UNTOUCHED[name]
    programs.accept(*words)
    await programs.run(change)
    found = programs.start(*words)
    assert found is None or found.changed == ()


async def test_what_a_person_changes_is_not_asked_about(programs: Programs) -> None:
    programs.accept(*SERVER)
    await programs.run("echo > other")
    ended = time.time_ns()
    await until(lambda: time.time_ns() > ended + 2 * SLACK_NS)
    (programs.project / "tools" / "helper.py").write_text("mine = 1\n")
    found = programs.start(*SERVER)
    assert found is not None
    assert found.changed == ()


async def test_a_command_before_the_first_start_counts(programs: Programs) -> None:
    await programs.run("echo >> tools/srv.py")
    programs.restart()
    found = programs.start(*SERVER)
    assert found is not None
    assert found.changed == ("tools/srv.py",)


async def test_variables_and_environments_of_the_project_count(programs: Programs) -> None:
    venv.create(programs.project / ".venv", symlinks=True)
    own = (".venv/bin/python", "tools/srv.py")
    by_variable = {"PYTHONPATH": "src"}
    (programs.project / "tools" / "srv.py").write_text("import app\n")
    programs.accept(*own)
    site = next((programs.project / ".venv").glob("lib/*/site-packages"))
    change = f"echo import evil > {site}/evil.pth; echo >> src/app.py"
    await programs.run(change)
    found = programs.start(*own)
    assert found is not None
    assert found.changed == ("src/app.py", ".venv")
    found = programs.start(*SERVER, given=by_variable)
    assert found is not None
    assert "src/app.py" in found.changed
    await programs.run("echo > .venv/bin/node")
    found = programs.start("/bin/true", given={"PATH": ".venv/bin"})
    assert found is not None
    assert found.changed == (".venv/bin/node",)


async def test_the_settings_of_a_plugin_in_the_project_count(programs: Programs) -> None:
    plugin = programs.project / "plugin" / "plugin.json"
    plugin.parent.mkdir()
    plugin.write_text('{"mcpServers": "servers.json"}')
    (plugin.parent / "servers.json").write_text("{}")
    programs.accept("/bin/true")
    await programs.run("echo >> plugin/servers.json")
    found = programs.start("/bin/true", settings=[plugin])
    assert found is not None
    assert found.changed == ("plugin/servers.json",)
