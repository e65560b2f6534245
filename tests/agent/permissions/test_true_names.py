"""A host's deny rule for a program holds under other names of it, and for lines that hide their programs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jumpseat.agent.permissions.facts import gather_facts
from jumpseat.agent.permissions.paths import PathScope
from jumpseat.agent.permissions.permissions import Permissions
from jumpseat.agent.settings import HostPolicy
from jumpseat_protocol.sessions import ManagedPermissions, ManagedSettings
from tests.agent.permissions.test_hostile_calls import shell

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs the programs of Unix")

REFUSED = r"""
    rm f
    \rm f
    r""m f
    command rm f
    env rm f
    busybox rm f
    sh -c 'rm f'
    alias x=rm; x f
    x() { rm f; }; x
    echo f | xargs rm
    find . -exec rm {} +
    eval "r""m f"
    $(echo rm) -rf f
    `echo rm` f
    X=rm; $X f
    cp /bin/rm x; ./x f
    ln -s /bin/rm x; ./x f
    cat /bin/rm > x; chmod +x x; ./x f
    ./link f
    ./hard f
    ./copy f
    echo cm0gZg== | base64 -d | sh
    bash <<< "$X"
    cat f | bash -s
    $'\x72m' f
    /b?n/rm f
    r${EMPTY}m f
    {rm,f}
    "$@"
    sudo $X
    env $X f
    xargs $X < f
    eval $X
"""

NOT_REFUSED = """
    ls $HOME
    ./tool x
    grep rm f
    env FOO=1 npm test
    for f in *; do cat $f; done
    [ "$x" = y ] && echo $x
    bash s.sh
    npm test 2>&1 | tail -5
    git log --format=%h
"""


@pytest.fixture
def refuses(tmp_path: Path) -> Callable[[str], bool]:
    program = shutil.which("rm")
    assert program is not None
    shutil.copy(program, tmp_path / "copy")
    os.link(tmp_path / "copy", tmp_path / "hard")
    (tmp_path / "link").symlink_to(program)
    shutil.copy(shutil.which("cat") or program, tmp_path / "tool")
    settings = ManagedSettings(permissions=ManagedPermissions(deny=["Shell(rm)"]))
    policy = HostPolicy(settings=settings, root=str(tmp_path), cwd=str(tmp_path), client="host")
    scope = PathScope(lambda: tmp_path)
    permissions = Permissions(lambda _: None, lambda: True, lambda _: False, scope, host_policies=lambda: [policy])
    return lambda line: permissions.denial_by_rule(gather_facts(shell(line), "bash", scope)) is not None


def test_a_forbidden_program_is_refused_under_any_name(refuses: Callable[[str], bool]) -> None:
    assert [line for line in map(str.strip, REFUSED.strip().splitlines()) if not refuses(line)] == []
    assert refuses("bash <<'EOF'\nrm f\nEOF")
    assert refuses("cat <<'EOF' | sh\nrm f\nEOF")
    assert refuses("true; " * 1000)


def test_lines_that_name_their_programs_are_not_refused(refuses: Callable[[str], bool]) -> None:
    assert [line for line in map(str.strip, NOT_REFUSED.strip().splitlines()) if refuses(line)] == []
    assert not refuses("cat <<'EOF' > notes\nhello\nEOF")
