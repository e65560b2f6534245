"""Filters of system calls (seccomp): which calls the kernel refuses to a confined program, whatever it may open.

Namespaces and Landlock restrict files, processes and networks. Through some calls, a program reaches what belongs
to none of these: the keyrings of the kernel, which hold logins, and the sockets of a virtual machine to its host.
The filters are built here, for each processor, and stored in the folder ``filters``: bubblewrap reads them from a
file, and nothing has to be built before a command. ``python -m jumpseat.sandbox.call_filters`` writes the files.
https://docs.kernel.org/userspace-api/seccomp_filter.html describes the mechanism.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["commands", "scripts", "landlock", "landlock-network"]
"""What a filter is for: commands in bubblewrap, programs that only compute, and commands below Landlock."""

UNFILTERED: Final = "there is no filter of system calls for this processor"

FOLDER: Final = Path(__file__).with_name("filters")


class _Interface(Struct, frozen=True):
    """An interface to the kernel: the number of the processor in filters, and the column of its calls."""

    processor: int
    column: int


_X86_64, _I386 = _Interface(0xC000003E, 0), _Interface(0x40000003, 1)
_AARCH64, _ARM = _Interface(0xC00000B7, 2), _Interface(0x40000028, 3)

MACHINES: Final = {"x86_64": (_X86_64, _I386), "aarch64": (_AARCH64, _ARM)}
"""The interfaces of each machine, its own first, then that of its programs of 32 bits."""

_NONE: Final = -1

_CALLS: Final[Mapping[str, tuple[int, int, int, int]]] = {
    # x86_64, i386, aarch64, arm
    "add_key": (248, 286, 217, 309), "request_key": (249, 287, 218, 310), "keyctl": (250, 288, 219, 311),
    "bpf": (321, 357, 280, 386), "perf_event_open": (298, 336, 241, 364), "userfaultfd": (323, 374, 282, 388),
    "io_uring_setup": (425, 425, 425, 425), "open_by_handle_at": (304, 342, 265, 371),
    "syslog": (103, 103, 116, 103), "socket": (41, 359, 198, 281), "socketpair": (53, 360, 199, 288),
    "socketcall": (_NONE, 102, _NONE, 102), "ioctl": (16, 54, 29, 54), "fork": (57, 2, _NONE, 2),
    "vfork": (58, 190, _NONE, 190), "clone": (56, 120, 220, 120), "clone3": (435, 435, 435, 435),
    "unshare": (272, 310, 97, 337), "setns": (308, 346, 268, 375), "open": (2, 5, _NONE, 5),
    "openat": (257, 295, 56, 322), "openat2": (437, 437, 437, 437), "creat": (85, 8, _NONE, 8),
    "mkdir": (83, 39, _NONE, 39), "mkdirat": (258, 296, 34, 323), "mknod": (133, 14, _NONE, 14),
    "mknodat": (259, 297, 33, 324), "symlink": (88, 83, _NONE, 83), "symlinkat": (266, 304, 36, 331),
    "link": (86, 9, _NONE, 9), "linkat": (265, 303, 37, 330), "memfd_create": (319, 356, 279, 385),
    "memfd_secret": (447, 447, 447, _NONE), "mq_open": (240, 277, 180, 274), "shmget": (29, 395, 194, 307),
    "msgget": (68, 399, 186, 303), "semget": (64, 393, 190, 299), "ptrace": (101, 26, 117, 26),
    "process_vm_readv": (310, 347, 270, 376), "process_vm_writev": (311, 348, 271, 377),
    "pidfd_getfd": (438, 438, 438, 438), "setxattr": (188, 226, 5, 226), "lsetxattr": (189, 227, 6, 227),
    "fsetxattr": (190, 228, 7, 228), "setxattrat": (463, 463, 463, 463), "removexattr": (197, 235, 14, 235),
    "lremovexattr": (198, 236, 15, 236), "fremovexattr": (199, 237, 16, 237),
    "removexattrat": (466, 466, 466, 466), "file_setattr": (469, 469, 469, 469), "chmod": (90, 15, _NONE, 15),
    "fchmod": (91, 94, 52, 94), "fchmodat": (268, 306, 53, 333), "fchmodat2": (452, 452, 452, 452),
}  # fmt: skip

_X32_CALLS: Final = 0x40000000
"""The first call of the x32 interface, which has other numbers for the same processor."""
_NEWEST_CALL: Final = 469
"""The last call that was looked at. Below Landlock, programs do without a newer one."""

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_OF_NAMESPACES: Final = (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK)
"""The kinds of sockets that belong to a network or mount namespace, unlike those of virtual machines, and that
programs need, unlike those of car networks and clusters."""
_CONNECTED: Final = (1, 5)
"""``SOCK_STREAM`` and ``SOCK_SEQPACKET``: half a pair of another type can be connected to the socket of a file."""
_SYS_SOCKET: Final = 1
_CLONE_THREAD: Final = 0x10000
_CREATING: Final = 0o100 | 0o20000000
"""``O_CREAT`` and ``O_TMPFILE``."""
_AS_OWNER: Final = 0o4000
"""The permission bit of programs that run as their owner, which no file gets: outside, any user could run them."""
_WIDE_MODES: Final = 0o4002
"""Below Landlock, no file gets that of other users to write, either."""
_MODES: Final = {
    "chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2,
}  # fmt: skip
"""The calls that give a file its permissions, and the place of these among their arguments."""
_TYPING: Final = (0x5412, 0x541C)
"""``TIOCSTI`` and ``TIOCLINUX``, which type into a terminal."""
_FLAGS_OF_FILES: Final = (0x40086602, 0x401C5820)
"""``FS_IOC_SETFLAGS`` and ``FS_IOC_FSSETXATTR``."""

_Step: TypeAlias = tuple[int, int, int, int]
"""A step of a filter: the code, how many steps to skip if true and if false, and the value."""

_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _GO, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x05, 0x06
_NUMBER: Final[_Step] = (_LOAD, 0, 0, 0)
_PROCESSOR: Final[_Step] = (_LOAD, 0, 0, 4)
_ALLOW: Final[_Step] = (_RETURN, 0, 0, 0x7FFF0000)


def path_of(kind: Kind) -> Path | None:
    """Return the file of a filter; ``None`` if there is none for this processor."""
    machine = platform.machine()
    return FOLDER / f"{kind}-{machine}" if machine in MACHINES else None


def number_of(name: str) -> int | None:
    """Return the number of a call on this machine; ``None`` if it has none, or the machine is not known."""
    interfaces = MACHINES.get(platform.machine())
    number = _CALLS[name][interfaces[0].column] if interfaces is not None else _NONE
    return None if number == _NONE else number


def built() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the contents of each file."""
    for machine, (own, narrow) in MACHINES.items():
        commands = _program({own: _for_commands(own), narrow: _for_commands(narrow)}, errno.ENOSYS)
        scripts = _program({own: _for_scripts(own)}, errno.ENOSYS)
        yield f"commands-{machine}", commands
        yield f"scripts-{machine}", scripts
        for name, network in (("landlock", False), ("landlock-network", True)):
            yield f"{name}-{machine}", _program({own: _for_landlock(own, network)}, errno.EACCES)


