"""Count the everyday follow-ups of approved commands that run without a second question.

    follow_ups.py [--all]

Each pair is a command that was approved for the session, and a command like it that a model runs next. Both are
judged as in the default mode with bubblewrap; nothing runs. Prints the follow-ups that ask again, or all of them.
The exit code is 1 if fewer than nine tenths run unasked.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio

from jumpseat.agent.permissions.facts import gather_facts
from jumpseat.agent.permissions.paths import PathScope
from jumpseat.agent.permissions.permissions import Permissions
from jumpseat.tools.shell.sandbox_needs import place, shell_permission
from jumpseat_protocol.permissions import PermissionDecision, ShellPermission

LEAST: Final = 0.9

FOLDERS: Final = (
    "src",
    "tests",
    "docs",
    "build",
    "cmd",
    "internal",
    "app",
    "lib",
    "target",
    "node_modules/.bin",
    ".git",
)
FILES: Final = (
    "src/main.py", "src/app.ts", "src/lib.rs", "tests/test_app.py", "README.md", "package.json", "pyproject.toml",
    "Cargo.toml", "go.mod", "main.go", "pom.xml", "Makefile", "Dockerfile", "a.txt", "b.txt", "data.json", "run.sh",
)  # fmt: skip

PAIRS: Final[Mapping[str, str]] = {
    # Python.
    "pytest": """
        pytest -q > pytest -q tests/test_app.py
        pytest -q > pytest -x --lf
        pytest -q > pytest -q 2>&1 | tail -20
        pytest tests > pytest tests -k login
        pytest > pytest -vv tests/test_app.py::test_login
        pytest > pytest --maxfail=1 -q | head -50
        pytest > pytest -q; echo done
        pytest > pytest --cov=src --cov-report=term-missing
        python -m pytest -q > python -m pytest -q tests/test_app.py
        python -m pytest > python -m pytest -x 2>&1 | tail -30
        python3 -m pytest tests > python3 -m pytest tests -q
        .venv/bin/pytest -q > .venv/bin/pytest -q tests
        .venv/bin/python -m pytest > .venv/bin/python -m pytest -q
        cd src && pytest > cd src && pytest -q
        PYTHONPATH=src pytest > PYTHONPATH=src pytest -q
        uv run pytest > uv run pytest -q tests/test_app.py
        poetry run pytest > poetry run pytest -x
        coverage run -m pytest > coverage report
    """,
    "python": """
        python src/main.py > python src/main.py --help
        python src/main.py > python src/main.py --debug 2>&1 | head -20
        python -m src.main > python -m src.main --version
        python -m json.tool data.json > python -m json.tool package.json
        python manage.py test > python manage.py test app
        python manage.py migrate > python manage.py migrate app
        python manage.py makemigrations > python manage.py makemigrations app
        python setup.py build > python setup.py build_ext --inplace
        pip install -e . > pip install -r requirements.txt
        pip list > pip list --outdated
        pip show requests > pip show httpx
        pip freeze > pip freeze | grep -i django
        ruff check . > ruff check --fix src
        ruff check . > ruff check src/main.py
        ruff format . > ruff format src tests
        mypy src > mypy src/main.py --strict
        pyright > pyright src/main.py
        black . > black --check src
        isort . > isort src
        flake8 src > flake8 src/main.py
        uv sync > uv sync --all-extras
        poetry install > poetry install --with dev
        python -m build > python -m build --wheel
    """,
    # JavaScript.
    "node": """
        npm test > npm test -- --watch=false
        npm test > npm test 2>&1 | tail -40
        npm test > npm test -- src/app.test.ts
        npm run build > npm run build -- --mode production
        npm run build > npm run build 2>&1 | tail -20
        npm run lint > npm run lint -- --fix
        npm run test > npm run test -- --coverage
        npm run build > npm run build && ls build
        npm install > npm install --save-dev vitest
        npm ci > npm ci --ignore-scripts
        npm ls > npm ls react
        npm outdated > npm outdated --json
        npm audit > npm audit --json | head -50
        npx tsc --noEmit > npx tsc --noEmit -p .
        npx tsc > npx tsc --noEmit 2>&1 | head -30
        npx eslint src > npx eslint src/app.ts --fix
        npx prettier --check . > npx prettier --write src
        npx vitest run > npx vitest run src/app.test.ts
        npx jest > npx jest src --coverage
        npx playwright test > npx playwright test --project=chromium
        node src/app.js > node src/app.js --port 3000
        node --test > node --test tests
        yarn test > yarn test --watchAll=false
        yarn install > yarn install --frozen-lockfile
        yarn build > yarn build 2>&1 | tail -5
        pnpm install > pnpm install --frozen-lockfile
        pnpm test > pnpm test -- --run
        pnpm build > pnpm build | tail -10
        bun test > bun test src
        bun install > bun install --frozen-lockfile
        deno test > deno test src
        tsc -p . > tsc -p . --noEmit
        eslint . > eslint src --ext .ts
        vite build > vite build --mode staging
        cd app && npm test > cd app && npm test -- --silent
        CI=1 npm test > CI=1 npm test -- --run
    """,
    # Rust and Go.
    "rust": """
        cargo build > cargo build --release
        cargo build > cargo build 2>&1 | tail -30
        cargo test > cargo test login
        cargo test > cargo test -- --nocapture
        cargo test > cargo test --lib 2>&1 | grep FAILED
        cargo check > cargo check --all-targets
        cargo clippy > cargo clippy --all-targets -- -D warnings
        cargo clippy > cargo clippy --fix --allow-dirty
        cargo fmt > cargo fmt --check
        cargo run > cargo run --release
        cargo run > cargo run -- --help
        cargo bench > cargo bench parse
        cargo doc > cargo doc --no-deps
        cargo tree > cargo tree -i serde
        cargo nextest run > cargo nextest run login
        RUST_BACKTRACE=1 cargo test > RUST_BACKTRACE=1 cargo test login
        ./target/debug/app > ./target/debug/app --help
    """,
    "go": """
        go build ./... > go build -o build/app .
        go test ./... > go test ./internal/...
        go test ./... > go test -run TestLogin ./...
        go test ./... > go test -race -count=1 ./... 2>&1 | tail -20
        go test ./... > go test ./... | grep -v ok
        go vet ./... > go vet ./internal/...
        go run . > go run . --help
        go run main.go > go run main.go -v
        go mod tidy > go mod tidy -v
        go mod download > go mod download -x
        go fmt ./... > go fmt ./internal/...
        go generate ./... > go generate ./internal/...
        gofmt -l . > gofmt -w main.go
        golangci-lint run > golangci-lint run ./internal/...
        go list ./... > go list -m all
        go env > go env GOPATH
    """,
    # Java, C and others.
    "java": """
        mvn test > mvn test -Dtest=LoginTest
        mvn test > mvn -q test
        mvn package > mvn package -DskipTests
        mvn clean install > mvn clean install -DskipTests
        mvn compile > mvn compile 2>&1 | tail -20
        ./mvnw test > ./mvnw test -Dtest=LoginTest
        ./gradlew test > ./gradlew test --tests LoginTest
        ./gradlew build > ./gradlew build -x test
        ./gradlew build > ./gradlew build --info 2>&1 | tail -40
        gradle test > gradle test --rerun-tasks
        javac -d build src/Main.java > javac -d build src/Other.java
        java -jar build/app.jar > java -jar build/app.jar --version
        dotnet build > dotnet build -c Release
        dotnet test > dotnet test --filter Login
        dotnet run > dotnet run --project app
    """,
    "make": """
        make > make -j4
        make test > make test VERBOSE=1
        make test > make test 2>&1 | tail -20
        make build > make build -B
        make lint > make lint ARGS=--fix
        make -j8 > make -j8 install-local
        cmake -B build > cmake -B build -DCMAKE_BUILD_TYPE=Debug
        cmake --build build > cmake --build build --target tests
        ctest --test-dir build > ctest --test-dir build -R login
        ninja -C build > ninja -C build tests
        gcc -o build/a src/a.c > gcc -O2 -Wall -o build/a src/a.c
        bundle exec rspec > bundle exec rspec spec/models
        bundle install > bundle install --path vendor
        composer install > composer install --no-dev
        phpunit > phpunit tests/LoginTest.php
        swift test > swift test --filter Login
    """,
    # Reading.
    "reading": """
        ls > ls -la src
        ls src > ls -R tests | head -20
        cat README.md > cat src/main.py
        cat a.txt > cat a.txt b.txt | wc -l
        head -20 a.txt > head -n 5 b.txt
        tail a.txt > tail -n 50 b.txt
        wc -l a.txt > wc -l src/main.py tests/test_app.py
        grep -rn login src > grep -rn logout src tests
        grep -n TODO a.txt > grep -in fixme b.txt | head
        rg login > rg -n logout src
        rg -l login > rg -t py login
        find . -name '*.py' > find src -type f -name '*.ts'
        find . -name '*.py' > find . -name '*.py' | wc -l
        git status > git status --short
        git diff > git diff --stat HEAD~1
        git diff > git diff src/main.py | head -50
        git log --oneline > git log --oneline -5 -- src
        git log > git log -p src/main.py | head -100
        git show > git show HEAD~1 --stat
        git branch > git branch -a
        git blame a.txt > git blame -L 1,5 b.txt
        git remote -v > git remote
        git ls-files > git ls-files src | wc -l
        git grep login > git grep -n logout
        git rev-parse HEAD > git rev-parse --short HEAD
        sed -n 1,20p a.txt > sed -n 30,50p b.txt
        du -sh build > du -sh src
        file a.txt > file b.txt
        stat a.txt > stat b.txt
        which python > which node
        pwd > pwd
        env > env | grep PATH
        diff a.txt b.txt > diff -u a.txt b.txt | head
        sort a.txt > sort -u b.txt
        cut -d, -f1 a.txt > cut -d, -f2 b.txt | sort | uniq -c
        jq . package.json > jq -r .name package.json
        date > date +%F
        npm view react > npm view vue version
        docker images > docker images -a
        docker logs web > docker logs --tail 50 web
        pytest > pytest -q 2>/dev/null
        npm run lint > npm run lint 2>/dev/null
        cargo test > cargo test 2>&1 | tee a.txt | tail -5
        go test ./... > go test ./... 2>&1 | grep -A5 FAIL
        make test > make test | tail -3 && echo done
    """,
    # git.
    "git": """
        git add src > git add tests
        git add -A > git add README.md
        git commit -m 'Add login' > git commit -m 'Fix login'
        git commit -m 'Add login' > git commit --amend --no-edit
        git add -A && git commit -m x > git add src && git commit -m 'Fix y'
        git checkout -b feature > git checkout -b other
        git checkout main > git checkout feature
        git switch -c feature > git switch main
        git stash > git stash pop
        git branch feature > git branch other
        git branch -d feature > git branch -d other
        git merge feature > git merge --no-ff other
        git rebase main > git rebase --continue
        git reset HEAD~1 > git reset --soft HEAD~1
        git restore src > git restore --staged src
        git rm a.txt > git rm b.txt
        git mv a.txt c.txt > git mv b.txt d.txt
        git init > git init app
        git push > git push origin HEAD
        git fetch > git fetch --all
        git pull > git pull --rebase
        git clean -n > git clean -n src
    """,
    # Services.
    "docker": """
        docker build . > docker build -t app .
        docker compose up -d > docker compose up -d web
        docker ps > docker ps -a
        docker logs web > docker logs db
        docker run --rm app > docker run --rm app ls
        gh pr list > gh pr view 1
    """,
    # Utilities.
    "utilities": """
        mkdir build > mkdir -p build/out
        touch a.txt > touch b.txt
        cp a.txt b.txt > cp README.md docs
        mv a.txt c.txt > mv b.txt d.txt
        rm a.txt > rm b.txt
        rm -rf build > rm -rf target
        chmod +x run.sh > chmod 644 README.md
        ln -s a.txt l > ln -s b.txt m
        sed -i s/a/b/ a.txt > sed -i s/c/d/ b.txt
        curl http://localhost:3000 > curl http://localhost:3000/health
        curl -s http://localhost:8080/api | jq . > curl -s http://localhost:8080/api/users | jq .
        jq . data.json > jq .name package.json
        ./run.sh > ./run.sh --verbose
        bash run.sh > bash run.sh test
        sh run.sh > sh run.sh 2>&1 | tail -5
        sleep 1 > sleep 2
        tree > tree src
        timeout 60 npm test > timeout 120 npm test
        diff a.txt b.txt > diff -u a.txt b.txt
        shellcheck run.sh > shellcheck -x run.sh
    """,
}


def pairs() -> list[tuple[str, str]]:
    """Return the commands with their follow-ups; in a line, `` > `` with a space around it comes last."""
    lines = (line.strip() for text in PAIRS.values() for line in text.strip().splitlines())
    return [(first.strip(), next_.strip()) for first, _, next_ in (line.rpartition(" > ") for line in lines)]


async def asks_again(folder: Path, first: str, follow_up: str) -> bool:
    """Return whether somebody is asked about ``follow_up`` after an approval of ``first`` for the session."""
    scope = PathScope(lambda: folder)
    permissions = Permissions(lambda _: None, lambda: False, lambda _: False, scope)
    request = _request(first)
    facts = gather_facts(request, "bash", scope)
    await permissions.approvals.keep(PermissionDecision(kind="approve-for-session"), request, facts)
    return (await permissions.decide(_request(follow_up), "bash")).status != "allowed"


def _request(line: str) -> ShellPermission:
    return shell_permission(line, line, place(line, confines=True, may_leave=True))


def make_project(folder: Path) -> Path:
    for below in FOLDERS:
        (folder / below).mkdir(parents=True)
    for file in FILES:
        (folder / file).touch()
    return folder.resolve()


async def count(*, show_all: bool) -> bool:
    with tempfile.TemporaryDirectory() as name:
        folder = make_project(Path(name))
        found = [(first, next_, await asks_again(folder, first, next_)) for first, next_ in pairs()]
    for first, next_, asks in found:
        if asks or show_all:
            print(f"{'asks' if asks else 'runs'}  {first}  →  {next_}")
    good = sum(not asks for _, _, asks in found)
    print(f"{good} of {len(found)} run without a second question")
    return good >= LEAST * len(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    return 0 if anyio.run(lambda: count(show_all=options.all)) else 1


if __name__ == "__main__":
    sys.exit(main())
