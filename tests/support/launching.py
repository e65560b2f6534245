"""Stand in for a program that runs in a forked process: see :mod:`tests.support.forking`.

``python -I -S launching.py SOCKET FOLDER NAME ARGUMENT...`` has the program run with this process's streams,
working directory and environment, passes signals on to it, and ends as it ends. FOLDER/test is the id of the
running test, if it exists, and FOLDER/python becomes ``sys.executable`` of the process. Hundreds of tests start
this file, so it imports as little as it can.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportMissingImports=false
# The type checker does not know the modules behind `signal` and `socket`, which load in a fraction of their time.

import _signal
import _socket
import os
import sys
from array import array

PASSED_ON = (
    _signal.SIGHUP,
    _signal.SIGINT,
    _signal.SIGQUIT,
    _signal.SIGTERM,
    _signal.SIGUSR1,
    _signal.SIGUSR2,
    _signal.SIGWINCH,
)


def main() -> None:
    """Request the process, wait for its end, and end in the same way."""
    address, folder, *argv = sys.argv[1:]
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    connection.connect(address)
    test = b""
    try:
        with open(f"{folder}/test", "rb", buffering=0) as file:
            test = file.read()
    except OSError:
        pass
    python = f"{folder}/python"
    fields = [os.getcwdb(), test, b"1", os.fsencode(python) if os.path.exists(python) else b"", b"%d" % len(argv)]
    fields += map(os.fsencode, argv)
    fields += (name + b"=" + value for name, value in os.environb.items())
    streams = array("i", (0, 1, 2)).tobytes()
    connection.sendmsg([b"\0".join(fields)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    # The process alone keeps the streams open.
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    assert connection.recv(32), "the process was not started"
    for number in PASSED_ON:
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, lambda received, _frame: connection.send(b"%d" % received))
    code = int(connection.recv(32) or -_signal.SIGKILL)
    if code < 0:
        if code != -_signal.SIGKILL:
            _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


main()
