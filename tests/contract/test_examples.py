"""The examples in ``clients/examples``: one program in five languages, built and run as documented.

The examples are built in the cache of test tools, so that only changes are built again.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from tests.support.forked import INSTALLED
from tests.support.model_server import ModelServer, json_reply
from tests.support.pages import code_blocks
from tests.support.provided import says
from tests.support.toolchains import (
    NEWEST_NPM_SDK,
    NEWEST_PYPI_SDK,
    ROOT,
    Sdk,
    in_ci,
    missing,
    require_sdk,
    tool_folder,
)

EXAMPLES = ROOT / "clients" / "examples"
PAGE = ROOT / "docs" / "languages.md"
OUTPUT = """\
permission: custom-tool get_temperature
tool: get_temperature Berlin
permission: shell echo 18 degrees in Berlin | tr a-z A-Z
The shell says: 18 DEGREES IN BERLIN
<exited with exit code 0>
"""
BUILD_LIMIT_S = 900
RUN_LIMIT_S = 60


@dataclass(frozen=True)
class Example:
    """One language: its toolchain, and the commands of the page."""

    language: str
    file: str
    programs: tuple[str, ...]
    install: str
    """Fetches the dependencies of the program; requires a network unless they are cached."""
    build: str
    run: str
    version: str = ""
    """Prints the version of the toolchain; ``least`` is the oldest one that works."""
    least: str = ""
    built: str = ""
    """The program that a first build of minutes produces, relative to the example's folder."""

    @property
    def folder(self) -> Path:
        return EXAMPLES / self.language

    @property
    def code(self) -> str:
        return (self.folder / self.file).read_text(encoding="utf-8")


LANGUAGES = (
    Example(
        "typescript",
        "main.ts",
        ("node", "npm", "npx"),
        "npm install --omit=optional --ignore-scripts --no-audit --no-fund --no-package-lock",
        "npx tsc",
        "node build/main.js",
        "node --version",
        "20.19",
    ),
    Example("python", "main.py", (), "", "", "python main.py"),
    Example(
        "go",
        "main.go",
        ("go",),
        "go mod download",
        "go build -o build/example .",
        "build/example",
        "go version",
        "1.24",
    ),
    Example(
        "rust",
        "main.rs",
        ("cargo",),
        "cargo fetch",
        "cargo build --quiet",
        "target/debug/example",
        "rustc --version",
        "1.94",
        built="target/debug/example",
    ),
    Example(
        "java",
        "Main.java",
        ("java", "javac", "mvn"),
        "mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=lib",
        "",
        "java -cp 'lib/*' Main.java",
        "javac -version",
        "17",
    ),
)


# The first build for Rust is of about a hundred crates, one of them very large.
@pytest.mark.timeout(2 * BUILD_LIMIT_S + RUN_LIMIT_S)
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(language, id=language.language, marks=[pytest.mark.long_build] * bool(language.built))
        for language in LANGUAGES
    ],
)
def test_the_example_asks_for_permission_runs_its_tool_and_streams_the_answer(
    example: Example, tmp_path: Path
) -> None:
    with tool_folder(f"example-{example.language}") as folder:
        environ = prepared(example, folder)
        home = tmp_path / "home"
        home.mkdir()
        for name in ("config.toml", "script.yaml"):
            shutil.copy(EXAMPLES / name, home)
        environ |= {"JUMPSEAT": INSTALLED, "COPILOT_HOME": str(home)}
        process = sh(example.run, folder, environ, RUN_LIMIT_S)

    assert (process.returncode, process.stdout) == (0, OUTPUT), process.stderr
    assert "error" not in process.stderr.lower()


