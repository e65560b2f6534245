"""What a confined command leaves behind makes no other program run something, however it is written or moved."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import anyio
import pytest

from jumpseat.sandbox import configuration_files, folders
from jumpseat.sandbox.git_folders import GitSettings
from jumpseat.sandbox.indexes import Indexes
from jumpseat.sandbox.mechanisms import Mechanism
from jumpseat.sandbox.session import Pace
from jumpseat.sandbox.settings import SandboxSettings
from tests.sandbox.parts import MECHANISMS, Confining, git

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not MECHANISMS, reason="needs a sandbox")]


@pytest.fixture(params=MECHANISMS.values(), ids=list(MECHANISMS))
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    return request.param


@pytest.fixture
def session(tmp_path: Path, mechanism: Mechanism) -> Confining:
    return Confining(tmp_path / "project", tmp_path / "home", mechanism=mechanism)


LINE_ENDS = {
    "a form feed": r"\f",
    "a vertical tab": r"\v",
    "a carriage return": r"\r",
    "a separator": r"\034",
    "a control character of Latin-1": r"\302\205",
    "a line separator": r"\342\200\250",
}
"""Characters that end a line for other programs than git, in the form of ``printf``."""

INIT = "git init -q sub; "
EVIL = "printf '[core]\\n\\tfsmonitor = ../run.sh\\n' > sub/evil; "
EVIL_IN = "git init -q {0}; mkdir {0}/a; git config --file {0}/.git/config core.fsmonitor $PWD/run.sh; "
FOLDER = "cp -r .git {0}; printf '[core]\\n\\tfsmonitor = ../run.sh\\n' >> {0}/config; mkdir -p sub; "

PROGRAMS_OF_GIT = {
    **{
        name: f"{INIT}{EVIL}printf '[include] # x{end}[submodule \"y\"]\\n\\tpath = ../evil\\n' >> sub/.git/config"
        for name, end in LINE_ENDS.items()
    },
    "a value over two lines": rf"{INIT}{EVIL}printf '[user]\n\tname = \\\n\n[include]\n\tpath = ../evil\n'"
    " >> sub/.git/config",
    "a setting behind its section": rf"{INIT}{EVIL}printf '[include] path = ../evil\n' >> sub/.git/config",
    "a git folder inside of another one": f"{FOLDER.format('.git/zz')}echo 'gitdir: ../.git/zz' > sub/.git",
    "a git folder inside of a submodule's": f"mkdir -p .git/modules; cp -r .git copy; mv copy .git/modules/m;"
    f"{FOLDER.format('.git/modules/m/zz')}echo 'gitdir: ../.git/modules/m/zz' > sub/.git",
    "a work tree that is a repository": f"mkdir -p .git/worktrees; {FOLDER.format('.git/worktrees/w')}"
    "echo 'gitdir: ../.git/worktrees/w' > sub/.git",
    "a path with a space before it": f"mkdir 'sub' 'sub/ ..'; {FOLDER.format('x')}mkdir -p 'sub/ ../.git';"
    " cp -r x 'sub/ ../.git/modules'; mkdir -p .git/modules; echo 'gitdir:  ../.git/modules' > sub/.git",
    "a path through a link": f"mkdir -p .git/modules; cp -r .git copy; mv copy .git/modules/m;"
    f" {FOLDER.format('node_modules')}ln -s .git/modules/m way; echo 'gitdir: ../way' > sub/.git;"
    " ln -sfn node_modules way",
    "a common folder that is none": f"{FOLDER.format('.git/zz')}mkdir -p .git/worktrees/w sub;"
    " cp .git/HEAD .git/worktrees/w; echo ../../zz > .git/worktrees/w/commondir;"
    " echo 'gitdir: ../.git/worktrees/w' > sub/.git",
    "a repository below one in parts": f"mkdir -p lib/objects lib/sub; cp .git/HEAD lib/HEAD; {INIT}"
    "printf '[core]\\n\\tfsmonitor = ../../run.sh\\n' >> sub/.git/config; rmdir lib/sub; mv sub lib/sub",
    "a repository behind a link into a git folder": f"{EVIL_IN.format('.git/zz')}ln -s .git/zz sub",
    "a repository behind a link to a part of it": f"{EVIL_IN.format('.git/info/zz')}ln -s .git/info/zz/a sub",
    "a repository behind a link into the caches": f"{EVIL_IN.format('$PIP_CACHE_DIR/zz')}"
    "ln -s $PIP_CACHE_DIR/zz sub",
    "a repository behind two links": f"{EVIL_IN.format('$PIP_CACHE_DIR/zz')}ln -s ../pip/zz $PNPM_HOME/yy;"
    " ln -s $PNPM_HOME/yy sub",
    "a repository in a folder that other systems take for a git folder": EVIL_IN.format(".Git/zz"),
    "a hook that settings name": f"{INIT}printf '[core]\\n\\thooksPath = ../hooks\\n' >> sub/.git/config;"
    " mkdir hooks; cp run.sh hooks/post-index-change",
}


@pytest.mark.parametrize("attack", PROGRAMS_OF_GIT.values(), ids=PROGRAMS_OF_GIT.keys())
async def test_git_runs_no_program_that_a_command_has_set(tmp_path: Path, session: Confining, attack: str) -> None:
    project, ran = session.project, tmp_path / "ran"
    git(project, "init", "-q")
    (project / "run.sh").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (project / "run.sh").chmod(0o755)
    result = await session.run(attack)
    links = [path.parent for path in project.rglob(".git") if ".git" not in path.parent.parts]
    for folder in (*links, project / "sub"):
        if folder.is_dir():
            await anyio.run_process(["git", "status"], cwd=folder, check=False)
    assert not ran.exists(), result.output


REPLACED = {
    "a work tree": (
        "worktree add -q ../tree",
        "cp -r .git/worktrees/tree .git/zz; cp -r .git .yy; mv .yy .git/yy; echo ../yy > .git/zz/commondir;"
        " git config --file .git/yy/config core.fsmonitor $PWD/run.sh;"
        " mv .git/worktrees/tree .git/old; ln -s ../zz .git/worktrees/tree",
    ),
    "a submodule": (
        "clone -q --separate-git-dir .git/modules/a/b . ../tree",
        "cp -r .git/modules/a/b .git/zz; git config --file .git/zz/config core.fsmonitor $PWD/run.sh;"
        " mv .git/modules/a .git/old; mkdir .git/modules/a; ln -s ../../zz .git/modules/a/b",
    ),
}
"""What names a git folder, and a command that puts a link in the place of that."""


@pytest.mark.parametrize(("before", "attack"), REPLACED.values(), ids=REPLACED.keys())
async def test_git_follows_no_link_in_the_place_of_a_git_folder(
    tmp_path: Path, session: Confining, before: str, attack: str
) -> None:
    project, ran = session.project, tmp_path / "ran"
    git(project, "init", "-q")
    git(project, "commit", "-q", "--allow-empty", "-m", "m")
    (project / ".git" / "modules" / "a").mkdir(parents=True)
    git(project, *before.split())
    (project / "run.sh").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (project / "run.sh").chmod(0o755)
    assert (await session.run("true")).messages == []
    result = await session.run(attack)
    await anyio.run_process(["git", "status"], cwd=project.parent / "tree", check=False)
    assert not ran.exists(), result.output
    assert len(result.messages) == 1


HARD_LINKS = {
    "settings": (
        "git init -q sub; ln sub/.git/config other",
        "printf '[core]\\n\\tfsmonitor = ../run.sh\\n' >> other",
    ),
    "the path of a git folder": (
        "git init -q sub; mv sub/.git .git/modules; echo 'gitdir: ../.git/modules' > sub/.git; ln sub/.git other;"
        f" {FOLDER.format('.git/zz')}",
        "echo 'gitdir: ../.git/zz' > other",
    ),
}
"""Commands that leave a harmless file under another name, too, and others that change it there."""


@pytest.mark.parametrize("lines", HARD_LINKS.values(), ids=HARD_LINKS.keys())
async def test_no_later_command_changes_a_file_under_another_name(
    tmp_path: Path, session: Confining, lines: tuple[str, str]
) -> None:
    project, ran = session.project, tmp_path / "ran"
    git(project, "init", "-q")
    (project / "run.sh").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (project / "run.sh").chmod(0o755)
    for line in lines:
        await session.run(line)
    await anyio.run_process(["git", "status"], cwd=project / "sub", check=False)
    assert not ran.exists()


VERSIONS = {
    ".tool-versions": ("nodejs 22.1.0\n", "nodejs path:./evil\n"),
    "global.json": ('{"sdk": {"version": "9.0.100"}}', '{"sdk": {"paths": ["evil"]}}'),
    "rust-toolchain": ("stable\n", "[toolchain]\npath = 'evil'\n"),
    "rust-toolchain.toml": ('[toolchain]\nchannel = "1.80"\n', '[toolchain]\n"p\\u0061th" = "evil"\n'),
}


async def test_the_choice_of_a_version_stays_and_that_of_a_program_does_not(session: Confining) -> None:
    project = session.project
    for name, texts in VERSIONS.items():
        for folder, text in zip(("good", "evil"), texts, strict=True):
            (project / "from" / folder).mkdir(parents=True, exist_ok=True)
            (project / "from" / folder / f"{name}.txt").write_text(text)
    await session.run(
        "for f in from/*/*.txt from/*/.*.txt; do g=${f#from/}; mkdir -p ${g%/*}; cp $f ${g%.txt}; done"
    )
    assert {path.name for path in (project / "good").iterdir()} == VERSIONS.keys()
    assert list((project / "evil").iterdir()) == []


async def test_a_link_that_leads_to_no_settings_stays(session: Confining) -> None:
    git(session.project, "init", "-q")
    lines = (
        "git init -q $PIP_CACHE_DIR/a; ln -s $PIP_CACHE_DIR/a a; ln -s .git b; ln -s .git/objects c; ln -s /usr d"
    )
    assert (await session.run(lines)).messages == []
    assert (await session.run("touch x")).messages == []


async def test_links_to_too_many_folders_do_not_count_as_confined(
    session: Confining, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_BEHIND", 10)
    await session.run("mkdir -p $PIP_CACHE_DIR/{1,2,3}/{1,2,3}; ln -s $PIP_CACHE_DIR/1 a")
    assert session.sandbox.examined
    await session.run("ln -s $PIP_CACHE_DIR b")
    assert not session.sandbox.examined


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs the users of Unix")
def test_a_folder_that_can_be_entered_and_not_listed_is_new_settings() -> None:
    files = configuration_files.ConfigurationFiles(Path("/home"), Path("/own"), GitSettings(lambda: None))
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        before = files.snapshot([root], contents=False)
        for folder in ("open", "closed", "dark"):
            (root / folder / "a").mkdir(parents=True)
        # Root can list any folder.
        user = 65534 if os.geteuid() == 0 else os.geteuid()
        os.chown(root, user, -1)
        (root / "dark").chmod(0o311)
        (root / "closed").chmod(0)
        os.chown(root / "dark", user, -1)
        own = os.geteuid()
        try:
            os.seteuid(user)
            after = files.snapshot([root], contents=False)
        finally:
            os.seteuid(own)
        found = configuration_files.new_files(before, after, GitSettings(lambda: None))
        for folder in ("closed", "dark"):
            (root / folder).chmod(0o700)
    assert found == [f"{root}/dark"]


NESTED = (
    "git init -q {0}; cd {0}; git -c user.name=n -c user.email=n@example.com commit -q --allow-empty -m m; "
    "{1}cd - > /dev/null; "
    "git update-index --add --cacheinfo 160000,$(git -C {0} -c core.fsmonitor= rev-parse HEAD),{0}"
)
AMONG_PACKAGES = ("node_modules/a", ".venv/src/deep/b", "lib/venv/c", "node_modules/x/.venv/d")


@pytest.mark.parametrize("few", [configuration_files.FEW_INSTALLED, 0], ids=["few packages", "many packages"])
@pytest.mark.parametrize("place", AMONG_PACKAGES)
async def test_git_runs_nothing_in_a_repository_among_packages_that_the_index_names(
    tmp_path: Path, session: Confining, place: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuration_files, "FEW_INSTALLED", few)
    project, ran = session.project, tmp_path / "ran"
    git(project, "init", "-q")
    (project / "run.sh").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (project / "run.sh").chmod(0o755)
    await session.run("mkdir -p node_modules/.bin; touch node_modules/.bin/x")
    result = await session.run(NESTED.format(place, ""))
    assert (result.exit_code, result.messages) == (0, [])
    # The repository is known by now, and its settings are read-only, but others may take its place.
    evil = f"printf '[core]\\n\\tfsmonitor = {project}/run.sh\\n' >> .git/config; "
    result = await session.run(f"mv {place} gone; {NESTED.format(place, evil)}")
    assert "160000" in git(project, "ls-files", "-s")
    git(project, "status")
    assert not ran.exists(), result.output


HIDDEN_NAMES = {
    "an index of version 4": "git update-index --index-version 4",
    "an index in two parts": "git update-index --split-index",
    "the index of a submodule": "git init -q m; mkdir -p .git/modules/a; mv m/.git .git/modules/a/b;"
    " echo 'gitdir: ../.git/modules/a/b' > m/.git; cp .git/index .git/modules/a/b/index; git rm -q --cached -r .",
    "the index of a work tree": "git worktree add -q --detach w; cp .git/index .git/worktrees/w/index;"
    " git rm -q --cached -r .",
}


@pytest.mark.parametrize("hide", HIDDEN_NAMES.values(), ids=HIDDEN_NAMES.keys())
async def test_an_index_may_name_a_repository_in_any_form(tmp_path: Path, hide: str) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "m")
    indexes = Indexes()
    (tmp_path / "f").touch()
    git(tmp_path, "add", "f")
    assert not indexes.may_name_repositories([f"{tmp_path}/.git"])
    head = git(tmp_path, "rev-parse", "HEAD").strip()
    git(tmp_path, "update-index", "--add", "--cacheinfo", f"160000,{head},node_modules/a")
    assert indexes.may_name_repositories([f"{tmp_path}/.git"])
    await anyio.run_process(["bash", "-ec", hide], cwd=tmp_path)
    assert indexes.may_name_repositories([f"{tmp_path}/.git"])


async def test_other_repositories_among_many_packages_are_found_once_a_turn(
    session: Confining, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuration_files, "FEW_INSTALLED", 0)
    warned: list[str] = []
    monkeypatch.setattr(session.sandbox, "_warn", warned.append)
    project = session.project
    (project / "node_modules" / "x").mkdir(parents=True)
    evil = "git init -q {0}; git config --file {0}/.git/config core.fsmonitor ./run.sh"
    assert (await session.run("touch f")).messages == []
    for at_end, place in enumerate(("node_modules/a", "node_modules/x/b")):
        assert (await session.run(evil.format(place))).messages == []
        # Packages of somebody else do not make that of the command one of theirs.
        folder = project / f"other{at_end}" / "node_modules"
        git(project, "init", "-q", str(folder / "c"))
        git(folder / "c", "config", "core.fsmonitor", "true")
        if at_end:
            await session.sandbox.finish()
        else:
            assert (await session.run("touch g")).messages == []
        assert not (project / place / ".git" / "config").exists()
        assert place in warned.pop()
        assert warned == []
    assert (project / "other0" / "node_modules" / "c" / ".git" / "config").exists()


async def test_a_search_during_an_answer_does_not_put_off_the_one_at_the_end_of_the_turn(
    session: Confining, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuration_files, "FEW_INSTALLED", 0)
    (session.project / "node_modules" / "x").mkdir(parents=True)
    evil = "git init -q {0}; git config --file {0}/.git/config core.fsmonitor ./run.sh"
    assert (await session.run("touch f")).messages == []
    paces: tuple[Pace, ...] = ("answer", "turn")
    for pace in paces:
        place = f"node_modules/x/{pace}"
        assert (await session.run(evil.format(place))).messages == []
        await session.sandbox.finish(pace)
        assert not (session.project / place / ".git" / "config").exists()


async def test_repositories_among_packages_that_were_there_before_stay_as_they_are(session: Confining) -> None:
    project = session.project
    for folder in ("node_modules/a", "sub/.venv/src/b"):
        (project / folder).mkdir(parents=True)
        git(project / folder, "init", "-q")
        git(project / folder, "config", "core.fsmonitor", "true")
    assert (await session.run("touch x")).messages == []
    # Whatever else makes packages meanwhile, did not run in the sandbox.
    (project / "node_modules/.cache").mkdir()
    git(project, "init", "-q", "venv/c")
    git(project / "venv/c", "config", "core.fsmonitor", "true")
    assert (await session.run("git init -q node_modules/d; touch node_modules/a/y")).messages == []
    assert len(list(project.rglob(".git/config"))) == 4


async def test_an_interrupted_rebase_does_not_run_a_command_that_a_command_has_added(session: Confining) -> None:
    project = session.project
    git(project, "init", "-q")
    for number in range(2):
        git(project, "commit", "-q", "--allow-empty", "-m", str(number))
    await anyio.run_process(
        ["git", "rebase", "-i", "HEAD~1", "--keep-empty", "-x", "false"],
        cwd=project,
        check=False,
        env={**os.environ, "GIT_SEQUENCE_EDITOR": "sed -i 1ibreak", "EMAIL": "n@example.com"},
    )
    steps = project / ".git" / "rebase-merge" / "git-rebase-todo"
    assert "exec false" in steps.read_text()
    result = await session.run("git status; touch x")
    assert (result.messages, steps.exists()) == ([], True)
    result = await session.run("echo ort > .git/rebase-merge/strategy")
    assert (result.messages, steps.exists()) == ([], True)
    result = await session.run("echo ../evil > .git/rebase-merge/strategy")
    assert len(result.messages) == 1
    assert not steps.with_name("strategy").exists()
    result = await session.run("printf '\\t x evil\\n' >> .git/rebase-merge/git-rebase-todo")
    assert len(result.messages) == 1
    assert not steps.exists()


@pytest.mark.parametrize("tree", ["../../../home", "../..", "/home"])
async def test_a_repository_has_no_work_tree_elsewhere(session: Confining, tree: str) -> None:
    git(session.project, "init", "-q")
    result = await session.run("git init -q good; git -C good config core.worktree ..")
    assert result.messages == []
    result = await session.run(f"{INIT}git config --file sub/.git/config core.worktree {tree}")
    assert len(result.messages) == 1
    assert not (session.project / "sub" / ".git" / "config").exists()
    assert "worktree" in (session.project / "good" / ".git" / "config").read_text()


SETTINGS = (".jumpseat/config.toml", ".vscode/tasks.json", ".github/mcp.json", ".mcp.json")


def with_settings(folder: Path) -> None:
    for name in SETTINGS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("evil")


@pytest.mark.parametrize(
    "line",
    [
        "mv fixtures/x/.[a-z]* .; mv fixtures/x/.github/mcp.json .github",
        "mv app old; mv fixtures/x app",
        "rm -r app; mv fixtures/x app",
        "cp -r fixtures/x/. .",
    ],
)
async def test_settings_have_no_effect_in_another_folder(session: Confining, line: str) -> None:
    with_settings(session.project / "fixtures" / "x")
    (session.project / "app" / ".github").mkdir(parents=True)
    await session.run(line)
    places = (session.project, session.project / "app")
    assert [name for place in places for name in SETTINGS if (place / name).exists()] == []


async def test_settings_that_move_along_with_their_folder_stay(session: Confining) -> None:
    with_settings(session.project / "packages" / "a")
    result = await session.run("mv packages/a packages/b; mv packages more")
    assert result.messages == []
    assert all((session.project / "more" / "b" / name).exists() for name in SETTINGS)


async def test_commands_in_too_many_folders_do_not_count_as_confined(
    session: Confining, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuration_files, "MAX_FOLDERS", 100)
    warnings: list[str] = []
    monkeypatch.setattr(session.sandbox, "_warn", warnings.append)
    git(session.project, "init", "-q", "lib")
    await session.sandbox.probe()
    assert session.sandbox.examined
    await session.run("mkdir a; cd a; mkdir $(seq 200)")
    assert (session.sandbox.examined, len(warnings)) == (False, 1)
    # Folders that were there before are examined nevertheless.
    result = await session.run("echo '[core] fsmonitor = x' >> lib/.git/config.worktree; rm -r a")
    assert len(result.messages) == 1
    await session.run("true")
    assert (session.sandbox.examined, len(warnings)) == (False, 1)


async def test_settings_of_a_project_do_not_show_a_hidden_file(tmp_path: Path, mechanism: Mechanism) -> None:
    user = tmp_path / "user"
    (user / ".ssh").mkdir(parents=True)
    (user / ".ssh" / "id").write_text("secret\n")
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=mechanism, user_home=user)
    git(session.project, "init", "-q")
    git(session.project, "config", "include.path", str(user / ".ssh" / "id"))
    assert "secret" not in (await session.run(f"cat {user}/.ssh/id")).output


async def test_only_repositories_from_before_the_first_command_are_opened(
    tmp_path: Path, session: Confining
) -> None:
    other, project = tmp_path / "other", session.project
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "first")
    project.rmdir()
    git(other, "worktree", "add", "-q", str(project))
    link = (project / ".git").read_text()
    (project / ".git").unlink()
    await session.run("true")
    # The repository still names the work tree, and a process that runs meanwhile writes the link.
    (project / ".git").write_text(link)
    result = await session.run(f"touch {other}/.git/new")
    assert not (other / ".git" / "new").exists(), result.output


async def test_a_link_in_the_place_of_a_folder_opens_nothing(tmp_path: Path, mechanism: Mechanism) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    settings = SandboxSettings(mode="auto", write=("shared",))
    session = Confining(tmp_path / "project", tmp_path / "home", settings, mechanism)
    (session.project / "shared").mkdir()
    await session.run("touch shared/file; mv shared old; ln -s ../victim shared")
    if not (session.project / "shared").is_symlink():
        # With bubblewrap, only a command in another folder could move it.
        (session.project / "shared").rename(session.project / "old")
        (session.project / "shared").symlink_to(victim)
    assert (session.project / "old" / "file").exists()
    await session.run("touch shared/file")
    assert list(victim.iterdir()) == []


async def test_a_command_beside_another_one_follows_no_link_that_was_exchanged(
    outside: Path, mechanism: Mechanism
) -> None:
    session = Confining(outside / "project", outside / "home", mechanism=mechanism)
    victim, project, hidden = outside / "victim", session.project, outside / "user" / ".ssh"
    for folder in (victim, project / "x"):
        folder.mkdir()
        git(folder, "init", "-q")
    (project / "x" / ".vscode").mkdir()
    (project / "x" / ".mcp.json").write_text("{}")
    hidden.mkdir()
    (hidden / "id").write_text("secret\n")
    git(project, "init", "-q")
    sandbox, words = session.sandbox, ["bash", "-c", "cat x/.vscode/* x/.mcp.json; touch x/.git/new .git/config"]
    other = await sandbox.confine(["sleep", "1"], project, session.environ)
    confined = await sandbox.confine(words, project, session.environ)
    # Now the other command exchanges a folder.
    (project / "x").rename(project / "y")
    (project / "x").mkdir()
    (project / "x" / ".git").symlink_to("../../victim/.git")
    (project / "x" / ".vscode").symlink_to("../../user/.ssh")
    (project / "x" / ".mcp.json").symlink_to("../../user/.ssh/id")
    ran = await anyio.run_process(confined.command, cwd=project, env=confined.environ, check=False)
    assert b"secret" not in ran.stdout
    assert not (victim / ".git" / "new").exists()
    await sandbox.settle(confined)
    await sandbox.settle(other)


async def test_settings_are_compared_by_their_contents_beside_another_command(session: Confining) -> None:
    with_settings(session.project / "x")
    git(session.project, "init", "-q")
    before = (session.project / ".git" / "config").read_text()
    other = await session.sandbox.confine(["sleep", "1"], session.project, session.environ)
    await session.run("echo other >> x/.vscode/tasks.json; echo x >> .git/config; echo new > x/new")
    assert (session.project / "x" / ".vscode" / "tasks.json").read_text() == "evil"
    assert (session.project / ".git" / "config").read_text() == before
    assert (session.project / "x" / "new").exists()
    await session.sandbox.settle(other)


async def test_a_link_in_a_folder_of_programs_shows_no_hidden_file(outside: Path, mechanism: Mechanism) -> None:
    session = Confining(outside / "project", outside / "home", mechanism=mechanism)
    hidden = outside / "user" / ".ssh" / "keys"
    hidden.mkdir(parents=True)
    (hidden / "id").write_text("secret\n")
    (session.project / "tools").symlink_to(hidden)
    session.environ["PATH"] += f":{session.project}/tools"
    assert "secret" not in (await session.run("cat tools/id ~/.ssh/keys/id")).output
