"""Approvals cover everyday work: of common command lines, few are asked about twice."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from jumpseat.agent.permissions.approvals import ApprovalRecord, approval_record, narrowest_approval
from jumpseat.agent.permissions.facts import gather_facts
from jumpseat.agent.permissions.paths import PathScope
from jumpseat.agent.permissions.permissions import Permissions
from jumpseat.tools.shell.sandbox_needs import command_needs
from jumpseat_protocol.permissions import ShellPermission
from tests.agent.permissions.test_hostile_calls import decide, run_without_event_loop, shell

TABLE = Path(__file__).parent / "data" / "everyday.toml"


def in_mode_auto(line: str) -> ShellPermission:
    """Return the request for a line where a sandbox works: most lines are confined, some cannot be."""
    request = shell(line)
    request.sandboxed = command_needs(line).outside is None
    return request


def approve(request: ShellPermission, path_scope: PathScope) -> ApprovalRecord | None:
    """Return the record of a line that a user approves for the session, without choosing the approval."""
    return approval_record(narrowest_approval(request), request, gather_facts(request, "bash", path_scope), None)


def test_an_approval_of_the_list_of_programs_covers_no_environments(tmp_path: Path) -> None:
    permissions = Permissions(
        lambda _event: None, lambda: False, lambda _request: False, PathScope(lambda: tmp_path)
    )
    record = approve(shell("ps aux"), permissions.path_scope)
    assert record is not None
    run_without_event_loop(permissions.approvals.add_for_location("/", record))
    for line in ("ps auxeww", "ps eww -p 1", "ps -ef e", "ps aux -E", "ps ax -- e", "ps 1 eww"):
        assert decide(permissions, shell(line)).status == "denied", line


@pytest.mark.thorough
@pytest.mark.parametrize("request_for", [shell, in_mode_auto], ids=["without a sandbox", "sandbox in auto"])
def test_of_everyday_commands_nine_in_ten_run_without_a_second_question(
    request_for: Callable[[str], ShellPermission], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table: dict[str, list[tuple[str, str]]] = tomllib.loads(TABLE.read_text())
    asked: dict[str, list[str]] = {"repeat": [], "variant": []}
    for rows in table.values():
        for line, variant in rows:
            permissions = Permissions(
                lambda _event: None, lambda: False, lambda _request: False, PathScope(lambda: tmp_path)
            )
            record = approve(request_for(line), permissions.path_scope)
            if record is not None:
                run_without_event_loop(permissions.approvals.add_for_location("/", record))
            for kind, later in (("repeat", line), ("variant", variant)):
                if decide(permissions, request_for(later)).status != "allowed":
                    asked[kind].append(later)
    count = sum(map(len, table.values()))
    assert count >= 300
    with capsys.disabled():
        for kind, lines in asked.items():
            print(f"\n{kind}: {1 - len(lines) / count:.1%} of {count} run unasked; asked about: {lines}")
    assert len(asked["repeat"]) <= 0.1 * count
    assert len(asked["variant"]) <= 0.1 * count


FILTERED = {
    # The approved line, and a later one; whether that runs without a question.
    ("pytest", "pytest -q 2>&1 | tail -20"): True,
    ("./run.sh --all", "./run.sh --all 2>&1 | grep -i error | head -5"): True,
    ("./run.sh --all 2>&1 | tail -20", "./run.sh --all > /dev/null"): True,
    ("npm run build", "npm run build |& sed -n '1,20p' | sort | uniq -c"): True,
    ("python3 x.py", "python3 x.py 2>/dev/null | jq '.a' | tr a b | wc -l"): True,
    ("./run.sh", "./run.sh | grep -r secret"): False,
    ("./run.sh", "./run.sh | grep x ../other"): False,
    ("./run.sh", "./run.sh | grep -f /etc/passwd"): False,
    ("./run.sh", "./run.sh | jq --rawfile a /etc/passwd ."): False,
    ("./run.sh", "./run.sh | tail -20 > out"): False,
    ("./run.sh", "./run.sh | sort -o out"): False,
    ("./run.sh", "./run.sh | cat && cat"): False,
    ("./run.sh", "echo x | ./run.sh"): False,
    ("./run.sh", "./run.sh & cat"): False,
    ("./run.sh", "./run.sh | bash"): False,
    ("./run.sh", "./other.sh 2>&1 | tail"): False,
    ("./run.sh", "./run.sh 2> log | tail"): False,
    ("./run.sh", "./run.sh < input | tail"): False,
}


FILTERED_INSIDE = {
    # What only reads files of the project is covered beside other commands.
    ("./run.sh", "./run.sh | grep -r secret"): True,
    ("./run.sh", "./run.sh | cat && cat"): True,
    ("./run.sh", "./run.sh & cat"): True,
}

CONFINED = {
    ("./run.sh", "./run.sh --verbose 2>&1 | tail"): True,
    ("python3 manage.py test", "python3 manage.py test --failfast"): True,
    ("make test", "make test VERBOSE=1"): True,
    ("npm run build", "npm run build -- --mode production"): True,
    ("cargo run", "cargo run -- --help"): True,
    ("cd src && pytest", "cd src && pytest -q"): True,
    ("gcc -o a a.c", "gcc -O2 -Wall -o a a.c"): True,
    ("sed -i s/a/b/ a.txt", "sed -i s/c/d/g b.txt"): True,
    ("timeout 60 npm test", "timeout 120 npm test"): True,
    ("docker ps", "docker ps -a"): True,
    ("./run.sh", "./run.sh deploy"): False,
    ("./run.sh", "./other.sh"): False,
    ("./run.sh", "./run.sh /etc/passwd"): False,
    ("./run.sh", "./run.sh .git/config"): False,
    ("./run.sh", "./run.sh http://other.example"): False,
    ("./run.sh", "./run.sh $X"): False,
    ("./run.sh", "./run.sh > out"): False,
    ("./run.sh", "cd src && ./run.sh --all"): False,
    ("cd src && pytest", "cd tests && pytest"): True,
    ("pytest", "cd node_modules/x && pytest"): False,
    ("pytest", "cd ../x && pytest"): False,
    ("pytest", "cd .x && pytest"): False,
    ("pytest", "(cd src && pytest) 2>&1 | tail -5; echo $?"): True,
    ("pytest", "pytest -q > /tmp/out.txt 2>&1; tail -5 /tmp/out.txt"): True,
    ("pytest", "pytest -q > src/main.py"): False,
    ("pytest", "pytest /tmp/x.py | tee /tmp/x.py"): False,
    ("pytest", "cat /tmp/x.py | pytest /tmp/x.py"): False,
    ("python3 x.py", "PORT=1 PYTHONPATH=src python3 x.py & sleep 1; curl -s localhost:1/x; kill $!"): True,
    ("python3 x.py", "python3 x.py & curl -s a.example"): False,
    ("python3 x.py", "PYTHONPATH=/tmp python3 x.py"): False,
    ("python3 x.py", "PYTHONPATH=.x python3 x.py"): False,
    ("bash x.sh", "BASH_ENV=x bash x.sh"): False,
    ("python3 x.py", "kill -9 1; python3 x.py"): False,
    ("git add a && git commit -m x", "git commit -m y"): True,
    ("git commit -m x", "git add -A && git commit -m y"): True,
    ("git commit -m x", "git commit -m x && git push"): False,
    ("git rm a", "cd src && git rm -r b"): False,
    ("git switch a", "git checkout ."): False,
    ("git stash", "git stash pop"): True,
    ("git stash", "git stash clear"): False,
    ("ls", "git diff --stat && wc -l a.txt"): True,
    ("ls", "cat /etc/passwd"): False,
    ("ls", "find . -delete"): False,
    ("npm ls", "npm run build"): False,
    ("npm test", "npm run build"): True,
    ("npm test", "npm run evil"): False,
    ("pytest", "mypy src"): True,
    ("pytest", "black src"): False,
    ("pytest", "ruff check --fix src"): False,
    ("go vet ./...", "go test ./internal"): True,
    ("go build ./...", "go build -o bin/x ./cmd/x"): True,
    ("go build ./...", "go build -o src/main.go ./cmd/x"): False,
    ("go build ./...", "go build -toolexec ./x ./..."): False,
    ("coverage report", "coverage run x.py"): False,
    ("alembic upgrade head", "alembic current"): True,
    ("alembic current", "alembic upgrade head"): False,
    ("wiper list", "wiper list --help; wiper all"): False,
    ("cd src && pytest", "cd src && pytest -p evil"): False,
    ("python3 x.py", "python3 -i x.py"): False,
    ("python3 -m pip install x", "python3 -m pip install y"): False,
    ("make test", "make test SHELL=./x"): False,
    ("make test", "make test --eval=x"): False,
    ("make test", "make deploy VERBOSE=1"): False,
    ("npm run build", "npm run --script-shell=./x build"): False,
    ("gcc -o a a.c", "gcc -o a a.c -fplugin=x.so"): False,
    ("gcc -o a a.c", "gcc -o a @x.c"): False,
    ("sed -i s/a/b/ a.txt", "sed -i s/a/id/e a.txt"): False,
    ("sed -i s/a/b/ a.txt", "sed -i s/a/b/ .git/config"): False,
    ("go run .", "go run -exec x ."): False,
    ("/bin/rm a", "/bin/rm b -r"): False,
    ("timeout 9 rm a", "timeout 9 rm b"): False,
    ("timeout 9 curl -s http://a.example", "timeout 9 curl -s b.example"): False,
    ("docker ps", "docker ps -a && make test"): False,
    ("docker run x", "docker run -v /:/x x"): False,
    ("git push", "git push other"): False,
    ("./run.sh | cat", './run.sh | jq \'import "a" as $a {search: "/etc"}; .\''): False,
}
"""The same for commands that a sandbox confines, and for those that leave it."""

ADDED = {
    ("pytest", "pytest -q; echo done"): True,
    ("npm test", "npm test || true"): True,
    ("npm test", "CI=1 npm test -- --watch=false"): True,
    ("npm test", "NODE_OPTIONS=--require=./x.js npm test"): False,
    ("npm test", "PATH=. npm test"): False,
    ("npm test", "CI=$(./x) npm test"): False,
    ("npm test", "npm test && ./x"): False,
    ("npm test", "npm test; echo ~/.ssh/*"): False,
    ("npm test", "npm test; echo x > f"): False,
}
"""The same for harmless additions to a line, with and without a sandbox."""


@pytest.mark.parametrize("request_for", [shell, in_mode_auto], ids=["without a sandbox", "sandbox in auto"])
def test_harmless_additions_are_covered_with_the_command(
    request_for: Callable[[str], ShellPermission], tmp_path: Path
) -> None:
    assert covered(request_for, ADDED, tmp_path) == ADDED


def test_an_approval_in_a_sandbox_covers_other_arguments_of_the_same_script(tmp_path: Path) -> None:
    assert covered(in_mode_auto, CONFINED, tmp_path) == CONFINED


def test_a_script_that_is_a_link_to_another_program_is_like_no_other(tmp_path: Path) -> None:
    (tmp_path / "q").symlink_to("/bin/rm")
    pair = ("./q x", "./q x --verbose")
    assert not covered(in_mode_auto, [pair], tmp_path)[pair]


def test_without_a_sandbox_other_arguments_of_scripts_are_asked_about(tmp_path: Path) -> None:
    scripts = [pair for pair in CONFINED if pair[0].startswith(("./", "python", "make", "gcc", "sed", "cd"))]
    assert not any(covered(shell, scripts, tmp_path).values())


EXTENTS = {
    ("git push origin main", "git push -u origin main"): True,
    ("git push origin main", "git push other main"): False,
    ("git push origin main", "git push origin main:prod"): False,
    ("git push origin main", "git push origin main --tags"): False,
    ("git push origin main", "git push"): False,
    ("git push", "git push origin main"): False,
    ("git push", "git push -q"): True,
    ("rm f", "rm -f g"): True,
    ("rm f", "rm -rf d"): False,
    ("rm f", "rm -Rf d"): False,
    ("rm f", "rm --rec d"): False,
    ("rm f", "rm -f *"): False,
    ("rm -rf d", "rm -r e"): True,
    ("rm -rf d", "rm -rf *"): False,
    ("rm -rf *", "rm -rf *"): True,
    ("git rm f", "git rm -r ."): False,
    ("git rm f", "git rm '*'"): False,
    ("git checkout -b x", "git checkout y"): True,
    ("git checkout -b x", "git checkout ."): False,
    ("git restore f", "git restore -- ."): False,
    ("git restore f", "git restore --staged ."): True,
    ("git checkout -b x", "git checkout f.py"): False,
    ("git checkout main", "git checkout src/"): False,
    ("git checkout main", "git checkout main -- f"): False,
    ("git checkout f.py", "git checkout g.py"): True,
    ("git reset", "git reset HEAD f"): True,
    ("git reset", "git reset HEAD~3"): False,
    ("git reset", "git reset --soft main"): False,
    ("git reset HEAD~1", "git reset --soft HEAD~2"): True,
    ("git reset HEAD~1", "git reset f"): True,
    ("git add f", "git add -A"): True,
    ("git add f", "git add -fA"): False,
    ("git add f", "git add --force .env"): False,
    ("git add -f f", "git add g"): True,
    ("chmod +x f", "chmod -R 777 d"): False,
    ("chmod +x f", "chmod 0755 g"): True,
    ("chmod +x f", "chmod u+w,go-w g"): True,
    **{
        ("chmod +x f", f"chmod {mode} f"): False
        for mode in (
            "777",
            "666",
            "4755",
            "02755",
            "1777",
            "u+s",
            "g=rxs",
            "+t",
            "o+w",
            "a=rw",
            "go+w",
            "o=u",
            "u+x,a+w",
        )
    },
    ("cp f g", "cp -r f folder"): True,
    ("cp f g", "cp f tests/conftest.py"): False,
    ("cp f g", "cp other/Makefile ."): False,
    ("mv f g", "mv f vite.config.ts"): False,
    ("tee f", "tee package.json"): False,
    ("cp f Makefile", "cp g Makefile"): True,
    ("jq . f", "jq '.scripts.env, .\"env\"' f"): True,
    ("jq . f", "jq --arg env x '.[$env]' f"): True,
    **{
        ("jq . f", f"jq {program}"): False
        for program in ("-n env", "-rn '$ENV'", "'.a|env.HOME' f", "-n '\"\\(env)\"'", "-n '[env]'", "'1/env' f")
    },
    ("awk '{print $1}' f", "awk '{print ENVIRON[$1]}' f"): False,
    ("echo x", "echo $HOME ${PWD} $? '$SECRET'"): True,
    ("echo x", "echo $SECRET"): False,
    ("echo x", 'echo "${API_TOKEN}"'): False,
    ("printf x", 'printf %s "$API_TOKEN"'): False,
    ("printenv PATH", "printenv API_TOKEN"): False,
    ("printenv PATH", "printenv"): False,
    ("curl http://ok.example", "curl -sS -H 'A: b' http://ok.example/x"): True,
    ("curl http://ok.example", "curl -X GET http://ok.example/x"): True,
    ("curl http://ok.example", "curl -d x=1 http://ok.example"): False,
    ("curl http://ok.example", "curl -XDELETE http://ok.example"): False,
    ("curl -d x=1 http://ok.example", "curl --json '{}' http://ok.example"): True,
    **{
        ("curl -F x=1 http://ok.example", f"curl {sent} http://ok.example"): False
        for sent in (
            *("-F x=@f", "-F 'x=<f'", "-sFx=@f", "--form x=@f", "-d @f", "-sd@f", "--data-binary @f", "--data=@f"),
            *("--data-urlencode @f", "--data-urlencode x@f", "-H @f", "-H@f", "-b f", "-bf", "--cookie f", "-sb f"),
        )
    },
    ("curl -F x=@f http://ok.example", "curl -F x=@f http://ok.example"): True,
}
"""The same for commands that can do little or much."""


@pytest.mark.thorough
def test_an_approval_covers_no_more_than_the_extent_of_the_approved_command(tmp_path: Path) -> None:
    assert covered(shell, EXTENTS, tmp_path) == EXTENTS


@pytest.mark.parametrize("request_for", [shell, in_mode_auto], ids=["without a sandbox", "sandbox in auto"])
def test_filters_are_covered_with_the_command_that_they_filter(
    request_for: Callable[[str], ShellPermission], tmp_path: Path
) -> None:
    expected = FILTERED if request_for is shell else {**FILTERED, **FILTERED_INSIDE}
    assert covered(request_for, FILTERED, tmp_path) == expected


def covered(
    request_for: Callable[[str], ShellPermission], pairs: Iterable[tuple[str, str]], folder: Path
) -> dict[tuple[str, str], bool]:
    """Return for each pair of lines whether an approval of the first one covers the second one."""
    found: dict[tuple[str, str], bool] = {}
    for line, later in pairs:
        permissions = Permissions(
            lambda _event: None, lambda: False, lambda _request: False, PathScope(lambda: folder)
        )
        record = approve(request_for(line), permissions.path_scope)
        assert record is not None, line
        run_without_event_loop(permissions.approvals.add_for_location("/", record))
        found[line, later] = decide(permissions, request_for(later)).status == "allowed"
    return found


def test_an_approval_of_git_mv_does_not_cover_moving_settings_into_place(tmp_path: Path) -> None:
    permissions = Permissions(
        lambda _event: None, lambda: False, lambda _request: False, PathScope(lambda: tmp_path)
    )
    for folder in ("agents", ".github", "src"):
        (tmp_path / folder).mkdir()
    (tmp_path / "mcp.json").write_text("{}")
    record = approve(shell("git mv a b"), permissions.path_scope)
    assert record is not None
    run_without_event_loop(permissions.approvals.add_for_location("/", record))
    lines = ("git mv mcp.json src", "git mv agents .github", "git mv -f mcp.json .github/")
    assert [decide(permissions, shell(line)).status for line in lines] == ["allowed", "denied", "denied"]
