"""Find out what each mechanism of this system stops, by trying to leave it, and why a mechanism does not work."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from jumpseat.sandbox.call_filters import number_of
from jumpseat.sandbox.mechanisms import PROBE_S, Mechanism, candidates, problem_of
from jumpseat.sandbox.places import socket_files
from jumpseat.sandbox.view import View, real_paths

ATTEMPTS: Final = Path(__file__).with_name("probe_attempts.py")

WALLS: Final[Mapping[str, str]] = {
    "write": "write a file outside of the session's folders",
    "hidden": "read a hidden file",
    "protected": "change a file that configures other programs",
    "permissions": "change the permissions of your files elsewhere",
    "times": "change the times of your files elsewhere",
    "attributes": "change the extended attributes of your files elsewhere",
    "socket": "connect to a socket file of another program",
    "relative": "connect to a socket file that another program has bound by a relative path",
    "datagram": "send a message to a socket file of another program",
    "abstract": "connect to a socket without a file of another program",
    "localhost": "connect to a service at localhost",
    "terminal": "open another terminal of yours",
    "memory": "write to shared memory of another program",
    "processes": "see other processes",
    "signals": "send a signal to another process",
    "environment": "read the environment of another process",
    "keyrings": "read or change the kernel's keyrings, in which programs keep logins",
    "keys": "see the names of the keys in the kernel's keyrings",
    "vsock": "reach services that a virtual machine or its host offers over vsock",
}
"""What a confined command should not be able to do, by the names in ``probe_attempts.py``."""


class Finding(Struct, frozen=True):
    """A mechanism: the ``problem`` if it does not work, else which of :data:`WALLS` it does not stop."""

    mechanism: str
    problem: str | None = None
    reasons: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


def examine(environ: Mapping[str, str]) -> list[Finding]:
    """Try all mechanisms of this platform. Blocks for some seconds."""
    found: list[Finding] = []
    for mechanism in candidates(environ):
        problem = problem_of(mechanism, environ)
        passed: tuple[str, ...] = ()
        try:
            if problem is None and sys.platform == "linux":
                passed = tuple(open_walls(mechanism, environ))
        except OSError as error:
            problem = str(error)
        reasons = tuple(namespace_limits()) if problem is not None and mechanism.name == "bubblewrap" else ()
        found.append(Finding(mechanism.name, problem, reasons, passed))
    return found


def open_walls(mechanism: Mechanism, environ: Mapping[str, str]) -> list[str]:
    """Return the names of the :data:`WALLS` that a command gets through.

    Raises:
        OSError: the attempts could not be made.
    """
    with _targets() as (view, targets):
        words = [sys.executable, "-I", "-S", str(ATTEMPTS), json.dumps(targets)]
        try:
            result = subprocess.run(
                mechanism.command(view, view.writable[0], words),
                cwd=view.writable[0],
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_S,
                check=True,
            )
        except subprocess.CalledProcessError as error:
            raise OSError(
                f"the attempts to leave the sandbox failed: {error.stderr.decode(errors='replace')}"
            ) from None
        except subprocess.SubprocessError as error:
            raise OSError(f"the attempts to leave the sandbox failed: {error}") from None
    succeeded = json.loads(result.stdout)
    return [name for name in WALLS if name in succeeded]


@contextmanager
def _targets() -> Generator[tuple[View, dict[str, Any]]]:
    """Make a project, and what its commands must not reach, in the home folder: ``/tmp`` is private to commands."""
    assert sys.platform == "linux"
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix=".jumpseat-check-", dir=Path.home())).resolve()
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        project, temp, outside = folder / "project", folder / "temp", folder / "outside"
        for path in (project, temp, outside):
            path.mkdir()
        files = {"outside": outside / "file", "hidden": outside / "hidden", "protected": project / "protected"}
        for path in files.values():
            path.write_text("x")
        memory = stack.enter_context(tempfile.NamedTemporaryFile(dir="/dev/shm"))
        words = [sys.executable, "-I", "-S", "-c", _OTHER_PROGRAM]
        process = stack.enter_context(subprocess.Popen(words, stdin=-1, stdout=-1, cwd=outside))
        stack.callback(process.kill)
        assert process.stdout is not None
        process.stdout.readline()
        terminal, its_end = os.openpty()
        stack.callback(os.close, terminal)
        stack.callback(os.close, its_end)
        service = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        addresses = {"socket": str(outside / "s"), "abstract": f"\0{folder}"}
        for address in addresses.values():
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        datagram = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagram.bind(str(outside / "d"))
        targets: dict[str, Any] = {
            **{name: str(path) for name, path in files.items()},
            "socket": addresses["socket"],
            "relative": str(outside / "r"),
            "datagram": str(outside / "d"),
            "abstract": str(folder),
            "port": service.getsockname()[1],
            "terminal": os.ttyname(its_end),
            "memory": memory.name,
            "process": process.pid,
            "keyctl": number_of("keyctl"),
        }
        # Those of other programs may vanish before the sandbox is made.
        sockets = (path for path in map(Path, socket_files()) if path.is_relative_to(folder))
        hidden = (files["hidden"], *sockets)
        # The program of the attempts may be among the temporary files.
        shown = tuple(real_paths([sys.executable, sys.prefix, sys.base_prefix, ATTEMPTS.parent]))
        yield View((project,), (files["protected"],), hidden, shown, temp), targets


_OTHER_PROGRAM: Final = (
    "import socket\nlistener = socket.socket(socket.AF_UNIX)\nlistener.bind('r')\nlistener.listen()\n"
    "print(flush=True)\ninput()"
)

_LIMITS: Final = (
    ("/proc/sys/user/max_user_namespaces", "0"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
)


def namespace_limits() -> list[str]:
    """Return the settings of this system that forbid user namespaces, as people can change them."""
    found: list[str] = []
    for path, value in _LIMITS:
        try:
            if Path(path).read_text().strip() == value:
                name = path.removeprefix("/proc/sys/").replace("/", ".")
                found.append(f"the kernel forbids user namespaces: sysctl {name} is {value}")
        except OSError:
            continue
    try:
        if "\nSeccomp:\t2" in Path("/proc/self/status").read_text():
            found.append(
                "this process has a filter of system calls, as in a container, which may forbid namespaces"
            )
    except OSError:
        pass
    return found
