"""Commands in a real sandbox, with each mechanism that this system has."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from pathlib import Path
from subprocess import PIPE

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from jumpseat.sandbox.mechanisms import Mechanism, find_mechanism
from jumpseat.sandbox.obeyed_files import INSIDE, NAMES, SUFFIXES
from jumpseat.sandbox.places import socket_files
from jumpseat.sandbox.session import Sandboxes, SandboxUnavailableError, SessionSandbox
from jumpseat.sandbox.settings import SandboxSettings
from jumpseat.sandbox.view import TEMP_FOLDERS
from tests.sandbox.parts import MECHANISMS, Confining, Result, git, members
from tests.tools.session import until

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not MECHANISMS, reason="no mechanism on this platform")]


@pytest.fixture(autouse=True)
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the folders that sandboxes make for temporary files out of the system's folder."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


@pytest.fixture(params=MECHANISMS.values(), ids=list(MECHANISMS))
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    return request.param


@pytest.fixture
def bubblewrap() -> Mechanism:
    if "bubblewrap" not in MECHANISMS:
        pytest.skip("needs bubblewrap")
    return MECHANISMS["bubblewrap"]


@pytest.fixture
def session(tmp_path: Path, mechanism: Mechanism) -> Confining:
    return Confining(tmp_path / "project", tmp_path / "home", mechanism=mechanism)


async def test_a_command_writes_in_its_project_and_nowhere_else(session: Confining, outside: Path) -> None:
    result = await session.run(f"echo inside > file; echo outside > {outside}/file")
    assert (session.project / "file").read_text() == "inside\n"
    assert not (outside / "file").exists()
    assert result.refusals == [f"writing to {outside}/file"]


async def test_a_command_does_not_read_credentials_or_the_home_of_the_server(
    tmp_path: Path, mechanism: Mechanism
) -> None:
    home = tmp_path / "user"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text("the key")
    (home / ".netrc").write_text("the password")
    session = Confining(home, home / ".jumpseat", mechanism=mechanism, user_home=home)
    (home / ".jumpseat" / "config.toml").write_text("the configuration")
    result = await session.run(
        "cat .ssh/id_ed25519 .netrc .jumpseat/config.toml; cp -r .ssh copy; cat copy/*; true"
    )
    assert "the " not in result.output
    assert f"reading {home}/.ssh/id_ed25519" in result.refusals


@pytest.mark.skipif("landlock" not in MECHANISMS, reason="needs Landlock")
async def test_thousands_of_neighbours_of_a_hidden_file_do_not_keep_a_command_from_running(tmp_path: Path) -> None:
    home = tmp_path / "user"
    (home / ".ssh").mkdir(parents=True)
    for number in range(2000):
        (home / f"{'a long name of a file':-<80}{number}").touch()
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=MECHANISMS["landlock"], user_home=home)
    assert (await session.run("echo fine")).output.strip() == "fine"


@pytest.mark.skipif("landlock" not in MECHANISMS, reason="needs Landlock")
async def test_landlock_follows_no_link_that_has_taken_the_place_of_a_folder(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    (project / "sub" / "inner").mkdir(parents=True)
    (project / "sub" / "hidden").touch()
    outside.mkdir()
    (outside / "inner").mkdir()
    settings = SandboxSettings(mode="auto", hide=(str(project / "sub" / "hidden"),))
    session = Confining(project, tmp_path / "home", settings, mechanism=MECHANISMS["landlock"])
    line = ["bash", "-c", "echo evil > sub/inner/file || echo refused"]
    confined = await session.sandbox.confine(line, project, session.environ)
    # As by a command that still runs, from before the file was hidden.
    (project / "sub").rename(project / "other")
    (project / "sub").symlink_to(outside)
    ran = await anyio.run_process(confined.command, cwd=project, env=confined.environ, check=False)
    assert ran.stdout == b"refused\n"
    assert not (outside / "inner" / "file").exists()


async def test_a_command_cannot_undo_the_mounts_even_as_root(
    tmp_path: Path, bubblewrap: Mechanism, outside: Path
) -> None:
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=bubblewrap)
    git(session.project, "init", "-q")
    before = (session.project / ".git" / "config").read_text()
    undo = f"umount .git/config; umount -l .git; mount -o remount,rw,bind /; mount -o remount,rw,bind {outside}"
    result = await session.run(
        f"grep ^Cap[PEB] /proc/self/status; {undo}; unshare -Urm sh -c '{undo}; echo evil > {outside}/file';"
        f" echo evil >> .git/config; echo evil > {outside}/file"
    )
    # The permitted, the effective and the bounding set of root; other users have none of the first two.
    assert [line.split()[1] for line in result.output.splitlines()[:2]] == ["0" * 16] * 2
    assert (session.project / ".git" / "config").read_text() == before
    assert not (outside / "file").exists()


async def test_root_cannot_change_settings_of_the_kernel(session: Confining) -> None:
    result = await session.run(
        "for file in /proc/sys/kernel/core_pattern /proc/sys/vm/stat_interval /sys/kernel/mm/ksm/run; do"
        ' [ -e $file ] && (value="$(cat $file)"; echo "$value" > $file) 2>/dev/null && echo written; done; true'
    )
    assert result.output == ""


async def test_root_does_not_read_the_passwords_of_all_users(session: Confining) -> None:
    result = await session.run("cat /etc/shadow /etc/gshadow /etc/ssh/ssh_host_*_key 2>/dev/null; true")
    assert result.output == ""


async def test_root_does_not_reach_devices(session: Confining) -> None:
    result = await session.run("mknod device c 1 3; chroot / true && echo entered; true")
    assert not (session.project / "device").exists()
    assert "entered" not in result.output


async def test_start_files_of_shells_cannot_be_changed_in_a_session_in_the_home_folder(
    tmp_path: Path, bubblewrap: Mechanism
) -> None:
    home = tmp_path / "user"
    home.mkdir()
    (home / ".bashrc").write_text("")
    session = Confining(home, tmp_path / "home", mechanism=bubblewrap, user_home=home)
    await session.run("echo evil >> .bashrc; mv .bashrc old; echo evil > .profile")
    assert (home / ".bashrc").read_text() == ""
    assert not (home / ".profile").exists()


async def test_a_command_reaches_no_service_of_this_host(session: Confining) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(f"\0jumpseat-test-{os.getpid()}")
        local.listen()
        port = server.getsockname()[1]
        (session.project / "connect.py").write_text(
            "import socket, sys\n"
            "for address in ('127.0.0.1', int(sys.argv[1])), sys.argv[2]:\n"
            "    try:\n"
            "        family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX\n"
            "        socket.socket(family).connect(address if family == socket.AF_INET else '\\0' + address)\n"
            "        print('connected')\n"
            "    except OSError as error:\n"
            "        print('refused', [error.errno])\n"
        )
        result = await session.run(f"python3 connect.py {port} jumpseat-test-{os.getpid()}")
    assert result.output.count("refused [") == 2, result.output


@pytest.mark.skipif("landlock" not in MECHANISMS, reason="needs Landlock")
async def test_landlock_opens_no_socket_terminal_or_memory_of_other_programs(tmp_path: Path) -> None:
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=MECHANISMS["landlock"])
    terminal, its_end = os.openpty()
    file = tmp_path / "file"
    file.touch(0o600)
    (session.project / "try.py").write_text(
        "import ctypes, os, socket, sys\n"
        "terminal, file, shared = sys.argv[1:]\n"
        "attempts = [\n"
        "    lambda: socket.socket(socket.AF_UNIX),\n"
        "    lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),\n"
        "    lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW),\n"
        "    lambda: os.open(terminal, os.O_RDWR),\n"
        "    lambda: os.open('/dev/tty', os.O_RDWR),\n"
        "    lambda: open(shared, 'w'),\n"
        "    lambda: os.chmod(file, 0o4755),\n"
        "    lambda: os.chmod(file, 0o666),\n"
        "    lambda: os.fchmod(os.open(file, os.O_RDONLY), 0o666),\n"
        "    lambda: os.chown(file, 12345, 12345),\n"
        "    lambda: os.setxattr(file, 'user.name', b''),\n"
        "]\n"
        "for number, attempt in enumerate(attempts):\n"
        "    try:\n"
        "        attempt()\n"
        "        print('done', number)\n"
        "    except OSError:\n"
        "        pass\n"
        "left, right = socket.socketpair()\n"
        "left.send(b'sent')\n"
        "print(right.recv(4).decode(), ctypes.CDLL(None).syscall(425, 1, 0))\n"
    )
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as shared:
        result = await session.run(f"python3 try.py {os.ttyname(its_end)} {file} {shared.name}; chmod +x try.py")
    for descriptor in (terminal, its_end):
        os.close(descriptor)
    assert (result.exit_code, result.output) == (0, "sent -1\n")
    assert file.stat().st_mode & 0o7777 == 0o600


async def test_programs_in_the_sandbox_can_talk_to_each_other(tmp_path: Path, bubblewrap: Mechanism) -> None:
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=bubblewrap)
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        "c = socket.create_connection(s.getsockname()); print('connected')"
    )
    assert "connected" in (await session.run(f'python3 -c "{script}"')).output


async def test_temporary_files_are_private_and_last_for_the_session(tmp_path: Path, bubblewrap: Mechanism) -> None:
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=bubblewrap)
    (tmp_path / "secret").write_text("of another program")
    await session.run("echo mine > /tmp/file")
    result = await session.run(f"cat /tmp/file; cat {tmp_path}/secret")
    assert result.output.startswith("mine\n")
    assert "of another program" not in result.output
    if any(tmp_path.is_relative_to(folder) for folder in TEMP_FOLDERS):
        why = "because commands have their own folder for temporary files"
        assert result.refusals == [f"reading {tmp_path}/secret, {why}"]
    await session.sandbox.close()


async def test_package_managers_write_to_caches_of_the_project_and_keep_the_settings_of_the_user(
    tmp_path: Path, mechanism: Mechanism, outside: Path
) -> None:
    home = outside / "user"
    for folder in (".cargo", ".cache/pypoetry/virtualenvs"):
        (home / folder).mkdir(parents=True)
    (home / ".cargo" / "config.toml").write_text("the settings\n")
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=mechanism, user_home=home)
    result = await session.run(
        "cat $CARGO_HOME/config.toml; for folder in $CARGO_HOME/registry $PNPM_HOME $npm_config_cache $GOMODCACHE;"
        " do mkdir -p $folder && touch $folder/file || echo failed; done; ls -d $POETRY_VIRTUALENVS_PATH;"
        " echo evil >> $CARGO_HOME/config.toml; touch $POETRY_VIRTUALENVS_PATH/x"
    )
    assert result.output.splitlines()[:2] == ["the settings", f"{home}/.cache/pypoetry/virtualenvs"]
    assert (home / ".cargo" / "config.toml").read_text() == "the settings\n"
    assert not (home / ".cache" / "pypoetry" / "virtualenvs" / "x").exists()


ATTACKS = {
    "a hook": "echo '#!/bin/sh' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "a setting": "git config core.fsmonitor 'touch x'; printf '[core]\nfsmonitor = touch x' >> .git/config",
    "a moved git folder": "mv .git old; cp -r old .git; cp -r old new; echo touch x > new/hooks/pre-commit",
    "a work tree's settings": "printf '[core]\nfsmonitor = x' > .git/config.worktree",
    "another common folder": "echo ../evil > .git/commondir",
    "a nested hook": "mkdir -p nested/.git/hooks; echo x > nested/.git/hooks/post-checkout",
    "a moved nested repository": "mv nested x; cp -r x nested; echo '[core] fsmonitor = x' >> nested/.git/config",
    "a new repository": "git init -q new; git -C new config core.sshCommand x; git -C new config alias.st '!x'",
    "a bare repository": "git init -q --bare b; git -C b config core.fsmonitor x; echo x > b/hooks/update",
    "links": "mkdir -p new/.git; ln -s ../../run new/.git/hooks; ln -s nested/.git/config .mcp.json",
    "a link that becomes a file": "rm linked/.mcp.json; echo evil > linked/.mcp.json",
    "a link to another file": "echo evil > evil.json; rm linked/.mcp.json; ln -s ../evil.json linked/.mcp.json",
    "settings of agents": "mkdir -p .jumpseat .github/agents .claude deep; echo x | tee .jumpseat/config.toml"
    " .github/agents/a.md .claude/settings.json .mcp.json deep/.mcp.json",
    "settings of editors": "mkdir -p .idea sub/.vscode; echo x | tee .idea/workspace.xml sub/.vscode/tasks.json",
    "existing settings": "echo evil > .vscode/tasks.json; mv .vscode other; mkdir .vscode; echo evil > .vscode/x",
    "files that settings name": "echo evil >> shared/config; rm -rf shared; mkdir shared;"
    " echo evil > shared/config; mkdir -p .githooks; echo evil > .githooks/hooks",
    "a repository without settings": "git init -q --bare b; rm b/config;"
    " printf '#!/bin/sh\nx' > b/hooks/post-checkout",
    "settings of other agents and editors": "mkdir .codex .gemini .devcontainer; echo x | tee .codex/config.toml"
    " .gemini/settings.json .devcontainer/devcontainer.json opencode.json .nvim.lua all.code-workspace",
    "a git folder elsewhere": "mkdir plain; cp -r .git plain/dot; echo x > plain/dot/hooks/pre-commit;"
    " echo 'gitdir: dot' > plain/.git",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
async def test_no_command_leaves_a_file_that_makes_another_program_run_something(
    session: Confining, attack: str
) -> None:
    project = session.project
    git(project, "init", "-q")
    git(project, "init", "-q", "nested")
    (project / ".vscode").mkdir()
    (project / ".vscode" / "tasks.json").write_text("{}")
    (project / "file").write_text("text")
    (project / "shared").mkdir()
    (project / "shared" / "config").write_text("")
    (project / "linked").mkdir()
    (project / "linked" / "servers.json").write_text("{}")
    (project / "linked" / ".mcp.json").symlink_to("servers.json")
    git(project, "config", "include.path", "../shared/config")
    git(project, "config", "core.hooksPath", ".githooks")
    before = configuration(project)
    await session.run(attack)
    left = {
        path: text
        for path, text in configuration(project).items()
        if text not in before.values() and not path.endswith(".sample")
    }
    assert left == {}


async def test_a_repository_in_two_folders_has_no_settings(session: Confining) -> None:
    result = await session.run(
        "git init -q --bare b; mkdir x; mv b/HEAD x; echo ../b > x/commondir;"
        " git config -f b/config core.pager evil"
    )
    assert result.exit_code == 0
    found = await anyio.run_process(["git", "-C", str(session.project / "x"), "config", "--list"], check=False)
    assert b"evil" not in found.stdout


async def test_the_target_of_a_link_that_configures_a_program_cannot_be_changed(
    tmp_path: Path, bubblewrap: Mechanism
) -> None:
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=bubblewrap)
    target = session.project / "settings" / "agents" / "servers.json"
    target.parent.mkdir(parents=True)
    target.write_text("{}")
    (session.project / ".mcp.json").symlink_to("settings/agents/servers.json")
    (session.project / ".idea").symlink_to(".")
    result = await session.run(
        "echo evil > settings/agents/servers.json; mv settings other; mv settings/agents other; echo work > file;"
        " mkdir -p settings/agents; echo evil > settings/agents/servers.json; echo new > settings/agents/new"
    )
    assert target.read_text() == "{}", result.output
    assert (session.project / "file").read_text() == "work\n"
    assert (target.parent / "new").read_text() == "new\n"


async def test_folders_nested_deeper_than_the_stack_do_not_prevent_the_comparison(session: Confining) -> None:
    git(session.project, "init", "-q")
    nest = (
        "import os\n"
        "for folder in '.git', os.environ['TMPDIR']:\n"
        "    above = os.getcwd()\n"
        "    os.chdir(folder)\n"
        "    for name in ['modules'] + ['m'] * 1500:\n"
        "        os.mkdir(name)\n"
        "        os.chdir(name)\n"
        "    os.chdir(above)\n"
    )
    (session.project / "nest.py").write_text(nest)
    try:
        result = await session.run("echo evil > .mcp.json; python3 nest.py")
    finally:
        # Too deep for the removal of temporary files.
        await anyio.run_process(["rm", "-rf", str(session.project / ".git")])
    assert result.exit_code == 0, result.output
    assert not (session.project / ".mcp.json").exists()
    await session.sandbox.close()
    assert os.listdir(tempfile.gettempdir()) == []


def configuration(project: Path) -> dict[str, str]:
    """Return the files that programs obey, without new repositories as ``git init`` makes them."""
    names = (
        "config",
        "config.worktree",
        "commondir",
        ".mcp.json",
        "opencode.json",
        ".nvim.lua",
        "all.code-workspace",
    )
    folders = (
        *("hooks", ".githooks", ".jumpseat", "agents", ".claude", ".codex", ".gemini"),
        *(".vscode", ".idea", ".devcontainer"),
    )
    return {
        str(path.relative_to(project)): path.read_text()
        for path in project.rglob("*")
        if (path.is_symlink() or path.is_file())
        and (path.name in names or not set(folders).isdisjoint(path.relative_to(project).parts[:-1]))
        and path.exists()
        and path.name != "README"
    }


async def test_ordinary_work_with_git_needs_nothing_outside(session: Confining) -> None:
    git(session.project, "init", "-q")
    git(session.project, "config", "user.name", "n")
    git(session.project, "config", "user.email", "n@example.com")
    result = await session.run(
        "echo a > a && git add a && git commit -qm first && git checkout -qb other && echo b >> a && git stash -q"
        " && git stash pop -q && git commit -qam second && git merge -q other && git worktree add -q tree"
        " && git clone -q . copy && git init -q fresh && git -C copy log --oneline && git status --short"
    )
    assert result.exit_code == 0, result.output
    assert result.messages == []
    assert "second" in git(session.project, "log", "--oneline")
    assert "second" in git(session.project / "copy", "log", "--oneline")


async def test_a_commit_in_a_linked_work_tree_reaches_its_repository(tmp_path: Path, bubblewrap: Mechanism) -> None:
    repository, tree = tmp_path / "repository", tmp_path / "tree"
    repository.mkdir()
    git(repository, "init", "-q")
    git(repository, "commit", "-q", "--allow-empty", "-m", "first")
    git(repository, "config", "user.name", "n")
    git(repository, "config", "user.email", "n@example.com")
    git(repository, "worktree", "add", "-q", str(tree))
    session = Confining(tree, tmp_path / "home", mechanism=bubblewrap)
    result = await session.run(
        f"git commit -q --allow-empty -m second; echo x > {repository}/.git/hooks/pre-commit; echo > {repository}/x"
    )
    assert "second" in git(repository, "log", "--all", "--oneline")
    assert not (repository / ".git" / "hooks" / "pre-commit").exists()
    assert not (repository / "x").exists(), result.output


def repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "file").write_text("x")
    git(folder, "add", "file")
    git(folder, "commit", "-qm", "first")
    return folder


def add_submodule(above: Path, name: str, of: Path) -> None:
    git(above, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(of), name)
    git(above, "commit", "-qm", "submodule")


def linked_trees(folder: Path) -> dict[str, Path]:
    """Return work trees whose git folders are elsewhere, by name, in new repositories in ``folder``."""
    inner, library, main = (repository(folder / name) for name in ("inner", "library", "main"))
    add_submodule(library, "deep/in", inner)
    add_submodule(main, "sub module", library)
    sub = main / "sub module"
    update = ("-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init", "--recursive")
    git(main, *update)
    git(sub, "worktree", "add", "-q", "-b", "other", str(folder / "tree of sub"))
    git(main, "worktree", "add", "-q", str(folder / "tree"))
    git(folder / "tree", *update)
    git(folder, "clone", "-q", "--separate-git-dir", str(folder / "elsewhere.git"), str(inner), "separate")
    add_submodule(main, "absolute", inner)
    (main / "absolute" / ".git").write_text(f"gitdir: {main}/.git/modules/absolute\n")
    (main / "absolute" / "below").mkdir()
    return {
        "a submodule": sub,
        "a nested submodule": sub / "deep" / "in",
        "a work tree of a submodule": folder / "tree of sub",
        "a submodule in a work tree": folder / "tree" / "sub module",
        "a nested submodule in a work tree": folder / "tree" / "sub module" / "deep" / "in",
        "a separate git folder": folder / "separate",
        "an absolute link": main / "absolute",
        "a folder in a submodule": main / "absolute" / "below",
    }


def with_own_hooks(tree: Path) -> dict[Path, str]:
    """Set a folder for hooks in the work tree, and return :func:`protected`."""
    git(tree, "config", "core.hooksPath", ".githooks")
    Path(git(tree, "rev-parse", "--show-toplevel").strip(), ".githooks").mkdir(exist_ok=True)
    return protected(tree)


def protected(tree: Path) -> dict[Path, str]:
    """Return the settings and hooks of a repository, without samples."""
    common = Path(git(tree, "rev-parse", "--path-format=absolute", "--git-common-dir").strip())
    top = Path(git(tree, "rev-parse", "--show-toplevel").strip())
    hooks = [*common.glob("hooks/*"), *top.glob(".githooks/*")]
    files = [common / "config", *(path for path in hooks if path.suffix != ".sample")]
    return {path: path.read_text() for path in files}


async def test_git_works_in_trees_with_a_git_folder_elsewhere_which_stays_protected(
    tmp_path: Path, bubblewrap: Mechanism
) -> None:
    for name, tree in linked_trees(tmp_path).items():
        before = with_own_hooks(tree)
        session = Confining(tree, tmp_path / "home", mechanism=bubblewrap)
        result = await session.run(
            "echo y > made; git add made && git -c user.name=n -c user.email=n@example.com commit -qm second;"
            ' folder="$(git rev-parse --git-common-dir)"; echo x > "$folder/hooks/pre-commit";'
            ' echo "[alias] x = !x" >> "$folder/config"; cd "$(git rev-parse --show-toplevel)";'
            f" echo x > .githooks/pre-commit; touch {tmp_path}/main/file {tmp_path}/main/.git/new"
        )
        assert "second" in git(tree, "log", "--oneline"), (name, result.output)
        assert protected(tree) == before, name
        assert not (tmp_path / "main" / ".git" / "new").exists(), name
        await session.sandbox.close()


async def test_submodules_of_a_linked_work_tree_stay_protected_in_their_repository(
    tmp_path: Path, session: Confining
) -> None:
    linked_trees(tmp_path)
    of_tree = Confining(tmp_path / "main", session.home, mechanism=session.mechanism)
    hook = ".git/worktrees/tree/modules/sub module/hooks/post-commit"
    await of_tree.run(f'echo evil > "{hook}"; git -C "sub module" config core.fsmonitor evil')
    assert not (tmp_path / "main" / hook).exists()
    assert "evil" not in (tmp_path / "main/.git/modules/sub module/config").read_text()


async def test_a_git_file_opens_no_folder_that_does_not_name_its_work_tree(
    tmp_path: Path, bubblewrap: Mechanism
) -> None:
    linked_trees(tmp_path)
    victims = [
        *(tmp_path / name for name in ("inner/.git", "elsewhere.git", "main/.git/modules/sub module", "keys")),
        tmp_path / "main/.git/worktrees/tree",
        repository(tmp_path / "bare") / ".git",
    ]
    git(tmp_path / "bare", "config", "core.bare", "true")
    (tmp_path / "keys").mkdir()
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=bubblewrap)
    forged = session.project / "forged"
    forged.mkdir()
    (forged / "gitdir").write_text(f"{session.project}/.git")
    for victim in victims:
        (forged / "commondir").write_text(str(victim))
        for line in (f"{victim}", f"../{victim.relative_to(tmp_path)}", "forged", f"{victim}\0"):
            (session.project / ".git").write_text(f"gitdir: {line}\n")
            result = await session.run(f"touch '{victim}/new' '{tmp_path}/main/.git/new'")
            assert result.output.count("cannot touch") == 2, (victim, line)


async def test_no_process_outlives_the_process_that_started_the_sandbox(
    tmp_path: Path, bubblewrap: Mechanism
) -> None:
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=bubblewrap)
    line = "setsid sleep 1000 & (setsid setsid sleep 1000 &) ; touch started; sleep 1000"
    confined = await session.sandbox.confine(["bash", "-c", line], session.project, session.environ)
    process = await anyio.open_process(confined.command, cwd=session.project, env=confined.environ)
    await until((session.project / "started").exists)
    namespace = pid_namespace(process.pid)
    await until(lambda: len(members(namespace)) >= 4)
    process.kill()
    await until(lambda: not members(namespace))
    await process.wait()


def pid_namespace(parent: int) -> str:
    """Return the PID namespace of the processes below ``parent``."""
    (child,) = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return os.readlink(f"/proc/{child}/ns/pid")


async def test_without_a_mechanism_a_required_sandbox_runs_nothing(tmp_path: Path) -> None:
    sandboxes = Sandboxes(SandboxSettings(mode="require"), tmp_path, {"PATH": "", "HOME": str(tmp_path)})
    sandboxes.probed = True
    sandbox = SessionSandbox(sandboxes, lambda: sandboxes.defaults, lambda: [tmp_path])
    with pytest.raises(SandboxUnavailableError):
        await sandbox.confine(["true"], tmp_path, {})
    assert sandbox.confines() is False


async def test_a_mechanism_that_does_not_work_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "bwrap").write_text(
        '#!/bin/sh\nwhile [ $# -gt 0 ]; do [ $1 = -- ] && shift && exec "$@"; shift; done'
    )
    (tmp_path / "bwrap").chmod(0o755)
    found = await find_mechanism({"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)})
    assert found is None or getattr(found, "program", "") != str(tmp_path / "bwrap")


async def test_a_command_does_not_reach_the_socket_files_of_other_programs(
    tmp_path: Path, bubblewrap: Mechanism, outside: Path
) -> None:
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=bubblewrap)
    # The file stays: a sandbox that another test starts now could not hide a file that has gone.
    path = outside.parent / "a socket"
    path.unlink(missing_ok=True)
    (session.project / "connect.py").write_text(
        "import socket, sys\nsocket.socket(socket.AF_UNIX).connect(sys.argv[1])\nprint('connected')\n"
    )
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        result = await session.run(f"python3 connect.py '{path}'")
    assert "Error" in result.output


async def test_a_socket_that_was_bound_by_a_relative_path_is_hidden(
    tmp_path: Path, bubblewrap: Mechanism, outside: Path
) -> None:
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=bubblewrap)
    path = outside.parent / "below" / "relative socket"
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    (session.project / "connect.py").write_text(
        "import socket, sys\nsocket.socket(socket.AF_UNIX).connect(sys.argv[1])\nprint('connected')\n"
    )
    bind = (
        "import os, socket, sys\nos.chdir(sys.argv[1])\nserver = socket.socket(socket.AF_UNIX)\n"
        "server.bind('below/relative socket')\nserver.listen()\nprint('ready', flush=True)\ninput()"
    )
    command = [sys.executable, "-c", bind, str(outside.parent)]
    async with await anyio.open_process(command, stdin=PIPE, stdout=PIPE) as program:
        assert program.stdout is not None
        await BufferedByteReceiveStream(program.stdout).receive_until(b"\n", 100)
        assert str(path) in await anyio.to_thread.run_sync(socket_files)
        result = await session.run(f"python3 connect.py '{path}'")
        program.terminate()
    assert "Error" in result.output


async def test_of_dot_folders_a_command_reads_only_what_tools_need(
    tmp_path: Path, mechanism: Mechanism, outside: Path
) -> None:
    secret = [
        ".zsh_history", ".invented/key", ".invented/bin/../key", ".codex/auth.json", ".cache/huggingface/token",
        ".config/containers/auth.json", ".config/invented/token", ".config/git/credentials", ".config/uv/uv.toml",
        ".local/share/opencode/auth.json", ".local/share/uv/credentials/x", ".local/state/invented/x",
        ".cargo/credentials.toml", ".m2/settings.xml", ".gradle/gradle.properties", ".docker/config.json",
        ".cache/invented/auth.json", ".cache/zsh/history", ".zshrc", ".config/git/config",
    ]  # fmt: skip
    contents = {
        ".config/uv/uv.toml": "[index]\nurl = https://me:word@example.com\n",
        ".config/git/config": '[url "https://word@example.com/"]\n\tinsteadOf = x:\n',
        ".zshrc": "export MODEL_API_KEY=word\n",
        ".bashrc": "export EDITOR=vi\n",
        ".gitconfig": "[user]\n\tsigningkey = x\n[credential]\n\thelper = store\n",
    }
    needed = [
        ".bashrc", ".gitconfig", ".config/git/ignore", ".config/pip/pip.conf", ".config/go/env", ".cache/pip/x",
        ".npm/x",
        ".nvm/versions/x", ".cargo/registry/x", ".rustup/toolchains/x", ".gradle/wrapper/x", ".m2/repository/x",
        ".local/bin/x", ".local/lib/x", ".local/share/uv/tools/x", ".pyenv/x", ".invented/bin/x", "notes/.env",
    ]  # fmt: skip
    for name in (*secret, *needed):
        path = outside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contents.get(name, "content\n"))
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=mechanism, user_home=outside)
    session.environ["PATH"] += f":{outside}/.invented/bin"
    read = 'for name in "$@"; do [ -n "$(cat "$name" 2>/dev/null)" ] && echo "$name"; done; true'
    (session.project / "read").write_text(f"cd {outside}\n{read}\n")
    assert (await session.run(f"bash read {' '.join(secret)}")).output == ""
    assert (await session.run(f"bash read {' '.join(needed)}")).output.split() == needed


async def test_secrets_that_appear_while_a_command_runs_are_not_seen(
    tmp_path: Path, bubblewrap: Mechanism, outside: Path
) -> None:
    replaced = [".netrc", ".cargo/credentials.toml", ".config/git/credentials"]
    for name in (*replaced, ".cargo/config.toml", "notes/x", ".gitconfig", ".m2/repository/x"):
        (outside / name).parent.mkdir(parents=True, exist_ok=True)
        (outside / name).write_text("[net]\n")
    (outside / "link").symlink_to("notes")
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=bubblewrap, user_home=outside)
    created = [".npmrc", ".invented/key", ".m2/settings.xml", ".config/invented/token", ".agent.sock"]
    names = " ".join((*replaced, *created, "link/x", ".cargo/config.toml", ".m2/repository/x"))
    wait = "touch begun; until [ -e go ]; do sleep 0.01; done"
    line = f'{wait}; cd {outside}; for name in {names}; do [ -s "$name" ] && echo "$name"; done; true'
    result: list[Result] = []

    async def run() -> None:
        result.append(await session.run(line))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await until((session.project / "begun").exists)
        for name in (*replaced, *created):
            (outside / name).parent.mkdir(parents=True, exist_ok=True)
            (outside / "new").write_text("secret\n")
            (outside / "new").rename(outside / name)
        (session.project / "go").touch()
    assert result[0].output.split() == ["link/x", ".cargo/config.toml", ".m2/repository/x"]


async def test_a_hidden_folder_that_the_settings_show_is_readable(
    tmp_path: Path, mechanism: Mechanism, outside: Path
) -> None:
    for name in (".one/x", ".config/two/x", ".config/three/x"):
        (outside / name).parent.mkdir(parents=True)
        (outside / name).write_text(name)
    settings = SandboxSettings(mode="auto", show=(f"{outside}/.one", f"{outside}/.config/two"))
    session = Confining(tmp_path / "project", tmp_path / "home", settings, mechanism, outside)
    assert (await session.run(f"cd {outside}; cat .one/x .config/*/x 2>/dev/null")).output == ".one/x.config/two/x"


async def test_no_command_leaves_a_file_of_the_table(session: Confining) -> None:
    names = [*NAMES, *(f"name{suffix}" for suffix in SUFFIXES)]
    names += ["/".join((*folder, name)) for folder, inside in INSIDE.items() for name in inside]
    (session.project / "names").write_text("".join(f"sub/{name}\n" for name in names))
    result = await session.run(
        'while read -r name; do mkdir -p "${name%/*}"; echo paths path:/x >"$name"; done <names'
    )
    assert result.exit_code == 0
    assert [name for name in names if (session.project / "sub" / name).exists()] == []
