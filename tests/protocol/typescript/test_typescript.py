"""TypeScript types generated from the schema: a client compiles with them, and so do all recorded messages.

The compiler and the generator are installed once into the cache of test tools.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from jumpseat_protocol.schema import encoded
from tests.support.toolchains import INSTALL_LIMIT_S, TOOLS, missing, require_program
from tests.transcripts.messages import Typed, typed_messages
from tests.transcripts.play import transcripts

HERE: Final = Path(__file__).parent
PACKAGES: Final = ("typescript@5.9.3", "json-schema-to-typescript@16.0.0")
FOLDER: Final = TOOLS / "-".join(package.replace("@", "-") for package in PACKAGES)

# The type of a message in `wire.ts`, by its location in the schema.
TYPES: Final = {
    ("clientRequests", "params"): "Params",
    ("clientRequests", "result"): "Result",
    ("serverRequests", "params"): "Question",
    ("serverRequests", "result"): "Answer",
}


@pytest.fixture(scope="module")
def tools() -> Path:
    """Install the compiler and the generator if necessary and return their folder."""
    require_program("node")
    npm = require_program("npm")
    TOOLS.mkdir(exist_ok=True)
    # Concurrent test runs install the tools once.
    with (TOOLS / f"{FOLDER.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = FOLDER / ".installed"
        if not stamp.exists():
            shutil.rmtree(FOLDER, ignore_errors=True)
            FOLDER.mkdir()
            # Without a package.json here npm would install into the nearest parent folder that has one.
            (FOLDER / "package.json").write_text('{"private": true}\n')
            options = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock")
            patience = ("--fetch-retries=1", "--fetch-timeout=20000")
            command = [npm, "install", *options, *patience, *PACKAGES]
            try:
                subprocess.run(
                    command, cwd=FOLDER, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=True
                )
            except subprocess.TimeoutExpired:
                missing(f"{', '.join(PACKAGES)} could not be installed within {INSTALL_LIMIT_S} s")
            except subprocess.CalledProcessError as error:
                missing(f"{', '.join(PACKAGES)} could not be installed: {' '.join(error.stderr.split())[-400:]}")
            stamp.touch()
    return FOLDER / "node_modules" / ".bin"


@pytest.fixture(scope="module")
def project(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the types, the client, and every recorded message as a typed value."""
    folder = tmp_path_factory.mktemp("typescript")
    (folder / "schema.json").write_bytes(encoded())
    # Otherwise every type would accept unknown fields, and misspelt ones would not be noticed.
    options = ("--additionalProperties=false", "--input=schema.json", "--output=protocol.ts")
    done = run(folder, tools / "json2ts", *options)
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("wire.ts", "client.ts", "tsconfig.json"):
        shutil.copy(HERE / name, folder)
    for path in transcripts():
        messages = "".join(statement(message) for message in typed_messages(path))
        imports = 'import type { Answer, Failure, Params, Question, Result, Told } from "./wire";\n'
        (folder / f"transcript_{path.stem}.ts").write_text(imports + messages, encoding="utf-8")
    return folder


def statement(message: Typed) -> str:
    """Return a line of TypeScript that compiles if the message has its type."""
    if message.spot[0] == "error":
        kind = "Failure"
    elif message.spot[0] == "notifications":
        kind = f"Told<{json.dumps(message.spot[1])}>"
    else:
        section, method, part = message.spot
        kind = f"{TYPES[section, part]}<{json.dumps(method)}>"
    return f"({json.dumps(message.value)}) satisfies {kind};\n"


def run(folder: Path, *command: Path | str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.timeout(INSTALL_LIMIT_S + 60)
def test_a_client_and_all_recorded_messages_compile_and_messages_that_differ_do_not(
    tools: Path, project: Path
) -> None:
    lines = [
        statement(Typed(("clientRequests", "session.send", "result"), {"messageId": "1", "other": 1})),
        statement(Typed(("clientRequests", "session.send", "result"), {})),
        statement(Typed(("notifications", "session.event"), {"sessionId": "1", "event": {"type": "abort"}})),
    ]
    (project / "messages.ts").write_text('import type { Result, Told } from "./wire";\n' + "".join(lines))
    # Once for everything: the compiler needs seconds for the types alone.
    done = run(project, tools / "tsc", "--noEmit")
    # The lines below an error explain it.
    errors = [line.partition(",")[0] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert errors == ["messages.ts(2", "messages.ts(3", "messages.ts(4"], done.stdout
