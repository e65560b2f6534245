"""A real Neovim for the tests of the plugin, and a terminal that shows its screen.

The Neovim on ``PATH`` is used if it is new enough. Otherwise the packages of Debian 13, with all their
dependencies, are unpacked in the folder of test tools and run with their own loader, without changing the system;
apt checks their signatures. Without apt the tests are skipped.
"""

from __future__ import annotations

import base64
import difflib
import json
import os
import re
import select
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import msgpack  # pyright: ignore[reportMissingTypeStubs]  # msgpack has none
import pytest

from tests.support.forked import executable
from tests.support.limits import WAIT_S
from tests.support.locks import locked
from tests.support.tmux import Tmux
from tests.support.toolchains import INSTALL_LIMIT_S, ROOT, TOOLS, missing

PLUGIN: Final = ROOT / "clients" / "neovim"
OLDEST: Final = (0, 10)
PRESS_AGAIN_S: Final = 5.0
COLUMNS: Final = 100
LINES: Final = 30

_DEBIAN: Final = TOOLS / "debian-13"
_KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_INIT: Final = Path(__file__).with_name("neovim_init.lua")


# --- installation -------------------------------------------------------------------------------------------------


def require_neovim() -> str:
    """Return the path of a Neovim that is new enough; skip or fail the test if there is none."""
    found = shutil.which("nvim")
    if found:
        output = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
        version = re.match(r"NVIM v(\d+)\.(\d+)", output)
        if version and (int(version[1]), int(version[2])) >= OLDEST:
            return found
    return str(_from_debian() / "bin" / "nvim")


def require_recorded_neovim() -> str:
    """Return the path of the Neovim that recorded the screens: another version may draw them differently."""
    return str(_from_debian() / "bin" / "nvim")


def require_tmux() -> str:
    """Return the path of tmux; skip or fail the test if there is none."""
    return shutil.which("tmux") or str(_from_debian() / "bin" / "tmux")


def _from_debian() -> Path:
    if sys.platform != "linux" or not shutil.which("apt-get") or not _KEYRING.exists():
        pytest.skip("requires Neovim 0.10 or newer and tmux, or Debian's apt to download them")
    with locked(TOOLS / "debian-13.lock"):
        if not (_DEBIAN / ".installed").exists():
            shutil.rmtree(_DEBIAN, ignore_errors=True)
            _download(_DEBIAN)
            _unpack(_DEBIAN)
            (_DEBIAN / ".installed").touch()
    return _DEBIAN


def _download(folder: Path) -> None:
    """Download the packages with apt, using a separate state in which nothing is installed."""
    for name in ("state/lists/partial", "cache/archives/partial", "parts"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    source = f"deb [signed-by={_KEYRING}] {_mirror()} trixie main\n"
    (folder / "sources.list").write_text(source)
    options = {
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": folder / "parts",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": folder / "parts",
        "Acquire::Languages": "none",
        "Acquire::http::Timeout": "20",
        "Acquire::Retries": "1",
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "1",
    }
    apt = ["apt-get", "-qq", *(part for name, value in options.items() for part in ("-o", f"{name}={value}"))]
    _run(*apt, "update")
    _run(*apt, "--yes", "--no-install-recommends", "--download-only", "install", "neovim", "tmux")


def _mirror() -> str:
    """Return the Debian mirror that this machine is configured to use."""
    apt = Path("/etc/apt")
    for path in (apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))):
        text = path.read_text(errors="replace") if path.is_file() else ""
        for line in text.splitlines():
            match = re.match(r"\s*(?:deb|URIs:)\s.*?(https?://\S+/debian)/?(?:\s|$)", line)
            if match:
                return match[1]
    return "http://deb.debian.org/debian"


def _unpack(folder: Path) -> None:
    root = folder / "root"
    for package in (folder / "cache" / "archives").glob("*.deb"):
        _run("dpkg-deb", "--extract", str(package), str(root))
    loaders = [path for path in root.glob("usr/lib/*/ld-linux*.so.*") if path.is_file()]
    if not loaders:
        missing("Debian's packages have no loader for this machine")
    libraries = loaders[0].parent
    (folder / "bin").mkdir()
    environment = {
        "nvim": f'VIMRUNTIME="{root}/usr/share/nvim/runtime" ',
        "tmux": "",
    }
    arguments = {"nvim": f' --cmd "set runtimepath+={root}/usr/lib/nvim"', "tmux": ""}
    for name in ("nvim", "tmux"):
        script = folder / "bin" / name
        program = f'"{loaders[0]}" --library-path "{libraries}" "{root}/usr/bin/{name}"'
        script.write_text(f'#!/bin/sh\n{environment[name]}exec {program}{arguments[name]} "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    for name in ("state", "cache"):
        shutil.rmtree(folder / name)


def _run(*command: str) -> None:
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False)
    except (subprocess.TimeoutExpired, OSError) as error:
        missing(f"cannot install Neovim: {error}")
    if process.returncode != 0:
        missing(f"cannot install Neovim: {' '.join(process.stderr.split())[-400:]}")


