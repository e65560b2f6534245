"""An approval of a tool of the project in a sandbox covers other tests and files, and nothing that does harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumpseat.acp.translation.permissions import options_for
from jumpseat.agent.permissions.disclosure import disclose
from jumpseat.agent.permissions.facts import gather_facts
from jumpseat.agent.permissions.paths import PathScope
from jumpseat.agent.permissions.permissions import Permissions
from jumpseat.tools.shell.sandbox_needs import place, shell_permission
from jumpseat_protocol.permissions import PermissionDecision, ShellPermission
from tests.agent.permissions.test_hostile_calls import run_without_event_loop

COVERED = """
    npx ava > npx ava tests/app.js --match 'login*'
    bunx eslint . > bunx eslint src --quiet
    black . > black --check src
    npx eslint . --fix > npx eslint src
    npx prettier --write . > npx prettier --check src
    just test > just lint
    make lint > make typecheck
    make test > make test TESTS='-k login'
    tox -e py311 > tox -e py312
    nox -s tests > nox -s lint
    pnpm --filter app test > pnpm --filter lib test
    yarn workspace app test > yarn workspace lib test
    ./gradlew test > ./gradlew :app:test --tests '*LoginTest' --info
    coverage run -m pytest > coverage run -m pytest tests/test_app.py -k login
    mkdocs build > mkdocs build --strict
    cmake -S . -B build > cmake -S . -B build -G Ninja -DBUILD_TESTING=ON
    cd app && npm run build > cd app && npm run build 2>&1 | tail -20
    dotnet run --project app > dotnet run --project app -- --help
    node --check a.js > node --check b.js
    python3 --version > node --version
"""

ASKED = """
    ./run.sh test > ./run.sh test deploy
    ./run.sh test > ./run.sh test --env=prod
    ./run.sh > ./run.sh pushImage
    ./run.sh > ./run.sh -Pprod
    npm run x -- a > npm run x -- a publish
    npm run test > npm run test:reset
    npm run test > npm run test -- --outputFile src/main.js
    npm run x > npm run y
    pnpm run --filter app test > pnpm run --filter app evil
    pnpm --filter app test > pnpm --filter app exec rm a
    make test > make test SHELL=./evil
    make test > make test CC=./evil
    make test > make test ARGS='-o src/main.py'
    make test > make test -f evil.mk
    make test > make test --eval=x
    make test > make test clean
    just test > just test cleanAll
    zig build test > zig build run
    nox -s tests > nox -s tests -f evil.py
    ./gradlew test > ./gradlew test --init-script evil.gradle
    ./gradlew test > ./gradlew test publishToMaven
    bunx eslint . > bunx eslint . -o src/main.js
    bunx eslint . > bunx eslint . --trace-file=src/main.js
    npx ava > npx ava --config ../evil.js
    npx ava > npx ava /etc/evil.js
    npx ava > npx -p evil ava
    uv run pytest > uv run --with evil pytest
    pytest > pytest -p evil
    pytest > pytest --basetemp src
    pytest > pytest --basetemp=src
    cargo nextest run > cargo nextest run --config-file evil
    gotestsum > gotestsum -- -exec rm
    gotestsum > gotestsum --post-run-command 'rm x'
    bash -n a.sh > bash -n +n a.sh
    bash -n a.sh > bash a.sh
    ruby -c a.rb > ruby -c -revil a.rb
    php -l a.php > php -l a.php -r 'unlink(1);'
    vendor/bin/php-cs-fixer fix --dry-run > vendor/bin/php-cs-fixer fix
    fd -e pyc -x rm > fd -x rm
    find . -name a -delete > find . -delete
    shred a.txt > shred src
    wiper a --yes > wiper --yes
    wiper a --help > wiper a
    make --version > make version
    ctest > ctest -S evil
    bash -n a.sh > bash -n -i evil.sh
    node --check a.js > node --check --test evil.js
    npx mocha > npx mocha --reporter evil
    npx mocha > npx mocha --file evil.js
    npx mocha > npx mocha --require=evil.js
    phpunit > phpunit --configuration=evil.xml
    vendor/bin/phpunit > vendor/bin/phpunit --bootstrap evil.php
    phpstan analyse > phpstan analyse --configuration evil.neon
    mvn test > mvn test -s evil
    mvn test > mvn test -t evil
    gradle test > gradle test --include evil
    gradle test > gradle test -I evil
    cargo test > cargo test --target evil.json
    cargo test > cargo test --config evil.toml
    npm test > npm test -g
    npm run test > npm run test -- -R evil
    pytest > pytest -c evil.ini
    pytest > pytest --rootdir=evil
    rspec > rspec -S evil
    just test > just lint -g
    bunx eslint . > bunx eslint src --fix
    yarn eslint src > yarn eslint src --fix
    npx prettier --check . > npx prettier --write .
    black --check . > black .
    poetry run black --check . > poetry run black .
    ruff check . > ruff check --fix .
    ruff format --check . > ruff format .
    gofmt -l . > gofmt -w .
    cargo fmt --check > cargo fmt
    mix format --check-formatted > mix format
    swiftlint > swiftlint --fix
    npx tsc --noEmit > npx tsc src/x.ts
    shfmt -d . > shfmt -w .
