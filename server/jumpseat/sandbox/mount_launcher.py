"""Protect or hide files and folders, then execute a command: ``mount_launcher.py N PART... COMMAND...``.

Runs in the sandbox of bubblewrap, which takes no more than 9,000 arguments, reads the table of all mounts for each
new one, and fails if a path is gone. The N parts together are a compressed JSON array of paths with what to do:
``read`` and ``write`` mount a path onto itself. Paths that no longer exist, or have become links, are left out.
Imports nothing of the server, because the command waits.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import stat
import sys
import zlib
from typing import Final

assert sys.platform == "linux"

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
"""The numbers of calls that are the same for all processors."""
_AT_EMPTY_PATH, _AT_RECURSIVE = 0x1000, 0x8000
_OPEN_TREE_CLONE: Final = 1 | os.O_CLOEXEC
_FROM_AND_TO_DESCRIPTORS: Final = 0x4 | 0x40
_READ_ONLY: Final = 1
_NEW_USERS_AND_MOUNTS: Final = 0x10000000 | 0x20000

_PR_CAPBSET_DROP, _PR_CAP_AMBIENT = 24, 47
_AMBIENT_CLEAR_ALL: Final = 4
_CAPABILITY_VERSION: Final = 0x20080522

_libc: Final = ctypes.CDLL(None, use_errno=True)


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _call(number: int, *arguments: object) -> int:
    return _checked(int(_libc.syscall(ctypes.c_long(number), *arguments)))


def mount(source: int, target: int, *, read_only: bool) -> None:
    """Mount the file or folder of one descriptor over that of another one.

    Raises:
        OSError: the kernel is older than 5.12, or refuses the mount.
    """
    tree = _call(_OPEN_TREE, source, b"", _AT_EMPTY_PATH | _AT_RECURSIVE | _OPEN_TREE_CLONE)
    try:
        attributes = _Attributes(_READ_ONLY if read_only else 0, 0, 0, 0)
        size = ctypes.c_size_t(ctypes.sizeof(attributes))
        _call(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, ctypes.byref(attributes), size)
        _call(_MOVE_MOUNT, tree, b"", target, b"", _FROM_AND_TO_DESCRIPTORS)
    finally:
        os.close(tree)


def _cover(path: str, access: str, nothing: int) -> None:
    try:
        target = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        place = f"/proc/self/fd/{target}"
        if os.readlink(place) != path:
            return
        if access != "hide":
            mount(target, target, read_only=access == "read")
        elif stat.S_ISDIR(os.fstat(target).st_mode):
            _checked(_libc.mount(b"tmpfs", place.encode(), b"tmpfs", ctypes.c_ulong(0), b"mode=0555"))
        else:
            mount(nothing, target, read_only=True)
    except FileNotFoundError:
        # Deleted meanwhile.
        return
    finally:
        os.close(target)


def drop_capabilities() -> None:
    """Give up all capabilities, also those that the executed program would have as root.

    Raises:
        OSError: the kernel refuses.
    """
    _libc.prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0)
    number = 0
    while _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    _checked(_libc.capset((ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()))
    if number == 0:
        raise OSError("the capabilities cannot be dropped")


def enter_namespaces() -> None:
    """Enter a mount namespace, and a user namespace with the same user and group.

    bubblewrap's own process stays in the former ones, with all files in its reach. A process of another user
    namespace may not look into it, such as through ``/proc/1/root``.

    Raises:
        OSError: the kernel refuses.
    """
    user, group = os.getuid(), os.getgid()
    _checked(_libc.unshare(_NEW_USERS_AND_MOUNTS))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def main(arguments: list[str]) -> None:
    parts = int(arguments[0])
    entries = json.loads(zlib.decompress(base64.b85decode("".join(arguments[1 : 1 + parts]))))
    command = arguments[1 + parts :]
    try:
        enter_namespaces()
        nothing = os.open("/dev/null", os.O_PATH | os.O_CLOEXEC)
        for path, access in entries:
            _cover(path, access, nothing)
        drop_capabilities()
        os.execvp(command[0], command)  # noqa: S606 - the purpose of this program
    except OSError as error:
        print(f"sandbox: {command[0]}: {error.strerror or error}", file=sys.stderr)  # noqa: T201
        sys.exit(126)


if __name__ == "__main__":
    main(sys.argv[1:])
