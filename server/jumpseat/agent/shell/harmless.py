"""Tables of commands that approvals cover with other arguments, and their options that are known to be harmless.

A command that is in no table, or that has an option which is not in its row, is covered by its whole text only.
:func:`jumpseat.agent.shell.options.parse_options` describes the notation. An option belongs here only if it neither
runs a program, nor loads code or settings, nor opens or writes files that the words of the command do not name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from jumpseat.agent.shell.reading import READING

PYTHON_TOOLS: Final[Mapping[str, str]] = {
    # Programs that run the project's own code or settings, also as `python -m NAME` and `uv run NAME`.
    "pytest": (
        "-qvxslk:m:n:r: --tb= --maxfail= --durations= --durations-min= --lf --ff --nf --sw --last-failed"
        " --failed-first --new-first --stepwise --exitfirst --quiet --verbose --collect-only --co --cov?"
        " --cov-report= --no-cov --cov-branch --cov-append --no-header --no-summary --showlocals --color="
        " --timeout= --capture= --deselect= --ignore= --ignore-glob= --strict-markers --strict-config"
        " --runxfail --setup-show --fixtures --numprocesses= --dist= --random-order --snapshot-update"
        " --benchmark-only --benchmark-skip --markers --version :"
    ),
    "unittest": "-vqfbck:s:p:t: --verbose --quiet --failfast --buffer --locals",
    "black": (
        "-qvSCl:t: --check --diff --quiet --verbose --line-length= --target-version= --color --no-color"
        " --fast --safe --skip-string-normalization --preview"
    ),
    "isort": "-cdq --check --check-only --diff --quiet --profile= --line-length= --atomic --float-to-top",
    "ruff check": (
        "-qvsne --fix --no-fix --diff --select= --ignore= --extend-select= --statistics --output-format="
        " --line-length= --quiet --show-fixes --unsafe-fixes --no-cache --exit-zero --target-version="
        " --preview --exclude= --exit-non-zero-on-fix"
    ),
    "ruff format": "-qvsn --check --diff --line-length= --quiet --target-version= --preview --exclude= --no-cache",
    "mypy": (
        "-p:m: --strict --show-error-codes --ignore-missing-imports --pretty --no-incremental"
        " --no-error-summary --check-untyped-defs --disallow-untyped-defs --namespace-packages"
        " --explicit-package-bases --python-version= --platform= --follow-imports= --no-color-output"
        " --show-column-numbers --warn-unreachable --show-error-context --no-site-packages --exclude="
    ),
    "pyright": (
        "-p: --outputjson --stats --project= --pythonplatform= --pythonversion= --level= --warnings --verbose"
    ),
    "flake8": (
        "-qvj: --max-line-length= --select= --ignore= --extend-ignore= --exclude= --count --statistics"
        " --jobs= --show-source --max-complexity="
    ),
    "pylint": (
        "-Ej: --disable= --enable= --jobs= --errors-only --score= --reports= --fail-under= --recursive= --ignore="
    ),
    "pip list": "-ov --outdated --uptodate --not-required --format= --verbose --user --local",
    "pip show": "-fv --files --verbose",
    "pip freeze": "-l --local --all --user",
    "pip check": "",
    "pip index versions": "--pre --json",
    "pipdeptree": "-p:re: --packages= --reverse --json --exclude= --warn=",
    "coverage report": "-mi --show-missing --skip-covered --skip-empty --sort= --fail-under= --precision=",
    "build": "-wsn --wheel --sdist --no-isolation",
    "py_compile": "-q",
    "compileall": "-qflj:",
    "bandit": "-rqlivx:s:t: --recursive --quiet --verbose --exclude= --skip= --tests=",
    "vulture": "--min-confidence= --exclude= --sort-by-size",
}

_SCRIPT: Final = "-s --silent --if-present <0 -->test_script"
_JEST_SCRIPT: Final = (
    "-t:iw: --testNamePattern= --testPathPattern= --testPathPatterns= --coverage? --runInBand --verbose"
    " --silent --onlyChanged --bail? --ci --passWithNoTests --no-coverage"
    " --detectOpenHandles --forceExit --maxWorkers= --watch? --watchAll? --no-cache --listTests"
    " --findRelatedTests --run --no-color"
)
_JEST: Final = f"{_JEST_SCRIPT} -ou --updateSnapshot"

_BIOME: Final = (
    "--write --fix --staged --changed --no-errors-on-unmatched --max-diagnostics= --diagnostic-level= --verbose"
    " --colors="
)

_TSC: Final = (
    "-bwvp: --noEmit --watch --project= --pretty? --skipLibCheck --strict --version --build --listFiles"
    " --incremental --noEmitOnError --showConfig --force --dry --verbose --clean --diagnostics"
    " --extendedDiagnostics"
)

JAVASCRIPT_TOOLS: Final[Mapping[str, str]] = {
    # Programs that run the project's own code or settings, also as `npx NAME`, `pnpm exec NAME`, `yarn NAME`.
    **dict.fromkeys(("tsc", "vue-tsc"), _TSC),
    "eslint": (
        "--fix --fix-dry-run --quiet --ext= --max-warnings= --cache --no-error-on-unmatched-pattern --color"
        " --no-color --report-unused-disable-directives --fix-type= --debug --no-warn-ignored --rule="
    ),
    "prettier": (
        "-cwlu --check --write --list-different --log-level= --loglevel= --ignore-unknown --single-quote"
        " --tab-width= --print-width= --no-semi --no-color --cache --no-error-on-unmatched-pattern"
    ),
    "jest": _JEST,
    "vitest": _JEST,
    "mocha": "-g:bt:f: --grep= --bail --timeout= --exit --recursive --fgrep= --color",
    "vite build": "-m: --mode= --sourcemap? --minify? --logLevel=",
    "stylelint": "--fix --quiet --allow-empty-input --max-warnings=",
    "biome check": _BIOME,
    "biome ci": _BIOME,
    "biome format": _BIOME,
    "biome lint": _BIOME,
    "playwright test": (
        "-g:xj: --grep= --grep-invert= --headed --list --last-failed --max-failures= --project= --repeat-each="
        " --retries= --shard= --timeout= --workers= --quiet --pass-with-no-tests"
    ),
}

_RSPEC: Final = (
    "-e:t:dxbp? --example= --tag= --fail-fast? --only-failures --next-failure --dry-run --profile? --seed= --order="
    " --color --no-color --backtrace"
)

RUBY_TOOLS: Final[Mapping[str, str]] = {
    # The same, also as `bundle exec NAME`.
    "rspec": _RSPEC,
    "rails test": "-vfbn:s: --verbose --fail-fast --backtrace --name= --seed=",
    "rubocop": (
        "-aAD --autocorrect --autocorrect-all --only= --except= --fail-fast --parallel --display-cop-names"
        " --fail-level= --auto-correct"
    ),
}

BEHIND_DASHES: Final[Mapping[str, str]] = {
    # Options that may follow `--`.
    "test_script": f"{_JEST_SCRIPT} -g: --grep= --fix --check --quiet --mode=",
    "test_binary": "--nocapture --test-threads= --ignored --include-ignored --exact --show-output --list --skip=",
    "lints": "-D:W:A:F: --deny= --warn= --allow=",
    "rustfmt": "-qvl --check --edition= --quiet --verbose",
}

TEST_SCRIPT: Final = re.compile(r"(?:test|lint|format|check|typecheck|spec|e2e|unit|coverage)\b[\w:.-]*\Z")
"""Names of scripts whose arguments select or show things, rather than name what a script deploys."""

SCRIPT_RUNNERS: Final = frozenset({"npm run", "pnpm run", "yarn run", "bun run"})
"""They run a script of the project, which is the next word."""

_CARGO: Final = (
    "-rqvp:j:F: --release --quiet --verbose --package= --lib --bin= --bins --test= --tests --example="
    " --examples --bench= --benches --doc --all --workspace --exclude= --all-targets --features="
    " --all-features --no-default-features --jobs= --offline --locked --frozen --no-run --no-fail-fast"
    " --message-format= --profile= --no-deps --keep-going --timings"
)
_INSTALL: Final = "-qs --quiet --silent --no-audit --no-fund --prefer-offline --ignore-scripts <0"
_DOTNET: Final = (
    "-c:f:v: --configuration= --framework= --verbosity= --runtime= --no-restore --no-incremental --nologo"
    " --no-build"
)
_SWIFT: Final = "-c:vq --configuration= --verbose --quiet --target= --product= --filter= --skip= --parallel"
_BAZEL: Final = "-kj:c: --keep_going --jobs= --test_output= --test_filter= --verbose_failures"
_GO: Final = (
    "/v /race /short /cover /failfast /json /count= /run= /bench= /benchmem /benchtime= /timeout="
    " /coverprofile= /covermode= /coverpkg= /parallel= /p= /tags= /cpu= /x /n /a /trimpath /skip= /list="
    " /shuffle= /fuzz= /fuzztime= /vet="
)
_KUBECTL: Final = (
    "-n:l:wAo:L: --namespace= --selector= --watch --all-namespaces --output= --show-labels"
    " --field-selector= --no-headers --sort-by= --context="
)
_GH_LIST: Final = (
    "-L:s:l:a:A:S:B:H: --limit= --state= --label= --assignee= --author= --search= --json= --base="
    " --head= --comments --draft --template= --workflow= --branch= --user= --status="
)
_DOCKER_LIST: Final = "-aqf:n:s --all --quiet --filter= --format= --no-trunc --last= --latest --size"
_COMPOSE: Final = "-aq --all --quiet --services --format= --filter= --status="

WORKING: Final[Mapping[str, str]] = {
    # Other commands whose effects stay with the files that their words name, or with what they are called for.
    "chmod": "-Rvfc --recursive --verbose +",
    "cp": (
        "-rRapfnvuiTPdxt: --recursive --archive --force --verbose --no-clobber --update --interactive"
        " --target-directory= --no-target-directory --preserve? --no-dereference"
    ),
    "ln": "-sfvnrTt: --symbolic --force --verbose --no-dereference --relative --target-directory=",
    "mkdir": "-pvm: --parents --verbose --mode=",
    "mv": (
        "-fnvuiTt: --force --no-clobber --verbose --update --interactive --target-directory= --no-target-directory"
    ),
    "rm": "-rRfivdI --recursive --force --verbose --dir --interactive? --one-file-system",
    "rmdir": "-v --verbose",
    "tee": "-ai --append",
    "touch": "-acmhd:t:r: --no-create --date= --reference=",
    "truncate": "-cs: --size= --no-create",
    "curl": (
        "-sSfgiIkvN#46GjX:H:d:A:u:m:b:F:e: --silent --show-error --fail --fail-with-body --include --head"
        " --insecure --verbose --no-buffer --request= --header= --data= --data-raw= --data-binary="
        " --data-urlencode= --data-ascii= --json= --form= --form-string= --user= --user-agent= --max-time="
        " --connect-timeout= --retry= --retry-delay= --retry-max-time= --compressed --get --cookie= --referer="
        " --http1.1 --http2 --ipv4 --ipv6 --no-progress-meter --limit-rate= --range= -r: --max-filesize="
    ),
    "git add": "-AuvnfNp --all --update --intent-to-add --force --dry-run --verbose --patch :",
    "git branch": (
        "-arvlq --all --remotes --list --verbose --show-current --merged? --no-merged? --contains?"
        " --no-contains? --sort= --format= --column? --quiet --points-at= --no-color --color? --ignore-case"
    ),
    "git checkout": "-qtdpb: --quiet --track? --no-track --detach --ours --theirs --progress --orphan= --patch :",
    "git cherry-pick": "-xnm: --no-commit --abort --continue --skip --mainline=",
    "git clean": "-nq --dry-run --quiet",
    "git commit": (
        "-aqvsm:F: --message= --all --amend --no-edit --allow-empty --signoff --author= --date= --fixup="
        " --squash= --dry-run --file= --quiet --verbose --allow-empty-message --short --status --no-status"
    ),
    "git fetch": (
        "-qvptaj: --all --prune --tags --no-tags --depth= --deepen= --unshallow --quiet --verbose --dry-run"
        " --jobs= --progress --append --shallow-since="
    ),
    "git grep": (
        "-#nilwEFPcvhHopWqIe:A:B:C: --cached --untracked --name-only --count --heading --break --and --or"
        " --not --max-depth= --show-function --function-context --line-number --ignore-case --word-regexp"
        " --all-match --no-color --color? --files-with-matches :"
    ),
    "git init": "-qb: --quiet --initial-branch=",
    "git merge": (
        "-qnm: --no-ff --ff-only --ff --squash --no-squash --no-edit --abort --continue --quit --no-commit"
        " --commit --quiet --stat --no-stat"
    ),
    "git mv": "-fknv --force --dry-run --verbose",
    "git pull": (
        "-qvpr?j: --prune --all --tags --rebase? --no-rebase --ff-only --ff --no-ff --autostash"
        " --no-autostash --quiet --verbose --dry-run --no-edit --depth= --progress --no-tags"
    ),
    "git push": (
        "-quvn --quiet --verbose --set-upstream --tags --follow-tags --dry-run --progress --porcelain"
        " --atomic --no-progress"
    ),
    "git rebase": "-q --abort --continue --skip --quit --onto= --autostash --no-autostash --keep-base --quiet",
    "git reset": "-qNp --soft --mixed --quiet --patch --intent-to-add",
    "git restore": "-SWqps: --staged --worktree --source= --quiet --ours --theirs --patch --progress :",
    "git revert": "-nm: --no-edit --no-commit --abort --continue --skip --mainline=",
    "git rm": "-rfnq --cached --force --dry-run --quiet --ignore-unmatch",
    "git stash": "-uq --include-untracked <0",
    "git stash apply": "-q --index --quiet",
    "git stash pop": "-q --index --quiet",
    "git stash push": "-uakSqm:p --include-untracked --all --keep-index --staged --quiet --message= --patch :",
    "git switch": "-qdtc: --create= --quiet --detach --track? --no-track --orphan= --guess --no-guess",
    "git tag": (
        "-aln?m: --list --annotate --message= --sort= --contains? --points-at= --format= --merged?"
        " --no-merged? --column?"
    ),
    "npm ls": "-alg --all --depth= --long --json --parseable --global --prod --dev",
    "npm outdated": "--json --long -l",
    "npm view": "--json",
    "npm audit": "--json --production --omit= --audit-level= <0",
    "npm explain": "--json",
    "npm pkg get": "--json",
    "npm ci": _INSTALL,
    "npm install": _INSTALL,
    "yarn install": "--frozen-lockfile --immutable --silent --prefer-offline --ignore-scripts <0",
    "pnpm install": "--frozen-lockfile --offline --prefer-offline --silent --ignore-scripts <0",
    "bun install": "--frozen-lockfile --silent --ignore-scripts <0",
    "npm test": _SCRIPT,
    "npm start": "<0",
    "npm run": "-s --silent --if-present <0",
    "pnpm run": "<0",
    "pnpm test": _JEST,
    **dict.fromkeys(("pnpm list", "pnpm ls"), "-rPD --recursive --prod --dev --depth= --json --long --parseable"),
    "pnpm why": "-rPD --recursive --prod --dev --depth= --json --long --parseable",
    "yarn test": _JEST,
    "yarn run": "<0",
    "yarn build": "<0",
    "yarn lint": "--fix --quiet",
    "yarn start": "<0",
    "yarn format": "<0",
    "yarn typecheck": "<0",
    "yarn why": "-R --recursive --json",
    "yarn workspaces list": "-v --json",
    "pnpm build": "<0",
    "pnpm lint": "--fix --quiet",
    "pnpm format": "<0",
    "pnpm typecheck": "<0",
    "bun test": "-t: --watch --coverage --bail? --timeout= --only",
    "bun run": "<0",
    "deno test": "--quiet -q --filter= --fail-fast? --parallel --watch? --no-check",
    "deno lint": "--fix --json --quiet",
    "deno fmt": "--check --quiet",
    "deno check": "",
    "cargo bench": f"{_CARGO} -->test_binary",
    "cargo build": _CARGO,
    "cargo check": _CARGO,
    "cargo clippy": f"{_CARGO} --fix --allow-dirty --allow-staged -->lints",
    "cargo run": f"{_CARGO} <0",
    "cargo doc": f"{_CARGO} --document-private-items",
    "cargo fmt": "-qvp: --all --check --quiet --verbose --package= -->rustfmt",
    "cargo metadata": "--format-version= --no-deps --offline --locked -q",
    "cargo test": f"{_CARGO} -->test_binary",
    "cargo search": "--limit=",
    "cargo tree": (
        "-i:dep:e: --depth= --invert? --duplicates --workspace --all-features --no-dedupe --edges= --package="
        " --prefix= --features="
    ),
    "cargo clean": "-p:q --release --doc --quiet",
    "cargo nextest run": f"{_CARGO} -E:",
    "rustc": "-vV --explain= --version --verbose <0",
    "rustfmt": "-qvl --check --edition= --quiet --verbose",
    "clang-format": "-ni --dry-run --Werror /Werror",
    "go build": _GO,
    "go doc": "/all /short /src /u /c",
    "go env": "/json",
    "go fmt": "/n /x",
    "go generate": "/v /x /n /run=",
    "go list": "/m /f= /json /deps /test /u /versions",
    "go mod download": "/x /json",
    "go mod graph": "",
    "go mod tidy": "/v /x",
    "go mod verify": "",
    "go mod why": "/m",
    "go test": _GO,
    "go version": "/m",
    "go vet": "/v /x /json /tags= /c=",
    "staticcheck": "/checks= /f= /go= /tags= /tests?",
    "govulncheck": "/json /show= /tags= /test",
    "gofmt": "-lwdse",
    "goimports": "-lwdev",
    "golangci-lint run": (
        "-vE:D: --fix --timeout= --fast --verbose --enable= --disable= --new --no-config"
        " --tests? --max-issues-per-linter= --max-same-issues="
    ),
    "make": (
        "-#j?knsBwiq --jobs? --keep-going --dry-run --just-print --silent --quiet --always-make"
        " --print-directory --no-print-directory"
    ),
    "just": "-nqv --dry-run --quiet --verbose",
    "mvn": (
        "-qBoeXUNT: --quiet --batch-mode --offline --errors --debug --update-snapshots --no-transfer-progress"
        " --also-make --fail-fast --fail-at-end --threads= --projects= --non-recursive /DskipTests? /Dtest="
        " /Dit.test= /Dmaven.test.skip= /DfailIfNoTests= /Dsurefire.failIfNoSpecifiedTests= /Dcheckstyle.skip?"
        " /ntp /pl= /am /DskipITs?"
    ),
    "gradle": (
        "-qsidmx: --info --debug --stacktrace --full-stacktrace --quiet --offline --no-daemon --daemon"
        " --parallel --tests= --continue --rerun-tasks --build-cache --no-build-cache --console="
        " --warning-mode= --exclude-task= --configuration-cache --dry-run --profile --all"
    ),
    "dotnet build": _DOTNET,
    "dotnet run": f"{_DOTNET} <0",
    "dotnet test": f"{_DOTNET} --filter= --list-tests",
    "dotnet restore": "-v: --verbosity= --no-cache",
    "swift build": _SWIFT,
    "swift test": _SWIFT,
    "flutter test": "-r: --name= --plain-name= --coverage --no-pub --tags= --reporter=",
    "flutter analyze": "--no-pub",
    "dart test": "-r: --name= --plain-name= --tags= --reporter=",
    "dart analyze": "",
    "mix test": (
        "--failed --stale --trace --seed= --only= --exclude= --include= --max-failures= --cover --slowest="
        " --no-color"
    ),
    "mix compile": "--force --warnings-as-errors",
    "mix format": "--check-formatted --dry-run",
    "phpunit": (
        "--filter= --testsuite= --group= --exclude-group= --stop-on-failure --stop-on-error --testdox --colors?"
        " --no-coverage"
    ),
    "ctest": (
        "-R:E:L:VQNj: --output-on-failure --tests-regex= --exclude-regex= --rerun-failed --verbose --parallel="
        " --timeout="
    ),
    "bazel build": _BAZEL,
    "bazel test": _BAZEL,
    "shellcheck": "-S:s:f:e:i: --severity= --shell= --format= --exclude= --include=",
    "bundle install": "-j: --jobs= --quiet --local <0",
    "composer install": "-nq --no-dev --no-interaction --quiet --prefer-dist --no-progress <0",
    "uv sync": "-q --quiet --frozen --locked --all-extras --all-groups --dev --no-dev --extra= --group= <0",
    "poetry install": (
        "-qvnE: --with= --without= --only= --no-root --sync --all-extras --extras= --no-interaction <0"
    ),
    "uv pip check": "",
    "uv pip freeze": "-q --quiet",
    "uv pip list": "-q --quiet --outdated --format= --exclude=",
    "uv pip show": "-q --quiet",
    "uv tree": "-qd: --quiet --depth= --package= --invert --no-dedupe --outdated",
    "poetry show": "-tloaT --tree --latest --outdated --all --top-level --only= --with= --without=",
    "poetry check": "--lock --strict",
    "docker ps": _DOCKER_LIST,
    "docker images": _DOCKER_LIST,
    "docker logs": "-ftn: --follow --tail= --since= --until= --timestamps",
    "docker inspect": "-sf: --format= --size --type=",
    "docker version": "-f: --format=",
    "docker info": "-f: --format=",
    "docker compose ps": _COMPOSE,
    "docker compose logs": "-ftn: --follow --tail= --since= --no-color --no-log-prefix --timestamps",
    "docker compose config": "-q --services --images --volumes --quiet",
    "docker compose images": _COMPOSE,
    "docker compose ls": _COMPOSE,
    "docker container ls": _DOCKER_LIST,
    "docker image ls": _DOCKER_LIST,
    "docker stats": f"{_DOCKER_LIST} --no-stream",
    "docker system df": "-v --verbose --format=",
    "docker volume ls": _DOCKER_LIST,
    "docker network ls": _DOCKER_LIST,
    "kubectl get": _KUBECTL,
    "kubectl describe": _KUBECTL,
    "kubectl logs": (
        f"{_KUBECTL} -fpc: --follow --previous --tail= --since= --container= --timestamps --all-containers"
    ),
    "kubectl rollout history": _KUBECTL,
    "kubectl rollout status": f"{_KUBECTL} --timeout=",
    "kubectl top": _KUBECTL,
    "kubectl version": "-o:",
    "gh pr view": _GH_LIST,
    "gh pr list": _GH_LIST,
    "gh pr diff": "--name-only --patch --color=",
    "gh pr status": _GH_LIST,
    "gh pr checks": "--watch --required --json=",
    "gh issue view": _GH_LIST,
    "gh issue list": _GH_LIST,
    "gh run view": "--log --log-failed -v --json= --job= -j:",
    "gh run list": _GH_LIST,
    "gh repo view": _GH_LIST,
    "gh issue status": _GH_LIST,
    "gh label list": _GH_LIST,
    "gh workflow list": _GH_LIST,
    "gh workflow view": _GH_LIST,
    "gh release list": _GH_LIST,
    "gh release view": _GH_LIST,
    "journalctl": "-u:n:rxe --unit= --lines= --since= --until= --no-pager --reverse -b?",
    "lsof": "-i?nPltp: :",
    "pgrep": "-flaxou: --list-full --list-name --full --exact --newest --oldest",
    "ss": "-tulnpaH4s",
    "systemctl status": "-ln: --no-pager --lines= --full",
    "terraform fmt": "/recursive /check /diff /list= /write=",
    "terraform plan": "/no-color /compact-warnings /input= /detailed-exitcode /lock-timeout= /parallelism= <0",
    "terraform providers": "",
    "terraform show": "/json /no-color",
    "terraform state list": "",
    "terraform state show": "/no-color",
    "terraform validate": "/json /no-color",
    "terraform version": "/json",
    "gh auth status": "",
    "gh secret list": "",
    "aws s3 ls": "--recursive --human-readable --summarize",
}

WRAPPERS: Final[Mapping[str, Mapping[str, str]]] = {
    # Programs that run a tool of the project, and the tools that an approval may name behind them.
    "uv run": PYTHON_TOOLS,
    "poetry run": PYTHON_TOOLS,
    "pdm run": PYTHON_TOOLS,
    "rye run": PYTHON_TOOLS,
    "pipenv run": PYTHON_TOOLS,
    "hatch run": PYTHON_TOOLS,
    "npx": JAVASCRIPT_TOOLS,
    "bunx": JAVASCRIPT_TOOLS,
    "bun x": JAVASCRIPT_TOOLS,
    "pnpm exec": JAVASCRIPT_TOOLS,
    "pnpm": JAVASCRIPT_TOOLS,
    "yarn": JAVASCRIPT_TOOLS,
    "yarn exec": JAVASCRIPT_TOOLS,
    "bundle exec": RUBY_TOOLS,
}

MODULES: Final = re.compile(r"python[\d.]*\Z")
"""Programs that run a module of :data:`PYTHON_TOOLS` with ``-m``."""

OTHER_NAMES: Final[Mapping[str, str]] = {"gradlew": "gradle", "mvnw": "mvn", "pip3": "pip"}

HARMLESS: Final[Mapping[str, str]] = {**READING, **WORKING, **PYTHON_TOOLS, **JAVASCRIPT_TOOLS, **RUBY_TOOLS}

WITH_SUBCOMMAND: Final = frozenset({
    *SCRIPT_RUNNERS, "kubectl describe", "kubectl get", "kubectl top",
    *(" ".join(row.split()[:count]) for row in HARMLESS for count in range(1, len(row.split()))),
})  # fmt: skip
"""Programs and subcommands whose next word is a subcommand, and so part of the identifier."""

ANY_FOLDER: Final = frozenset({
    *(name for name in READING if " " not in name),
    "chmod", "chmod -r", "cp", "cp -r", "ln", "mkdir", "mv", "rm", "rm -r", "rmdir", "tee", "touch", "truncate",
})  # fmt: skip
"""Commands that use nothing but the files that their words name, so that they may follow a change of the folder."""
