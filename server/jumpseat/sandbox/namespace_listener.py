"""Listen in the network namespace of this process, and pass the listener out: ``namespace_listener.py DESCRIPTOR``.

``DESCRIPTOR`` is a Unix socket. Sends the port and the number of a process, with two descriptors: the listener and
the network namespace. The process holds the namespaces until the other end of the socket is closed; others enter
them by its number, because the descriptors of the server are closed to other processes. Imports nothing of the
server, because the first command of a session waits for this program.
"""

from __future__ import annotations

import os
import socket
import sys

assert sys.platform == "linux"

BACKLOG = 128


def main(descriptor: int) -> None:
    channel, listener = socket.socket(fileno=descriptor), socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(BACKLOG)
    network, nothing = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)
    if os.fork() != 0:
        # The caller waits for this process.
        return
    os.setsid()
    text = f"{listener.getsockname()[1]} {os.getpid()}"
    socket.send_fds(channel, [text.encode()], [listener.fileno(), network])
    for number, file in enumerate((descriptor, nothing, nothing)):
        os.dup2(file, number)
    # A shell waits in less memory.
    os.execv("/bin/sh", ["sh", "-c", "read -r end"])  # noqa: S606


if __name__ == "__main__":
    main(int(sys.argv[1]))
