"""Restrict this process by Landlock and seccomp, then execute a command: ``landlock_launcher.py RULES COMMAND...``.

``RULES`` is a JSON object: ``write`` and ``read`` are lists of paths, and ``network`` is a boolean. Imports nothing
of the server, because every command waits for the start of this program.
https://docs.kernel.org/userspace-api/landlock.html describes the calls.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import signal
import struct
import sys
from typing import Final

assert sys.platform == "linux"

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH: Final = 1
_ABI_OF: Final = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FILE_ACCESS: Final = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEV
_SCOPES: Final = 3
"""Signals to processes, and abstract sockets of processes, outside of the restricted ones."""

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_CAP_AMBIENT = 1, 38, 22, 24, 47
_AMBIENT_CLEAR_ALL: Final = 4
_CAPABILITY_CALLS: Final = {"x86_64": (125, 126), "aarch64": (90, 91)}
"""The numbers of ``capget`` and ``capset``."""
_CAPABILITY_VERSION: Final = 0x20080522
_KEPT_CAPABILITIES: Final = (0, 1, 3, 4)
"""``CHOWN``, ``DAC_OVERRIDE``, ``FOWNER`` and ``FSETID``: Landlock limits the files that root reaches with these.
With others, root could make the node of a disk and write to the disk."""
_FILTER: Final = 2
_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CALLS: Final = {"x86_64": (41, 53, 425, 101), "aarch64": (198, 199, 425, 117)}
"""The numbers of ``socket``, ``socketpair``, ``io_uring_setup`` and ``ptrace``."""
_LOCAL_FAMILIES: Final = (1, 16)
"""``AF_UNIX`` and ``AF_NETLINK``."""

_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm")  # noqa: S108

_libc: Final = ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def restrict_files(write: list[str], read: list[str], *, network: bool) -> None:
    """Restrict this process to the paths, and to no TCP connections unless ``network``.

    Raises:
        OSError: the kernel has no Landlock, or refuses the rules.
    """
    abi = _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ABI_OF))
    handled = (1 << 13) - 1
    handled |= (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0) | (_IOCTL_DEV if abi >= 5 else 0)
    attributes = struct.pack("QQQ", handled, 3 if abi >= 4 and not network else 0, _SCOPES if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0))
    for paths, access in (
        (["/"], EXECUTE | READ_DIR),
        (read, EXECUTE | READ_FILE | READ_DIR),
        ([*write, *_DEVICES], handled),
    ):
        for path in paths:
            _allow(ruleset, path, access & handled)
    _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):
        access &= _FILE_ACCESS
    rule = struct.pack("<Qi", access, descriptor)
    try:
        _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_RULE_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(descriptor)


def restrict_calls(*, network: bool) -> None:
    """Refuse sockets of other families than the local ones (unless ``network``), io_uring and ptrace.

    Raises:
        OSError: the kernel refuses the filter, or the processor is unknown.
    """
    machine = platform.machine()
    if machine not in _CALLS:
        raise OSError(f"no system call filter for {machine}")
    socket, _socketpair, io_uring, ptrace = _CALLS[machine]
    load, equal, at_least, done = 0x20, 0x15, 0x35, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | 13
    # Each step: (code, jump if true, jump if false, value).
    steps = [
        (load, 0, 0, 4), (equal, 1, 0, _AUDIT_ARCH[machine]), (done, 0, 0, refuse),
        (load, 0, 0, 0),
    ]  # fmt: skip
    if machine == "x86_64":
        # The calls of the x32 interface.
        steps += [(at_least, 0, 1, 0x40000000), (done, 0, 0, refuse)]
    for number in (io_uring, ptrace):
        steps += [(equal, 0, 1, number), (done, 0, 0, refuse)]
    if not network:
        steps += [(equal, 1, 0, socket), (done, 0, 0, allow), (load, 0, 0, 16)]
        for family in _LOCAL_FAMILIES:
            steps += [(equal, 0, 1, family), (done, 0, 0, allow)]
        steps += [(done, 0, 0, refuse)]
    steps += [(done, 0, 0, allow)]
    code = b"".join(struct.pack("<HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(buffer))
    if _libc.prctl(_PR_SET_SECCOMP, _FILTER, program, 0, 0) != 0:
        code_ = ctypes.get_errno()
        raise OSError(code_, os.strerror(code_))


def drop_capabilities() -> None:
    """Give up all capabilities of root but :data:`_KEPT_CAPABILITIES`, for the programs that this one executes.

    Raises:
        OSError: the kernel refuses.
    """
    _libc.prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0)
    number = 0
    while number in _KEPT_CAPABILITIES or _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    get, set_ = _CAPABILITY_CALLS[platform.machine()]
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION, 0))
    sets = ctypes.create_string_buffer(24)
    _call(get, header, sets)
    # The effective, the permitted and the inheritable set, the lower halves first.
    permitted = struct.unpack("6I", sets.raw)[1] & sum(1 << number for number in _KEPT_CAPABILITIES)
    _call(set_, header, struct.pack("6I", permitted, permitted, 0, 0, 0, 0))


def main(arguments: list[str]) -> None:
    rules = json.loads(arguments[0])
    parent = os.getppid()
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.getppid() != parent:
        return
    try:
        restrict_files(rules["write"], rules["read"], network=rules["network"])
        drop_capabilities()
        restrict_calls(network=rules["network"])
        os.execvp(arguments[1], arguments[1:])  # noqa: S606 - the purpose of this program
    except OSError as error:
        print(f"sandbox: {arguments[1]}: {error.strerror or error}", file=sys.stderr)  # noqa: T201
        sys.exit(127 if error.errno == 2 else 126)


if __name__ == "__main__":
    main(sys.argv[1:])