# --- the process --------------------------------------------------------------------------------------------------


# The package has no type annotations.
_MESSAGE_PACK: Final = cast("Any", msgpack)


def _unpacker() -> Any:
    return _MESSAGE_PACK.Unpacker(unicode_errors="surrogateescape", strict_map_key=False)


@dataclass
class Neovim:
    """A running Neovim with the plugin, driven by Lua over MessagePack-RPC on its own pipes.

    ``vim.ui.select`` and ``vim.ui.input`` are answered from ``answers``, unless it was started with
    ``real_ui``. Another Neovim can attach to ``socket`` as a screen. The protocol is that of ``:help api`` in
    Neovim.
    """

    program: str
    socket: Path
    folder: Path
    env: Mapping[str, str]
    process: subprocess.Popen[bytes]
    _received: Any = field(default_factory=_unpacker, init=False)
    _last_id: int = field(default=0, init=False)

    def lua(self, code: str, *args: Any) -> Any:
        """Run ``code`` as the body of a Lua function of ``...`` and return its result, by way of JSON."""
        return self._call({"code": code, "args": list(args)})

    def until(self, condition: str, *args: Any) -> Any:
        """Wait until the Lua expression ``condition`` is neither nil nor false; returns its value."""
        answer = self._call({"until": condition, "args": list(args), "wait": int(WAIT_S * 1000)})
        if answer is None:
            pytest.fail(f"never true: {condition}\n{self.report()}")
        return answer

    def text(self) -> str:
        """Return the transcript of the chat."""
        return "\n".join(self.lua("return lines(require('jumpseat').chat().transcript.buf)"))

    def wait_for_text(self, text: str) -> None:
        """Wait until the transcript contains ``text``."""
        self.until("transcript():find((...), 1, true)", text)

    def idle(self) -> None:
        """Wait until no prompt is running."""
        self.until("require('jumpseat').chat().session.state == 'idle'")

    def ask(self, prompt: str) -> str:
        """Send a prompt and wait for the end of its run; returns the transcript."""
        self.lua("require('jumpseat').send((...))", prompt)
        self.idle()
        return self.text()

    def keys(self, keys: str) -> None:
        """Press keys, in the notation of mappings, and wait until they are processed."""
        self.lua("press((...))", keys)

    def answer(self, *answers: str) -> None:
        """Queue answers to the next questions: the text of a choice or an input; "" cancels."""
        self.lua("vim.list_extend(answers, (...))", list(answers))

    def wait_until_ready(self) -> None:
        """Wait until the question on the screen takes an answer. Works while Neovim waits for a key."""
        ready = Path(f"{self.env['TEST_OPTIONS']}.ready")
        deadline = time.monotonic() + WAIT_S
        while not ready.exists():
            assert time.monotonic() < deadline, "no question takes an answer"
            time.sleep(0.02)
        ready.unlink()

    def questions(self) -> list[dict[str, Any]]:
        """Return the questions so far: prompt and choices."""
        return self.lua("return questions")

    def notifications(self) -> list[str]:
        return self.lua("return notifications")

    def quit(self) -> None:
        """Quit as a user does, and wait for the end of the process."""
        self._send([2, "nvim_input", ["<C-\\><C-n>:qall!<CR>"]])
        self.process.wait(WAIT_S)

    def report(self) -> str:
        return json.dumps(self.lua("return report()"), indent=2, ensure_ascii=False)

    def _call(self, request: dict[str, Any]) -> Any:
        packed = base64.b64encode(json.dumps(request).encode()).decode()
        self._last_id += 1
        self._send([0, self._last_id, "nvim_exec_lua", ["return drive(...)", [packed]]])
        error, answer = self._response(self._last_id)
        if error is not None:
            pytest.fail(f"Neovim answered with an error: {error}")
        outcome = json.loads(answer)
        if "problem" in outcome:
            pytest.fail(outcome["problem"])
        return outcome.get("value")

    def _send(self, message: list[Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(_MESSAGE_PACK.packb(message))
        self.process.stdin.flush()

    def _response(self, number: int) -> tuple[Any, Any]:
        """Wait for the response to a request; returns its error and its result."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + WAIT_S + 10
        while True:
            for kind, *rest in self._received:
                if kind == 1 and rest[0] == number:
                    return rest[1], rest[2]
            left = max(0.0, deadline - time.monotonic())
            readable, _, _ = select.select([self.process.stdout], [], [], left)
            chunk = os.read(self.process.stdout.fileno(), 1 << 16) if readable else b""
            if not chunk:
                pytest.fail("Neovim has ended" if readable else f"Neovim did not answer within {WAIT_S + 10} s")
            self._received.feed(chunk)


@contextmanager
def running_neovim(
    folder: Path,
    *,
    options: Mapping[str, Any] | None = None,
    script: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None,
    real_ui: bool = False,
    before: str = "",
    program: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Generator[Neovim]:
    """Start a Neovim whose working directory is ``folder / "project"``.

    ``options`` are passed to ``setup``; ``script`` is the script of the model or its turns; ``before`` is Lua code
    that runs in place of the user's configuration, before ``setup``; the server inherits ``environ``.
    """
    program = program or require_neovim()
    project = folder / "project"
    project.mkdir(exist_ok=True)
    home = folder / "user"
    home.mkdir(exist_ok=True)
    settings = dict(options or {})
    if script is not None:
        whole = script if isinstance(script, Mapping) else {"turns": list(script)}
        settings["provider"] = {"type": "scripted", "script": whole}
    # The system limits the length of a socket's path; the folders of tests are longer.
    socket = Path(f"/tmp/jumpseat-nvim-{os.getpid()}-{time.monotonic_ns() % 10**9}.sock")
    kept = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    env |= {
        "PATH": os.pathsep.join([str(Path(executable()).parent), os.environ.get("PATH", "")]),
        "HOME": str(home),
        "COPILOT_HOME": str(folder / "home"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_RUNTIME_DIR": str(home),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color",
        "TEST_PLUGIN": str(PLUGIN),
        "TEST_BEFORE": before,
        "TEST_OPTIONS": str(folder / "options.json"),
        "TEST_REAL_UI": "1" if real_ui else "",
    }
    env |= environ or {}
    (folder / "options.json").write_text(json.dumps(settings))
    log = (folder / "nvim.log").open("wb")
    # An embedded Neovim answers on its own pipes: a socket would exist before Neovim listens on it.
    command = [program, "--embed", "--clean", "-n", "--headless", "-u", str(_INIT), "--listen", str(socket)]
    process = subprocess.Popen(
        command, cwd=project, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
    )
    nvim = Neovim(program, socket, project, env, process)
    try:
        nvim.lua("return true")
        yield nvim
    finally:
        process.terminate()
        try:
            process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            # Data still in the buffer has no reader any more.
            with suppress(BrokenPipeError):
                pipe.close()
        log.close()
        socket.unlink(missing_ok=True)


# --- the screen ---------------------------------------------------------------------------------------------------


class Screen:
    """A terminal of :data:`COLUMNS` by :data:`LINES` that shows a running Neovim."""

    def __init__(self, tmux: Tmux) -> None:
        self._tmux = tmux

    def capture(self) -> str:
        """Return the text on the screen."""
        shown = self._tmux.run("capture-pane", "-p")
        lines = (re.sub(r"\d+% full", "N% full", line).rstrip() for line in shown.splitlines())
        return "\n".join(lines).rstrip("\n") + "\n"

    def type(self, *keys: str) -> None:
        """Press keys by their tmux names; other words are typed literally."""
        self._tmux.run("send-keys", *keys)

    def until(self, text: str) -> None:
        """Wait until ``text`` is on the screen."""
        if self._tmux.until(lambda: text if text in self.capture() else None, WAIT_S) is None:
            pytest.fail(f"{text!r} did not appear on the screen:\n{self.capture()}")

    def interrupt(self, text: str) -> None:
        """Press Ctrl-C until ``text`` is on the screen: a busy Neovim takes the key for an interrupt of its own."""
        for _ in range(int(WAIT_S / PRESS_AGAIN_S)):
            self.type("C-c")
            if self._tmux.until(lambda: text if text in self.capture() else None, PRESS_AGAIN_S) is not None:
                return
        pytest.fail(f"{text!r} did not appear on the screen:\n{self.capture()}")

    def matches(self, golden: Path) -> None:
        """Wait until the screen equals the recorded one. ``UPDATE_SCREENS=1`` records the screen after a second."""
        if os.environ.get("UPDATE_SCREENS"):
            self._tmux.until(lambda: None, 1.0)
            golden.write_text(self.capture())
            return
        expected = golden.read_text()
        if self._tmux.until(lambda: expected if self.capture() == expected else None, WAIT_S) is None:
            shown = self.capture()
            difference = difflib.unified_diff(expected.splitlines(), shown.splitlines(), golden.name, "now")
            pytest.fail("\n".join(difference))


@contextmanager
def screen_of(nvim: Neovim) -> Generator[Screen]:
    """Show ``nvim`` in a terminal."""
    command = [require_tmux(), "-S", f"{nvim.socket}.tmux", "-f", "/dev/null"]
    show = f"'{nvim.program}' --server '{nvim.socket}' --remote-ui"
    tmux = Tmux(command, ["-s", "screen", "-x", str(COLUMNS), "-y", str(LINES), show], nvim.env)
    try:
        yield Screen(tmux)
    finally:
        tmux.close()
        Path(f"{nvim.socket}.tmux").unlink(missing_ok=True)