"""


def request_of(line: str) -> ShellPermission:
    return shell_permission(line, line, place(line, confines=True, may_leave=True))


def runs_unasked(folder: Path, approved: str, line: str) -> bool:
    """Return whether ``line`` runs in a sandbox without a question after an approval of ``approved``."""
    scope = PathScope(lambda: folder)
    permissions = Permissions(lambda _: None, lambda: False, lambda _: False, scope)

    async def decide() -> bool:
        request = request_of(approved)
        facts = gather_facts(request, "bash", scope)
        await permissions.approvals.keep(PermissionDecision(kind="approve-for-session"), request, facts)
        return (await permissions.decide(request_of(line), "bash")).status == "allowed"

    return run_without_event_loop(decide())


@pytest.mark.parametrize(("pairs", "covered"), [(COVERED, True), (ASKED, False)], ids=["covered", "asked"])
def test_other_tests_are_covered_and_other_effects_are_not(pairs: str, covered: bool, tmp_path: Path) -> None:
    (tmp_path / "run.sh").touch()
    for name in ("src", "app", "build"):
        (tmp_path / name).mkdir()
    lines = [line.strip().rpartition(" > ") for line in pairs.strip().splitlines()]
    wrong = [(first, later) for first, _, later in lines if runs_unasked(tmp_path, first, later) is not covered]
    assert wrong == []


def test_what_goes_further_than_an_approved_command_is_asked_about(tmp_path: Path) -> None:
    for name in ("src", "app", "build", ".git", "node_modules/x", "vendor/x", "cmd/x"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("run.sh", "a.txt", "src/main.py"):
        (tmp_path / name).touch()
    lines = Path(__file__).with_name("data").joinpath("wider_follow_ups.txt").read_text().splitlines()
    pairs = [(first, later) for first, _, later in (line.partition(" > ") for line in lines)]
    assert [(first, later) for first, later in pairs if runs_unasked(tmp_path, first, later)] == []


@pytest.mark.parametrize(
    ("line", "also"),
    [
        (
            "./run.sh test",
            "./run.sh test with other arguments, ./run.sh with subcommands that only show something,"
            " commands that only read files of the project",
        ),
        (
            "make lint",
            "make with other tasks that build or check something, tools that test or check the project,"
            " commands that only read files of the project",
        ),
        (
            "mkdocs build",
            "mkdocs with subcommands that only show something, mkdocs build with options that change what it shows,"
            " commands that only read files of the project",
        ),
        (
            "eslint --fix src",
            "eslint with other arguments, also to change files, tools that test or check the project,"
            " commands that only read files of the project",
        ),
        ("git checkout -b x", "new branches of git, commands that only read files of the project"),
        ("./run.sh deploy", None),
        ("rm a.txt", None),
    ],
)
def test_the_question_names_what_an_approval_also_covers(line: str, also: str | None, tmp_path: Path) -> None:
    (tmp_path / "run.sh").touch()
    request = request_of(line)
    disclose(request, gather_facts(request, "bash", PathScope(lambda: tmp_path)))
    always = [option["name"] for option in options_for(request) if option["kind"] == "allow_always"]
    assert request.also_covered == also
    assert always == [f"Allow for this session, also {also}" if also else "Allow for this session"]