def _for_commands(interface: _Interface) -> list[_Step]:
    return [
        *_for_files(interface),
        *_if(interface, "add_key request_key keyctl", _refuse(errno.ENOSYS)),
        # Programs go on without; sockets that such a queue makes would not be seen here.
        *_if(interface, "io_uring_setup userfaultfd", _refuse(errno.ENOSYS)),
        *_if(interface, "bpf perf_event_open open_by_handle_at syslog", _refuse(errno.EPERM)),
        *_if(interface, "socket socketpair", _argument(0), *_only(_OF_NAMESPACES, _refuse(errno.EAFNOSUPPORT))),
        # Its arguments are not seen here.
        *_if(interface, "socketcall", _argument(0), *_never((_SYS_SOCKET,), _refuse(errno.ENOSYS))),
        *_if(interface, "ioctl", _argument(1), *_never(_TYPING, _refuse(errno.EPERM))),
    ]


def _for_files(interface: _Interface) -> Iterator[_Step]:
    """Yield the steps that refuse to make programs which run as their owner."""
    refuse = _refuse(errno.EPERM)
    # Its arguments are not seen here, and programs go on without.
    yield from _if(interface, "openat2", _refuse(errno.ENOSYS))
    for name, index in _MODES.items():
        yield from _if(interface, name, _argument(index), (_ANY_BIT, 0, 1, _AS_OWNER), refuse, _ALLOW)
    for name, index in (("open", 1), ("openat", 2)):
        # The mode counts with these flags only; otherwise it may be anything.
        creates = (_ANY_BIT, 1, 0, _CREATING)
        mode = (_argument(index + 1), (_ANY_BIT, 0, 1, _AS_OWNER), refuse, _ALLOW)
        yield from _if(interface, name, _argument(index), creates, _ALLOW, *mode)


