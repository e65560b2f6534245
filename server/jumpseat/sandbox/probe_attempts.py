"""Try to leave the sandbox: ``probe_attempts.py TARGETS``. Prints the names of the attempts that succeed.

``TARGETS`` is a JSON object of paths, a port, a process, the number of a system call and the name of an abstract
socket. Runs in the sandbox, and imports nothing of the server.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

assert sys.platform == "linux"


def _connect(family: int, address: Any) -> None:
    with socket.socket(family) as connection:
        connection.settimeout(2)
        connection.connect(address)


def _datagram(address: str) -> None:
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with left, right:
        left.connect(address)


def _write(path: str) -> None:
    # Without creating it: a folder of that name may be another one here.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    with open(descriptor, "w") as file:
        file.write("x")


def _read(path: str) -> None:
    with open(path, "rb") as file:
        assert file.read(1)


def _open(path: str) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_NOCTTY))


def _find_keyring(keyctl: int | None) -> None:
    import ctypes

    if keyctl is None:
        raise OSError
    libc, identify, session = ctypes.CDLL(None, use_errno=True), 0, -3
    # Without a keyring, the call is open as well.
    if libc.syscall(ctypes.c_long(keyctl), identify, session, 0) < 0 and ctypes.get_errno() != errno.ENOKEY:
        raise OSError


def main(targets: dict[str, Any]) -> None:
    outside, process = targets["outside"], targets["process"]
    attempts: dict[str, Callable[[], object]] = {
        "write": lambda: _write(outside),
        "permissions": lambda: os.chmod(outside, 0o644),
        "times": lambda: os.utime(outside),
        "attributes": lambda: os.setxattr(outside, "user.jumpseat", b"x"),
        "hidden": lambda: _read(targets["hidden"]),
        "protected": lambda: _write(targets["protected"]),
        "socket": lambda: _connect(socket.AF_UNIX, targets["socket"]),
        "relative": lambda: _connect(socket.AF_UNIX, targets["relative"]),
        "datagram": lambda: _datagram(targets["datagram"]),
        "abstract": lambda: _connect(socket.AF_UNIX, f"\0{targets['abstract']}"),
        "localhost": lambda: _connect(socket.AF_INET, ("127.0.0.1", targets["port"])),
        "terminal": lambda: _open(targets["terminal"]),
        "memory": lambda: _write(targets["memory"]),
        "processes": lambda: _read(f"/proc/{process}/cmdline"),
        "signals": lambda: os.kill(process, signal.SIGCONT),
        "environment": lambda: _read(f"/proc/{process}/environ"),
        "keyrings": lambda: _find_keyring(targets["keyctl"]),
        "keys": lambda: _read("/proc/keys"),
        "vsock": lambda: socket.socket(40, socket.SOCK_STREAM).close(),
    }
    succeeded: list[str] = []
    for name, attempt in attempts.items():
        try:
            attempt()
        except (OSError, AssertionError):
            continue
        succeeded.append(name)
    print(json.dumps(succeeded))  # noqa: T201 - the result


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
