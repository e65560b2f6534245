"""Calls to the kernel that a confined program cannot make, and the filters that refuse them."""

from __future__ import annotations

import errno
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from jumpseat.sandbox.bubblewrap import without_shell
from jumpseat.sandbox.call_filters import FOLDER, MACHINES, built, number_of
from jumpseat.sandbox.mechanisms import Mechanism
from jumpseat.sandbox.view import View
from tests.sandbox.parts import MECHANISMS

X86_64, I386, AARCH64, ARM = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028
READ = {X86_64: 0, I386: 3, AARCH64: 63, ARM: 3}
KEYCTL = {X86_64: 250, I386: 288, AARCH64: 219, ARM: 311}
SOCKET = {X86_64: 41, I386: 359, AARCH64: 198, ARM: 281}
IOCTL = {X86_64: 16, I386: 54, AARCH64: 29, ARM: 54}
CLONE = {X86_64: 56, AARCH64: 220}
OPENAT = {X86_64: 257, I386: 295, AARCH64: 56, ARM: 322}
FCHMODAT = {X86_64: 268, I386: 306, AARCH64: 53, ARM: 333}
MKNODAT = {X86_64: 259, I386: 297, AARCH64: 33, ARM: 324}
AF_INET, AF_ALG, AF_VSOCK = 2, 38, 40

ALL = [
    pytest.param(kind, machine, id=f"{kind}-{machine}")
    for machine in MACHINES
    for kind in ("commands", "scripts", "landlock", "landlock-network")
]

PRELUDE = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    result = libc.syscall(*(ctypes.c_long(word) if isinstance(word, int) else word for word in words))
    return errno.errorcode[ctypes.get_errno()] if result < 0 else result