def _for_scripts(interface: _Interface) -> list[_Step]:
    """Return the steps that also refuse processes, and what takes memory that no limit of a process counts."""
    no_file = _refuse(errno.EROFS)
    return [
        *_if(interface, "fork vfork unshare setns", _refuse(errno.EPERM)),
        *_if(interface, "clone", _argument(0), (_ANY_BIT, 1, 0, _CLONE_THREAD), _refuse(errno.EPERM), _ALLOW),
        # Their arguments are not seen here, and programs go on without.
        *_if(interface, "clone3 openat2", _refuse(errno.ENOSYS)),
        *_if(interface, "open", _argument(1), (_ANY_BIT, 0, 1, _CREATING), no_file, _ALLOW),
        *_if(interface, "openat", _argument(2), (_ANY_BIT, 0, 1, _CREATING), no_file, _ALLOW),
        *_if(interface, "creat mkdir mkdirat mknod mknodat symlink symlinkat link linkat", no_file),
        *_if(interface, "memfd_create memfd_secret mq_open shmget msgget semget", _refuse(errno.EPERM)),
        *_if(interface, "socket", _refuse(errno.EACCES)),
        *_for_commands(interface),
    ]


def _for_landlock(interface: _Interface, network: bool) -> list[_Step]:
    """Return the steps that refuse what Landlock does not restrict: sockets, other processes, attributes of files.

    Without ``network``, there are no sockets but pairs and those of the kernel.
    """
    families = (_AF_INET, _AF_INET6, _AF_NETLINK) if network else (_AF_NETLINK,)
    no_mode = _refuse(errno.EPERM)
    steps = [
        (_AT_LEAST, 0, 1, _NEWEST_CALL + 1),
        _refuse(errno.ENOSYS),
        *_if(interface, "ptrace process_vm_readv process_vm_writev pidfd_getfd", _refuse(errno.EACCES)),
        # Programs that copy files go on without.
        *_if(interface, " ".join(name for name in _CALLS if "xattr" in name), _refuse(errno.ENOTSUP)),
        *_if(interface, "file_setattr", _refuse(errno.ENOTSUP)),
        *_if(interface, "socketpair", _argument(1), (_AND, 0, 0, 0xF), *_only(_CONNECTED, _refuse(errno.EACCES))),
        *_if(interface, "socket", _argument(0), *_only(families, _refuse(errno.EACCES))),
        *_if(interface, "ioctl", _argument(1), *_never((*_TYPING, *_FLAGS_OF_FILES), _refuse(errno.EPERM))),
    ]
    for name in ("chmod", "fchmod", "fchmodat", "fchmodat2"):
        steps += _if(interface, name, _argument(_MODES[name]), (_ANY_BIT, 0, 1, _WIDE_MODES), no_mode, _ALLOW)
    return [*steps, *_for_commands(interface)]


def _program(parts: Mapping[_Interface, Sequence[_Step]], otherwise: int) -> bytes:
    """Return the filter with the steps for each interface; calls of other ones fail with ``otherwise``."""
    steps = [_PROCESSOR]
    for interface, own in parts.items():
        whole = [_NUMBER, (_AT_LEAST, 0, 1, _X32_CALLS), _refuse(errno.ENOSYS), *own, _ALLOW]
        # More steps than a comparison can skip.
        steps += [(_EQUAL, 1, 0, interface.processor), (_GO, 0, 0, len(whole)), *whole]
    return b"".join(struct.pack("<HBBI", *step) for step in (*steps, _refuse(otherwise)))


def _if(interface: _Interface, names: str, *then: _Step) -> Iterator[_Step]:
    """Yield the steps that take ``then``, which ends with a decision, for the calls with these names."""
    for name in names.split():
        if (number := _CALLS[name][interface.column]) != _NONE:
            yield (_EQUAL, 0, len(then), number)
            yield from then


def _refuse(code: int) -> _Step:
    return (_RETURN, 0, 0, 0x00050000 | code)


def _argument(index: int) -> _Step:
    return (_LOAD, 0, 0, 16 + 8 * index)


def _only(values: Sequence[int], otherwise: _Step) -> list[_Step]:
    """Return the steps that allow a call if the value is one of ``values``."""
    return [*(step for value in values for step in ((_EQUAL, 0, 1, value), _ALLOW)), otherwise]


def _never(values: Sequence[int], refuse: _Step) -> list[_Step]:
    """Return the steps that allow a call unless the value is one of ``values``."""
    return [*(step for value in values for step in ((_EQUAL, 0, 1, value), refuse)), _ALLOW]


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for name, contents in built():
        (FOLDER / name).write_bytes(contents)


if __name__ == "__main__":
    main()
