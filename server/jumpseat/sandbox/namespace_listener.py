"""Listen in the network namespace of this process, and pass the listener out: ``namespace_listener.py DESCRIPTOR``.

``DESCRIPTOR`` is a Unix socket. Sends the port, with three descriptors: the listener, the user namespace and the
network namespace. Imports nothing of the server, because the first command of a session waits for this program.
"""

from __future__ import annotations

import os
import socket
import sys

assert sys.platform == "linux"

BACKLOG = 128


def main(descriptor: int) -> None:
    with socket.socket(fileno=descriptor) as channel, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(BACKLOG)
        namespaces = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in ("user", "net")]
        port = str(listener.getsockname()[1])
        socket.send_fds(channel, [port.encode()], [listener.fileno(), *namespaces])


if __name__ == "__main__":
    main(int(sys.argv[1]))