def test_the_page_shows_the_files_and_the_commands() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = dict(re.findall(r"^```(\w+)\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE))
    for example in LANGUAGES:
        assert shown[example.language] == example.code
        for command in (example.install, example.build, example.run):
            assert command in page
    assert shown["yaml"] == (EXAMPLES / "script.yaml").read_text(encoding="utf-8")
    assert shown["toml"] == (EXAMPLES / "config.toml").read_text(encoding="utf-8")
    assert shown["text"] == OUTPUT


def test_the_examples_are_written_for_the_newest_packages() -> None:
    assert f"github-copilot-sdk=={NEWEST_PYPI_SDK}\n" in (EXAMPLES / "python/requirements.txt").read_text()
    for name in ("typescript", "vscode_extension"):
        assert f'"@github/copilot-sdk": "{NEWEST_NPM_SDK}"' in (EXAMPLES / name / "package.json").read_text()


@pytest.mark.anyio
async def test_the_program_in_the_readme_runs_what_it_approves_and_ends(tmp_path: Path) -> None:
    sdk = require_sdk(Sdk("pypi", NEWEST_PYPI_SDK))
    (program,) = code_blocks("README.md", "python")
    assert '".venv/bin/jumpseat"' in program
    assert '"http://localhost:11434/v1"' in program
    program = program.replace('".venv/bin/jumpseat"', repr(INSTALLED))
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    asks = json_reply({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    (tmp_path / "notes.txt").touch()
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("COPILOT_", "JUMPSEAT"))}
    async with ModelServer(asks, says("One file.")) as provider:
        program = program.replace("http://localhost:11434", provider.url)
        process = await anyio.run_process(
            [sdk / "bin" / "python", "-c", program],
            cwd=tmp_path,
            env={**environ, "COPILOT_HOME": str(tmp_path / "home")},
            check=False,
        )
        assert (process.returncode, process.stdout) == (0, b"One file.\n"), process.stderr
        assert "notes.txt" in provider.requests[1].json["messages"][-1]["content"]


def prepared(example: Example, folder: Path) -> dict[str, str]:
    """Build the example in ``folder`` and return the environment to run it in.

    Without the toolchain the test is skipped, also in CI; if the dependencies cannot be fetched, it fails in CI.
    A first build that takes minutes is made in CI only.
    """
    if (lack := missing_part(example)) is not None:
        pytest.skip(f"the example in {example.language}: {lack}")
    if example.built and not in_ci() and not (folder / example.built).exists():
        pytest.skip(f"the example in {example.language}: its first build takes minutes; CI=1 builds it once")
    # Settings of the surrounding environment for servers and builds must not apply here.
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COPILOT_", "JUMPSEAT")) and name not in ("CARGO_TARGET_DIR", "GOFLAGS")
    }
    if example.language == "python":
        sdk = require_sdk(Sdk("pypi", NEWEST_PYPI_SDK))
        environ["PATH"] = os.pathsep.join([str(sdk / "bin"), environ["PATH"]])
    # Build tools detect changes by the times of the files.
    shutil.copytree(
        example.folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target", "node_modules")
    )
    if example.install:
        process = sh(example.install, folder, environ, BUILD_LIMIT_S)
        if process.returncode != 0:
            missing(f"what the example in {example.language} needs cannot be had: {end_of_output(process)}")
    if example.build:
        process = sh(example.build, folder, environ, BUILD_LIMIT_S)
        assert process.returncode == 0, f"{example.build}: {end_of_output(process)}"
    return environ


def missing_part(example: Example) -> str | None:
    """Return the missing part of a toolchain, or ``None`` if it can be used."""
    for program in example.programs:
        if shutil.which(program) is None:
            return f"{program!r} is not installed"
    if not example.version:
        return None
    process = subprocess.run(shlex.split(example.version), capture_output=True, text=True, timeout=RUN_LIMIT_S)
    match = re.search(r"\d+(?:\.\d+)+", process.stdout + process.stderr) if process.returncode == 0 else None
    if match is None:
        return f"{example.version!r} does not work here: {end_of_output(process)}"
    if [int(part) for part in match[0].split(".")] < [int(part) for part in example.least.split(".")]:
        return f"{example.language} {example.least} or newer is needed, this is {match[0]}"
    return None


def sh(command: str, folder: Path, environ: Mapping[str, str], limit_s: float) -> subprocess.CompletedProcess[str]:
    # Without a shell in between, a time-out ends the program itself.
    return subprocess.run(
        f"exec {command}",
        shell=True,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )


def end_of_output(process: subprocess.CompletedProcess[str]) -> str:
    """Return the end of a command's output."""
    return " ".join((process.stdout + process.stderr).split())[-800:]