"""

# Gives itself a keyring with a key, and executes a command.
WITH_KEY = PRELUDE + (
    "keyctl, add = map(int, sys.argv[1:3])\n"
    "assert isinstance(call(keyctl, 1, b'of the test'), int)\n"
    "assert isinstance(call(add, b'user', b'jumpseat', b'secret', 6, -3), int)\n"
    "os.execvp(sys.argv[3], sys.argv[3:])\n"
)

FIND_KEY = PRELUDE + (
    "keyctl, add, request = map(int, sys.argv[1:])\n"
    "found = call(request, b'user', b'jumpseat', None, 0)\n"
    "data = ctypes.create_string_buffer(6)\n"
    "call(keyctl, 11, found if isinstance(found, int) else 0, data, 6)\n"
    "print(found if isinstance(found, str) else 'found', data.raw.strip(b'\\0').decode())\n"
    "print(call(add, b'user', b'other', b'x', 1, -4) in ('ENOSYS', 'EACCES'))\n"
)

# By the interface of programs of 32 bits, from one of 64 bits.
NARROW = (
    "import ctypes, mmap\n"
    "code = bytes.fromhex('53b82001000031dbb9fdffffff31d2cd805bc3')\n"
    "page = mmap.mmap(-1, 4096, prot=7)\n"
    "page.write(code)\n"
    "print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())\n"
)

linux = pytest.mark.skipif(sys.platform != "linux" or not MECHANISMS, reason="no mechanism on this platform")


def run(filter_: bytes, interface: int, number: int, *arguments: int) -> int:
    """Return the error of a call by a filter; 0 if it is allowed."""
    data = struct.pack("<IIQ6Q", number, interface, 0, *arguments, *(0,) * (6 - len(arguments)))
    at, value = 0, 0
    for _ in range(1000):
        code, if_true, if_false, operand = struct.unpack_from("<HBBI", filter_, 8 * at)
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("<I", data, operand)
            case 0x54:
                value &= operand
            case 0x05:
                at += operand
            case 0x06:
                return 0 if operand == 0x7FFF0000 else operand & 0xFFFF
            case _:
                holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
                at += if_true if holds else if_false
    raise AssertionError("the filter does not end")


def filters() -> dict[str, bytes]:
    return dict(built())


def test_the_stored_filters_are_those_that_are_built() -> None:
    assert {path.name: path.read_bytes() for path in FOLDER.iterdir()} == filters()


@pytest.mark.parametrize(("kind", "machine"), ALL)
def test_a_filter_refuses_keyrings_and_sockets_of_the_machine_by_every_interface(kind: str, machine: str) -> None:
    found = filters()[f"{kind}-{machine}"]
    known = (X86_64, I386) if machine == "x86_64" else (AARCH64, ARM)
    for interface in known[: 2 if kind == "commands" else 1]:
        assert run(found, interface, READ[interface]) == 0
        assert run(found, interface, KEYCTL[interface], 0) == errno.ENOSYS
        assert run(found, interface, SOCKET[interface], AF_INET) == (
            0 if kind in ("commands", "landlock-network") else errno.EACCES
        )
        for family in (AF_ALG, AF_VSOCK, 0, 5, 99):
            assert run(found, interface, SOCKET[interface], family) in (errno.EAFNOSUPPORT, errno.EACCES)
        assert run(found, interface, IOCTL[interface], 0, 0x5412) == errno.EPERM
        assert run(found, interface, IOCTL[interface], 0, 0x5413) == 0
        assert run(found, interface, 0x40000000 | KEYCTL[interface], 0) == errno.ENOSYS
    for interface in {X86_64, I386, AARCH64, ARM, 0x40000008} - set(known[: 2 if kind == "commands" else 1]):
        assert run(found, interface, READ.get(interface, 0)) in (errno.ENOSYS, errno.EACCES)
    if machine == "x86_64" and kind == "commands":
        # socketcall(SYS_SOCKET) and socketcall(SYS_CONNECT)
        assert (run(found, I386, 102, 1), run(found, I386, 102, 3)) == (errno.ENOSYS, 0)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_filter_refuses_programs_that_run_as_their_owner(machine: str) -> None:
    found = filters()[f"commands-{machine}"]
    regular, creating, reading = 0o100000, 0o102, 0o2000000
    for interface in (X86_64, I386) if machine == "x86_64" else (AARCH64, ARM):
        for mode, expected in ((0o755, 0), (0o2775, 0), (0o1777, 0), (0o4755, errno.EPERM), (0o6755, errno.EPERM)):
            assert run(found, interface, FCHMODAT[interface], 0, 0, mode) == expected
            assert run(found, interface, MKNODAT[interface], 0, 0, regular | mode) == expected
            assert run(found, interface, OPENAT[interface], 0, 0, creating, mode) == expected
            assert run(found, interface, OPENAT[interface], 0, 0, reading, mode) == 0


MAKES_PROGRAM = (
    "import os\n"
    "def attempt(call, *arguments):\n"
    "    try:\n"
    "        call(*arguments)\n"
    "    except OSError:\n"
    "        return\n"
    "attempt(os.chmod, 'file', 0o6755)\n"
    "attempt(os.open, 'made', os.O_CREAT | os.O_WRONLY, 0o6755)\n"
    "attempt(os.mknod, 'node', 0o106755)\n"
    "os.chmod('file', 0o755)\n"
    "os.mkdir('shared')\n"
    "os.chmod('shared', 0o2775)\n"
)


@linux
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=list(MECHANISMS))
def test_a_command_leaves_no_program_that_runs_as_its_owner(mechanism: Mechanism, tmp_path: Path) -> None:
    if number_of("chmod") is None and number_of("fchmodat") is None:
        pytest.skip("no filter for this processor")
    (tmp_path / "file").touch()
    line = mechanism.command(View((tmp_path,)), tmp_path, [sys.executable, "-I", "-S", "-c", MAKES_PROGRAM])
    subprocess.run(line, cwd=tmp_path, check=True)
    modes = {path.name: path.stat().st_mode & 0o7777 for path in tmp_path.iterdir()}
    assert (modes["file"], modes["shared"] & 0o2000) == (0o755, 0o2000)
    assert [name for name, mode in modes.items() if mode & 0o4000] == []


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_of_scripts_allows_threads_and_reading_alone(machine: str) -> None:
    found, interface = filters()[f"scripts-{machine}"], X86_64 if machine == "x86_64" else AARCH64
    thread, child, own_users = 0x3D0F00, 17, 0x10000011
    assert [run(found, interface, CLONE[interface], flags) for flags in (thread, child, own_users)] == [0, 1, 1]
    reading, creating, unnamed = 0o2000000, 0o101, 0o20200002
    opened = [run(found, interface, OPENAT[interface], 0, 0, flags) for flags in (reading, creating, unnamed)]
    assert opened == [0, errno.EROFS, errno.EROFS]


@linux
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=list(MECHANISMS))
def test_a_command_finds_no_key_of_the_server(mechanism: Mechanism, tmp_path: Path) -> None:
    keyctl, add, request = map(number_of, ("keyctl", "add_key", "request_key"))
    if None in (keyctl, add, request):
        pytest.skip("no filter for this processor")
    inside = [sys.executable, "-I", "-S", "-c", FIND_KEY, str(keyctl), str(add), str(request)]
    begin = [sys.executable, "-I", "-S", "-c", WITH_KEY, str(keyctl), str(add)]

    def outcome(line: list[str]) -> list[str]:
        done = subprocess.run([*begin, *line], capture_output=True, text=True, check=False, cwd=tmp_path)
        if "AssertionError" in done.stderr:
            pytest.skip("the kernel has no keyrings here")
        assert not done.stderr
        return done.stdout.split()

    assert outcome(inside)[:2] == ["found", "secret"]
    view = View((tmp_path,), network=True)
    assert outcome(mechanism.command(view, tmp_path, inside)) == ["ENOSYS", "True"]
    if sys.platform == "linux" and os.uname().machine == "x86_64":
        narrow = [sys.executable, "-I", "-S", "-c", NARROW]
        assert outcome(mechanism.command(view, tmp_path, narrow)) in (["-38"], ["-13"])


@linux
@pytest.mark.skipif("bubblewrap" not in MECHANISMS, reason="needs bubblewrap")
def test_descriptors_that_a_command_gets_keep_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("nine")
    line = MECHANISMS["bubblewrap"].command(View((tmp_path,)), tmp_path, ["cat", "/proc/self/fd/9"])
    program = (
        "import json, os, subprocess, sys\n"
        "file = os.open('file', os.O_RDONLY)\n"
        "for number in (7, 9): os.dup2(file, number)\n"
        "subprocess.run(json.loads(sys.argv[1]), pass_fds=(7, 9), check=True)\n"
    )
    words = [sys.executable, "-c", program, json.dumps(line)]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout == "nine"


@linux
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=list(MECHANISMS))
def test_variables_that_a_shell_cannot_name_reach_the_command(mechanism: Mechanism, tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "a.b": "dotted", "BASH_FUNC_greet%%": "() { echo hello; }"}
    line = mechanism.command(View((tmp_path,)), tmp_path, ["bash", "-c", "greet; env | grep ^a"], variables=environ)
    done = subprocess.run(line, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["hello", "a.b=dotted"]


@linux
@pytest.mark.skipif("bubblewrap" not in MECHANISMS, reason="needs bubblewrap")
def test_the_filter_is_the_same_without_the_shell(tmp_path: Path) -> None:
    mechanism = MECHANISMS["bubblewrap"]
    words = ["grep", "Seccomp:", "/proc/self/status"]
    for variables in ((), ("a.b",)):
        line = mechanism.command(View((tmp_path,)), tmp_path, words, variables=variables)
        with without_shell(line) as (short, files):
            assert Path(short[0]).name == "bwrap"
            done = subprocess.run(short, pass_fds=files, capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["Seccomp:", "2"]
    with without_shell(["/bin/true"]) as unchanged:
        assert unchanged == (["/bin/true"], ())
