"""Restrict this process by Landlock and seccomp, then execute a command: ``landlock_launcher.py RULES COMMAND...``.

``RULES`` is a JSON object: ``write`` and ``read`` are lists of paths, ``network`` is a boolean, and ``calls`` is
the file of the filter of system calls. Imports nothing of the server, because every command waits for the start of
this program.
https://docs.kernel.org/userspace-api/landlock.html describes the calls.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import stat
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
_DAC_OVERRIDE: Final = 1
"""The capability that root keeps, because a project may belong to another user. Landlock limits the files that it
opens."""

_FILTER: Final = 2
_STEP_BYTES: Final = 8

_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full")
"""Writable devices: neither terminals nor shared memory, because those of a command cannot be told from others."""

_MOST_FOLDERS: Final = 500
"""The open descriptors of folders; the usual limit of a process is 1024."""

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
    folders: dict[str, int] = {}
    for paths, access in (
        (["/"], EXECUTE | READ_DIR),
        (read, EXECUTE | READ_FILE | READ_DIR),
        ([*write, *_DEVICES], handled),
    ):
        for path in paths:
            _allow(ruleset, path, access & handled, folders)
    _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)


def _open(path: str, folders: dict[str, int]) -> int:
    """Open a path through no link: a command that still runs may have put one there since the paths were listed.

    ``folders`` are descriptors of folders by path, to which those above the path are added.

    Raises:
        OSError: the path cannot be opened, or has a link.
    """
    parent, name = os.path.split(path)
    if not name:
        return os.open("/", os.O_PATH | os.O_CLOEXEC)
    if parent not in folders:
        while len(folders) >= _MOST_FOLDERS:
            os.close(folders.pop(next(iter(folders))))
        folders[parent] = _open(parent, folders)
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folders[parent])
    if stat.S_ISLNK(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return descriptor


def _allow(ruleset: int, path: str, access: int, folders: dict[str, int]) -> None:
    try:
        descriptor = _open(path, folders)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        access &= _FILE_ACCESS
    rule = struct.pack("<Qi", access, descriptor)
    try:
        _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_RULE_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(descriptor)


def restrict_calls(steps: bytes) -> None:
    """Refuse what Landlock does not restrict, by a filter of system calls.

    Raises:
        OSError: the kernel refuses the filter.
    """
    buffer = ctypes.create_string_buffer(steps, len(steps))
    program = struct.pack("HxxxxxxQ", len(steps) // _STEP_BYTES, ctypes.addressof(buffer))
    if _libc.prctl(_PR_SET_SECCOMP, _FILTER, program, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


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
    get, set_ = _CAPABILITY_CALLS[os.uname().machine]
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
        with open(rules["calls"], "rb") as file:
            calls = file.read()
        restrict_files(rules["write"], rules["read"], network=rules["network"])
        drop_capabilities()
        restrict_calls(calls)
        os.execvp(command[0], command)  # noqa: S606 - the purpose of this program
    except OSError as error:
        print(f"sandbox: {command[0]}: {error.strerror or error}", file=sys.stderr)  # noqa: T201
        sys.exit(127 if error.errno == errno.ENOENT else 126)


if __name__ == "__main__":
    main(sys.argv[1:])
