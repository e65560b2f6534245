"""Restrict this process by Landlock and seccomp, then execute a command: ``landlock_launcher.py RULES COMMAND...``.

``RULES`` is a JSON object: ``write`` and ``read`` are lists of paths, and ``network`` is a boolean. Imports nothing
of the server, because every command waits for the start of this program.
https://docs.kernel.org/userspace-api/landlock.html describes the calls.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import signal
import struct
import sys
from typing import Final, TypeAlias

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
_DAC_OVERRIDE: Final = 1
"""The capability that root keeps, because a project may belong to another user. Landlock limits the files that it
opens."""

_FILTER: Final = 2
_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CALLS: Final = {
    "x86_64": {
        "ioctl": 16, "socket": 41, "socketpair": 53, "chmod": 90, "fchmod": 91, "ptrace": 101, "setxattr": 188,
        "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199,
        "fchmodat": 268, "process_vm_readv": 310, "process_vm_writev": 311,
    },
    "aarch64": {
        "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
        "ioctl": 29, "fchmod": 52, "fchmodat": 53, "ptrace": 117, "socket": 198, "socketpair": 199,
        "process_vm_readv": 270, "process_vm_writev": 271,
    },
}  # fmt: skip
_COMMON_CALLS: Final = {
    "io_uring_setup": 425, "pidfd_getfd": 438, "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466,
    "file_setattr": 469,
}  # fmt: skip
_NEWEST_CALL: Final = 469
"""The last call that was looked at. Programs do without a newer one."""

_AF_UNIX, _AF_NETLINK = 1, 16
_CONNECTED: Final = (1, 5)
"""``SOCK_STREAM`` and ``SOCK_SEQPACKET``: half a pair of another type can be connected to the socket of a file."""
_FORBIDDEN_MODES: Final = 0o4002
"""Permission bits that no file gets: those of other users to write, and of programs that run as their owner."""
_FORBIDDEN_IOCTLS: Final = (0x5412, 0x541C, 0x40086602, 0x401C5820)
"""``TIOCSTI`` and ``TIOCLINUX``, which type into a terminal; ``FS_IOC_SETFLAGS`` and ``FS_IOC_FSSETXATTR``."""

_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full")
"""Writable devices: neither terminals nor shared memory, because those of a command cannot be told from others."""

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


_Step: TypeAlias = tuple[int, int, int, int]
"""A step of a filter: the code, how many steps to skip if true and if false, and the value."""

_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW: Final[_Step] = (_RETURN, 0, 0, 0x7FFF0000)


def _refuse(code: int) -> _Step:
    return (_RETURN, 0, 0, 0x00050000 | code)


def _argument(index: int) -> _Step:
    return (_LOAD, 0, 0, 16 + 8 * index)


def _filter_of(network: bool, machine: str) -> list[_Step]:
    """Return the steps of the filter."""
    calls = _CALLS[machine] | _COMMON_CALLS
    steps: list[_Step] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        _refuse(errno.EACCES),
        (_LOAD, 0, 0, 0),
        # Also the calls of the x32 interface.
        (_AT_LEAST, 0, 1, _NEWEST_CALL + 1),
        _refuse(errno.ENOSYS),
    ]
    for name in ("io_uring_setup", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd"):
        steps += [(_EQUAL, 0, 1, calls[name]), _refuse(errno.EACCES)]
    for name, number in calls.items():
        if "xattr" in name or name == "file_setattr":
            # Programs that copy files go on without.
            steps += [(_EQUAL, 0, 1, number), _refuse(errno.ENOTSUP)]
    no_socket = _refuse(errno.EACCES)
    rules = [(calls["socketpair"], [_argument(1), (_AND, 0, 0, 0xF), *_only(_CONNECTED, no_socket)])]
    if network:
        rules.append((calls["socket"], [_argument(0), (_EQUAL, 0, 1, _AF_UNIX), no_socket, _ALLOW]))
    else:
        rules.append((calls["socket"], [_argument(0), *_only((_AF_NETLINK,), no_socket)]))
    for name, index in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2)):
        if name in calls:
            mode = [_argument(index), (_ANY_BIT, 0, 1, _FORBIDDEN_MODES), _refuse(errno.EPERM), _ALLOW]
            rules.append((calls[name], mode))
    forbidden = [step for code in _FORBIDDEN_IOCTLS for step in ((_EQUAL, 0, 1, code), _refuse(errno.EPERM))]
    rules.append((calls["ioctl"], [_argument(1), *forbidden, _ALLOW]))
    for number, rule in rules:
        steps += [(_EQUAL, 0, len(rule), number), *rule]
    return [*steps, _ALLOW]


def _only(values: tuple[int, ...], otherwise: _Step) -> list[_Step]:
    """Return the steps that allow a call if the value is one of ``values``."""
    return [*(step for value in values for step in ((_EQUAL, 0, 1, value), _ALLOW)), otherwise]


def restrict_calls(*, network: bool) -> None:
    """Refuse what Landlock does not restrict: sockets of the machine, other processes, attributes of files.

    Without ``network``, there are no sockets but pairs and those of the kernel.

    Raises:
        OSError: the kernel refuses the filter, or the processor is unknown.
    """
    machine = platform.machine()
    if machine not in _CALLS:
        raise OSError(f"no system call filter for {machine}")
    steps = _filter_of(network, machine)
    code = b"".join(struct.pack("<HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(buffer))
    if _libc.prctl(_PR_SET_SECCOMP, _FILTER, program, 0, 0) != 0:
        code_ = ctypes.get_errno()
        raise OSError(code_, os.strerror(code_))


def drop_capabilities() -> None:
    """Give up all capabilities of root but one, for the programs that this one executes.

    With others, root could make the node of a disk, or change the owner of any file.

    Raises:
        OSError: the kernel refuses.
    """
    _libc.prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0)
    number = 0
    while number == _DAC_OVERRIDE or _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    get, set_ = _CAPABILITY_CALLS[platform.machine()]
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION, 0))
    sets = ctypes.create_string_buffer(24)
    _call(get, header, sets)
    # The effective, the permitted and the inheritable set, the lower halves first.
    permitted = struct.unpack("6I", sets.raw)[1] & (1 << _DAC_OVERRIDE)
    _call(set_, header, struct.pack("6I", permitted, permitted, 0, 0, 0, 0))


def main(arguments: list[str]) -> None:
    parts = int(arguments[0])
    rules = json.loads("".join(arguments[1 : 1 + parts]))
    command = arguments[1 + parts :]
    parent = os.getppid()
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.getppid() != parent:
        return
    try:
        restrict_files(rules["write"], rules["read"], network=rules["network"])
        drop_capabilities()
        restrict_calls(network=rules["network"])
        os.execvp(command[0], command)  # noqa: S606 - the purpose of this program
    except OSError as error:
        print(f"sandbox: {command[0]}: {error.strerror or error}", file=sys.stderr)  # noqa: T201
        sys.exit(127 if error.errno == errno.ENOENT else 126)


if __name__ == "__main__":
    main(sys.argv[1:])
