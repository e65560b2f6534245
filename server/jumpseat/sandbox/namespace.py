"""A network namespace for the commands of one session, with a listener in it that belongs to this process.

Connections to the listener are the only way out of the namespace. All commands of the session share the namespace,
so that one command can reach a server that another one has started. The namespace ends with this process, if it is
not closed before.
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
    """An open namespace. ``listener`` accepts the connections to ``port`` of its loopback address.

    ``network`` is its descriptor, ``holder`` the process that holds it until ``channel`` is closed.
    """

    namespace: Namespace
    listener: socket.socket
    port: int
    network: int
    holder: int
    channel: socket.socket

    def check(self) -> None:
        """Check that commands would enter the namespace.

        Raises:
            OSError: the process that holds it was ended.
        """
        if os.stat(f"/proc/{self.holder}/ns/net").st_ino != os.fstat(self.network).st_ino:
            raise OSError("the network of the session's commands was ended")

    def close(self) -> None:
        """Close the listener and the namespace, which ends with the last process in it."""
        self.listener.close()
        self.channel.close()
        os.close(self.network)


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
    opened = _receive(mechanism, enter)
    tried = False
    try:
        _try(mechanism, opened.namespace, opened.network, environ)
        tried = True
    finally:
        if not tried:
            opened.close()
    return opened


def _receive(mechanism: Mechanism, enter: str) -> OpenNamespace:
    if sys.platform != "linux":
        raise OSError("there are no network namespaces")
    ours, theirs = socket.socketpair()
    descriptors: list[int] = []
    try:
        with theirs:
            _run(mechanism, theirs)
        ours.settimeout(OPEN_S)
        data, descriptors, _, _ = socket.recv_fds(ours, 64, 2)
        if len(descriptors) != 2:
            raise OSError("this process has too many open files")
    except BaseException:
        for descriptor in (*descriptors, ours.detach()):
            os.close(descriptor)
        raise
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    port, holder = map(int, data.split())
    files = (f"--user=/proc/{holder}/ns/user", f"--net=/proc/{holder}/ns/net")
    namespace = Namespace((enter, *files, "--preserve-credentials", "--"))
    return OpenNamespace(namespace, socket.socket(fileno=descriptors[0]), port, descriptors[1], holder, ours)


def _run(mechanism: Mechanism, channel: socket.socket) -> None:
    command = mechanism.isolated([sys.executable, "-I", "-S", str(LISTENER), str(channel.fileno())])
    if command is None:
        raise OSError("there are no network namespaces")
    try:
        result = subprocess.run(
            command,
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=[channel.fileno()],
            timeout=OPEN_S,
            check=False,
        )
    except subprocess.SubprocessError as error:
        raise OSError(str(error)) from None
    if result.returncode != 0:
        lines = result.stderr.decode(errors="replace").strip().splitlines()
        raise OSError(lines[-1] if lines else f"exit code {result.returncode}")


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
