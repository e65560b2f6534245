"""A network namespace for the commands of one session, with a listener in it that belongs to this process.

Connections to the listener are the only way out of the namespace. All commands of the session share the namespace,
so that one command can reach a server that another one has started. The namespace exists as long as its descriptors
are open.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from jumpseat.sandbox.mechanisms import Mechanism
from jumpseat.sandbox.view import Namespace, View
from jumpseat.system.programs import find_program

LISTENER: Final = Path(__file__).with_name("namespace_listener.py")

OPEN_S: Final = 10.0
"""Time limit for opening a namespace."""


class OpenNamespace(Struct, frozen=True):
    """An open namespace. ``listener`` accepts the connections to ``port`` of its loopback address."""

    namespace: Namespace
    listener: socket.socket
    port: int
    descriptors: tuple[int, ...]

    def close(self) -> None:
        """Close the listener and the descriptors; the namespace ends with the last process in it."""
        self.listener.close()
        for descriptor in self.descriptors:
            os.close(descriptor)


def open_namespace(mechanism: Mechanism, environ: Mapping[str, str]) -> OpenNamespace:
    """Open a namespace, and try to run a command of ``mechanism`` in it. Blocks for up to :data:`OPEN_S`.

    Raises:
        OSError: the system has no network namespaces, or a command cannot enter one.
    """
    if sys.platform != "linux":
        raise OSError("there are no network namespaces")
    enter = find_program("nsenter", environ)
    if enter is None:
        raise OSError("nsenter cannot be found")
    listener, port, user, network = _receive(mechanism)
    opened = False
    try:
        files = (f"--user=/proc/{os.getpid()}/fd/{user}", f"--net=/proc/{os.getpid()}/fd/{network}")
        namespace = Namespace((enter, *files, "--preserve-credentials", "--"))
        _try(mechanism, namespace, network, environ)
        opened = True
    finally:
        if not opened:
            listener.close()
            os.close(user)
            os.close(network)
    return OpenNamespace(namespace, listener, port, (user, network))


def _receive(mechanism: Mechanism) -> tuple[socket.socket, int, int, int]:
    if sys.platform != "linux":
        raise OSError("there are no network namespaces")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = mechanism.isolated([sys.executable, "-I", "-S", str(LISTENER), str(theirs.fileno())])
        if command is None:
            raise OSError("there are no network namespaces")
        try:
            result = subprocess.run(
                command,
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                pass_fds=[theirs.fileno()],
                timeout=OPEN_S,
                check=False,
            )
        except subprocess.SubprocessError as error:
            raise OSError(str(error)) from None
        if result.returncode != 0:
            lines = result.stderr.decode(errors="replace").strip().splitlines()
            raise OSError(lines[-1] if lines else f"exit code {result.returncode}")
        data, descriptors, _, _ = socket.recv_fds(ours, 16, 3)
    if len(descriptors) != 3:
        for descriptor in descriptors:
            os.close(descriptor)
        raise OSError("this process has too many open files")
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    listener, user, network = descriptors
    return socket.socket(fileno=listener), int(data), user, network


def _try(mechanism: Mechanism, namespace: Namespace, network: int, environ: Mapping[str, str]) -> None:
    """Check that a confined command runs in the namespace.

    Raises:
        OSError: the command fails, or runs in another namespace.
    """
    words = ["readlink", "/proc/self/ns/net"]
    try:
        result = subprocess.run(
            mechanism.command(View(namespace=namespace), Path("/"), words),
            cwd="/",
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=OPEN_S,
            check=False,
        )
    except subprocess.SubprocessError as error:
        raise OSError(str(error)) from None
    if result.stdout.decode(errors="replace").strip() != f"net:[{os.fstat(network).st_ino}]":
        lines = result.stderr.decode(errors="replace").strip().splitlines()
        raise OSError(lines[-1] if lines else "a command did not enter the namespace")
