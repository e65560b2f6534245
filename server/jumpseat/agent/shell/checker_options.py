"""The options of testers, linters, builders and task runners that only choose what they work on, or what they
show.

They are taken from the documentation of each program. An option that loads code, settings or another project, that
writes elsewhere than into a folder for outputs, that installs, generates, publishes or accepts results, is in no
row, and neither is one that nobody has looked up: a command with such an option is covered by its whole text only.
The notation is that of :func:`jumpseat.agent.shell.options.parse_options`; a value with ``>`` names an output.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from jumpseat.agent.shell.builder_options import BUILDER_OPTIONS, SCRIPT
from jumpseat.agent.shell.harmless import HARMLESS
from jumpseat.agent.shell.options import HarmlessOptions, parse_options

COMMON: Final = (
    "-vq --verbose --quiet --silent --color? --no-color --colors --no-colors --help --version --json --strict"
    " --no-progress --progress --debug --check --diff --dry-run --list --stats --summary --statistics --fail-fast"
    " --all"
    " --limit= --level= --severity= --log-level= --verbosity= --format= --jobs= --timeout= --filter= --exclude="
    " --include= --ignore= --no-cache --outdated --no-trunc --short --oneline --tree --depth= --tag= --sort="
    " --plain"
)
"""For programs of which nothing else is known."""


_PHPUNIT: Final = (
    "--stop-on-defect --stop-on-warning --stop-on-skipped --display-deprecations --display-warnings"
    " --display-notices"
    " --display-errors --display-skipped --display-incomplete --display-all-issues --fail-on-warning"
    " --fail-on-risky"
    " --fail-on-skipped --fail-on-deprecation --list-tests --list-suites --list-groups --order-by="
    " --random-order-seed= --repeat= --debug --verbose --no-progress --no-output --exclude-filter="
    " --exclude-testsuite= --coverage-text --coverage-html> --coverage-clover> --log-junit> --path-coverage"
    " --do-not-cache-result --process-isolation --columns= --covers= --uses= --filter= --testsuite= --group="
    " --exclude-group= --stop-on-failure --stop-on-error --testdox --colors? --no-coverage"
)
_PYRIGHT: Final = "-w --watch --skipunannotated --threads= --dependencies --verifytypes= --ignoreexternal"
_PYTEST: Final = (
    "--cov-fail-under= --no-cov-on-fail --cov-context= --reuse-db --create-db --nomigrations --setup-only"
    " --setup-plan"
    " --fixtures-per-test --doctest-modules --doctest-glob= --full-trace --show-capture= --asyncio-mode="
    " --timeout-method= --reruns= --reruns-delay= --only-rerun= --randomly-seed= --html> --self-contained-html"
    " --junitxml> --junit-xml> --junit-prefix= --log-level= --log-cli-level= --log-file> --benchmark-sort="
    " --benchmark-columns= --benchmark-disable --benchmark-min-rounds= --benchmark-name= --benchmark-group-by="
    " --benchmark-json> --hypothesis-seed= --hypothesis-show-statistics --hypothesis-profile="
    " --hypothesis-verbosity= --sw-skip --stepwise-skip --cache-show --cache-clear --keep-duplicates"
    " --disable-warnings --disable-pytest-warnings -W:p: --verbosity= --code-highlight= --instafail --maxprocesses="
    " --no-showlocals --strict --failed-first --noconftest"
)
_COVERAGE: Final = (
    "-iq --include= --omit= --show-contexts --skip-covered --skip-empty --fail-under= --precision= --contexts="
)
_JEST: Final = (
    "-e --testPathIgnorePatterns= --selectProjects= --ignoreProjects= --shard= --randomize --seed= --showSeed"
    " --expand"
    " --errorOnDeprecated --logHeapUsage --json --outputFile> --collectCoverageFrom= --collectCoverage"
    " --coverageDirectory> --coverageReporters= --coverageProvider= --lastCommit --changedSince= --testTimeout="
    " --all --clearMocks --resetMocks --restoreMocks --colors --debug --noStackTrace --useStderr --detectLeaks"
    " --testLocationInResults --no-watchman --no-watch --openHandlesTimeout= --maxConcurrency= --onlyFailures"
    " --reporters="
)
_VITEST: Final = (
    "--reporter= --retry= --changed? --project= --hideSkippedTests --pool= --maxConcurrency= --minWorkers="
    " --fileParallelism --no-file-parallelism --isolate --no-isolate --globals --dom --typecheck --coverage.enabled"
    " --coverage.reporter= --coverage.include= --coverage.exclude= --logHeapUsage --allowOnly --sequence.shuffle"
    " --sequence.seed= --shard= --outputFile> --exclude= --dir= --testTimeout= --test-timeout= --hookTimeout="
    " --no-coverage --no-watch --slowTestThreshold= --disableConsoleIntercept --clearScreen --expandSnapshotDiff"
)
_NPM: Final = (
    "-sw: --silent --if-present --workspace= --workspaces --include-workspace-root --loglevel= --no-color --quiet"
    " --verbose -->test_script"
)
_NX: Final = (
    "-c: --skip-nx-cache --skipNxCache --parallel? --verbose --configuration= --base= --head= --affected --all"
    " --projects= --exclude= --output-style= --outputStyle= --nxBail --dry-run --watch --coverage --codeCoverage"
    " --ci"
    " --testFile= --test-file= --testNamePattern= --quiet --max-warnings= --fix -t: --target= --targets="
)
_TURBO: Final = (
    "-vF: --filter= --force? --no-cache --output-logs= --log-order= --log-prefix= --concurrency= --continue? --dry?"
    " --dry-run? --only --parallel --affected --summarize --verbosity= --env-mode= --ui= --no-daemon --daemon"
)
_BIOME: Final = (
    "--only= --skip= --error-on-warnings --reporter= --formatter-enabled= --linter-enabled= --since= --log-level="
    " --indent-style= --indent-width= --line-width= --quote-style="
)

_ROWS: Final[Mapping[str, str]] = {
    **BUILDER_OPTIONS,
    # Python
    "autopep8": (
        "-dirvaj: --diff --in-place --recursive --aggressive --max-line-length= --select= --ignore= --exclude="
        " --jobs= --list-fixes --exit-code"
    ),
    "bandit": "-alo>f:n: --severity-level= --confidence-level= --exit-zero --format= --output> --aggregate=",
    **dict.fromkeys(("basedpyright", "pyright"), f"{HARMLESS['pyright']} {_PYRIGHT}"),
    "behave": (
        "-t:n:i:e:kqvdo>f: --tags= --name= --include= --exclude= --no-capture --no-color --stop --dry-run --format="
        " --outfile> --junit --junit-directory> --summary --no-summary --show-timings"
    ),
    "black": "-W: --workers= --include= --exclude= --extend-exclude= --force-exclude= --skip-magic-trailing-comma",
    "codespell": (
        "-dcHfwq:L:S:C:B:A: --skip= --ignore-words-list= --quiet-level= --count --check-filenames --check-hidden"
        " --summary --disable-colors --enable-colors --builtin= --context= --ignore-regex= --write-changes"
    ),
    "coverage html": f"-d> --directory> --title= {_COVERAGE}",
    "coverage json": f"-o> --pretty-print {_COVERAGE}",
    "coverage report": f"--include= --omit= --format= {_COVERAGE}",
    "coverage xml": f"-o> {_COVERAGE}",
    "djlint": (
        "-e: --check --lint --reformat --quiet --ignore= --extension= --indent= --profile= --include= --exclude="
        " --extend-exclude= --statistics --use-gitignore --warn"
    ),
    "flake8": (
        "--per-file-ignores= --extend-exclude= --extend-select= --filename= --max-doc-length= --exit-zero"
        " --doctests"
        " --benchmark --color= --output-file> --disable-noqa --format="
    ),
    "hatch test": (
        "-acprvi: --all --cover --randomize --parallel --retries= --python= --include= --exclude= --quiet -->pytest"
    ),
    "isort": (
        "-j:l:p:v --skip= --skip-glob= --extend-skip= --filter-files --jobs= --verbose --only-modified --gitignore"
        " --show-files --src= --known-first-party= --known-third-party= --multi-line= --trailing-comma --py="
    ),
    "mypy": (
        "-v --verbose --show-traceback --tb --no-strict-optional --allow-untyped-defs --disallow-any-generics"
        " --disallow-incomplete-defs --disallow-untyped-calls --disallow-subclassing-any --warn-return-any"
        " --warn-unused-ignores --warn-redundant-casts --warn-unused-configs --no-implicit-optional"
        " --no-implicit-reexport --strict-optional --strict-equality --extra-checks --cache-dir> --html-report>"
        " --txt-report> --junit-xml> --output= --enable-error-code= --disable-error-code= --scripts-are-modules"
        " --hide-error-context --show-error-end --show-absolute-path --no-color-output --non-interactive"
        " --color-output"
    ),
    "nose2": "-vqFBs: --verbose --quiet --fail-fast --start-dir=",
    "nox": (
        "-s:e:k:t:lvRrNxp: --sessions= --session= --keywords= --tags= --list --verbose --reuse-existing-virtualenvs"
        " --no-install --stop-on-first-error --python= --report> -->pytest"
    ),
    "pre-commit run": "-avs:o: --all-files --files --verbose --show-diff-on-failure --from-ref= --to-ref= --color=",
    "pycodestyle": (
        "-vqr --verbose --quiet --first --exclude= --filename= --select= --ignore= --show-source --show-pep8"
        " --statistics --count --max-line-length= --max-doc-length= --indent-size= --diff --format="
    ),
    "pydocstyle": (
        "-esvdq --explain --source --verbose --debug --select= --convention= --add-select= --add-ignore= --match="
        " --match-dir= --count --ignore="
    ),
    "pylint": (
        "-vr:s:f:d:e: --reports= --verbose --ignore-paths= --ignore-patterns= --confidence= --msg-template="
        " --max-line-length= --good-names= --list-msgs --py-version= --output> --output-format="
    ),
    "pytest": _PYTEST,
    "python manage.py test": (
        "-v:k:drbp: --verbosity= --keepdb --failfast --parallel? --tag= --exclude-tag= --reverse --shuffle?"
        " --debug-mode --noinput --no-input --timing --buffer --traceback --no-color --force-color --durations="
        " --pattern="
    ),
    "ruff check": (
        "-o>w --extend-exclude= --extend-ignore= --fixable= --unfixable= --extend-fixable= --force-exclude"
        " --no-respect-gitignore --per-file-ignores= --output-file> --verbose --silent --color= --fix-only"
        " --show-files"
        " --no-preview --no-unsafe-fixes --watch"
    ),
    "ruff format": (
        "--no-preview --range= --extend-exclude= --force-exclude --color= --verbose --silent --output-format="
    ),
    "semgrep scan": (
        "-qvj: --severity= --json --sarif --quiet --verbose --include= --exclude= --error --strict --jobs="
        " --timeout="
        " --dry-run --text --output>"
    ),
    "sqlfluff fix": "-d:r:e:p:vqf --dialect= --rules= --exclude-rules= --processes= --verbose --quiet --force",
    "sqlfluff lint": (
        "-d:r:e:f:p:vq --dialect= --rules= --exclude-rules= --format= --nofail --processes= --verbose --quiet"
        " --disable-progress-bar"
    ),
    "tox": "-vqlae:p:f: --parallel= --skip-env= --colored= --result-json> --listenvs --quiet --verbose -->pytest",
    "ty check": (
        "-vqW --python-version= --output-format= --exclude= --error= --warn= --ignore= --verbose --quiet --color="
        " --exit-zero --error-on-warning --watch --no-progress"
    ),
    "unittest": "--durations=",
    "vulture": "-v --exclude= --ignore-names= --ignore-decorators= --verbose",
    "yamllint": "-f:s --format= --strict --no-warnings --list-files",
    "yapf": "-dirpvq --diff --in-place --recursive --parallel --verbose --quiet --exclude=",
    # JavaScript and TypeScript
    "ava": (
        "-m:T:c:svtw --match= --timeout= --fail-fast --concurrency= --serial --verbose --tap --watch --color"
        " --no-color"
        " --no-cache"
    ),
    **{f"biome {name}": _BIOME for name in ("check", "ci", "format", "lint")},
    "bun test": (
        "--timeout= --rerun-each= --test-name-pattern= --coverage-reporter= --coverage-dir> --todo --reporter="
        " --reporter-outfile> --randomize --seed= --concurrent --max-concurrency= --pass-with-no-tests"
    ),
    "cspell": (
        "-e:q --no-progress --no-summary --quiet --words-only --unique --show-context --gitignore --exclude= --dot"
        " --cache --no-color --color --locale= --language-id="
    ),
    "cypress run": (
        "-s:b:qt: --spec= --browser= --headed --headless --e2e --component --quiet --no-exit --no-runner-ui"
        " --runner-ui --tag= --group= --parallel --reporter= --port="
    ),
    "deno check": "--all --doc --quiet -q",
    "deno fmt": (
        "--ignore= --ext= --line-width= --indent-width= --use-tabs --single-quote --no-semicolons --prose-wrap="
    ),
    "deno lint": "--rules-tags= --rules-include= --rules-exclude= --compact --ignore=",
    "deno test": (
        "--trace-leaks --shuffle? --doc --coverage> --junit-path> --reporter= --ignore= --frozen --permit-no-files"
        " --no-run --hide-stacktraces --cached-only"
    ),
    "eslint": (
        "-f:o> --format= --output-file> --ignore-pattern= --no-ignore --no-inline-config --exit-on-fatal-error"
        " --report-unused-disable-directives-severity= --cache-strategy= --cache-location> --stats"
        " --pass-on-no-patterns --env= --concurrency="
    ),
    "dependency-cruiser": (
        "-T: --output-type= --include-only= --exclude= --do-not-follow= --max-depth= --progress? --metrics"
    ),
    "jasmine": "--filter= --seed= --random= --fail-fast --reporter= --parallel= --color --no-color",
    "jest": _JEST,
    "jscpd": "-s --min-lines= --min-tokens= --threshold= --reporters= --format= --ignore= --silent",
    "karma start": (
        "--single-run --no-single-run --browsers= --log-level= --auto-watch --no-auto-watch --reporters= --colors"
        " --no-colors"
    ),
    "knip": (
        "-W:n --include= --exclude= --workspace= --production --strict --no-progress --reporter= --dependencies"
        " --exports --files --max-issues= --no-exit-code --include-entry-exports --debug --cache"
    ),
    "lerna run": (
        "--scope= --ignore= --since? --stream --parallel --no-bail --concurrency= --include-dependencies"
        " --include-dependents --no-private --no-sort --skip-nx-cache --no-prefix"
    ),
    "madge": (
        "-csj --circular --summary --json --orphans --leaves --extensions= --exclude= --warning --no-spinner"
        " --no-color"
    ),
    "markdownlint": "-fqo> --fix --ignore= --disable= --enable= --json --quiet --dot --output>",
    "markdownlint-cli2": "--fix --no-globs",
    "mocha": (
        "-R:Ccij:ps:SA --reporter= --diff --no-diff --full-trace --inline-diffs --invert --check-leaks --fail-zero"
        " --forbid-only --forbid-pending --slow= --jobs= --parallel --retries= --sort --async-only --dry-run"
        " --ignore="
        " --exclude= --no-color"
    ),
    "next build": "-d --debug --profile --no-lint --turbo --turbopack --no-mangling",
    "next lint": "-d: --fix --dir= --file= --quiet --max-warnings= --strict --no-cache --ext=",
    "node --check": "",
    "node --test": (
        "--test-name-pattern= --test-skip-pattern= --test-concurrency= --test-timeout= --test-only --watch"
        " --test-force-exit --experimental-test-coverage --test-reporter="
    ),
    "npm": _NPM,
    "npm run": _NPM,
    "oxlint": (
        "-A:W:D:f: --fix --allow= --warn= --deny= --quiet --deny-warnings --max-warnings= --format="
        " --ignore-pattern="
        " --threads= --silent --type-aware"
    ),
    "playwright test": (
        "--reporter= --debug --trace= --fully-parallel --forbid-only --ignore-snapshots --output> --only-changed?"
        " --global-timeout= --no-deps --browser="
    ),
    "pnpm run": f"{_NPM} -r --recursive --filter= --stream --parallel --aggregate-output {SCRIPT}",
    "prettier": (
        "--end-of-line= --trailing-comma= --use-tabs --bracket-spacing --arrow-parens= --prose-wrap= --quote-props="
        " --jsx-single-quote --no-bracket-spacing --no-cache --cache-strategy= --cache-location> --debug-check"
        " --no-editorconfig --no-config"
    ),
    "standard": "--fix --verbose",
    "stylelint": (
        "-f:qo> --formatter= --ignore-pattern= --cache --cache-location> --cache-strategy= --color --no-color"
        " --output-file> --ignore-disables --id --di --disable-default-ignores"
    ),
    "svelte-check": "--threshold= --output= --fail-on-warnings --watch --ignore= --compiler-warnings=",
    "tap": (
        "-j:t:bcg: --jobs= --timeout= --bail --color --no-color --grep= --disable-coverage"
        " --allow-incomplete-coverage"
    ),
    **dict.fromkeys(("turbo", "turbo run"), _TURBO),
    "uvu": "-ib --bail --ignore= --color --no-color",
    "vitest": _VITEST,
    "vitest run": f"{HARMLESS['vitest']} {_VITEST}",
    "wasm-pack test": (
        "--node --chrome --firefox --safari --headless --release --profiling --features= -->test_binary"
    ),
    "xo": "--fix --quiet --reporter= --prettier",
    "yarn run": f"{_NPM} {SCRIPT}",
    "bun run": f"{_NPM} {SCRIPT}",
    **dict.fromkeys(("nx", "nx affected", "nx run", "nx run-many"), _NX),
    # Ruby
    "brakeman": (
        "-qw:t:x:f:o>zA --quiet --no-pager --format= --no-exit-on-warn --no-progress --confidence-level="
        " --only-files="
        " --skip-files= --run-all-checks"
    ),
    "cucumber": (
        "-t:n:e:f:o>dqvb --tags= --name= --exclude= --dry-run --strict --fail-fast --no-color --color --quiet"
        " --order="
        " --format= --retry= --backtrace --out> --verbose"
    ),
    "minitest": "-vn:s: --verbose --name= --seed=",
    "rails test": "-cdw --color --defer-output --warnings --profile?",
    "reek": "-f: --format= --smell= --sort-by= --line-numbers --no-line-numbers --color --no-color",
    "rspec": (
        "-f:cwP:o> --format= --force-color --no-fail-fast --warnings --pattern= --exclude-pattern= --out>"
        " --failure-exit-code= --error-exit-code= --bisect? --deprecation-out>"
    ),
    "rubocop": (
        "-Pf:o>lxSEdLF --format= --out> --lint --layout --fix-layout --display-style-guide --extra-details"
        " --display-only-fail-level-offenses --display-time --debug --force-exclusion --no-parallel --safe"
        " --list-target-files --only-recognized-file-types --cache="
    ),
    "ruby -c": "-w",
    "standardrb": "--fix --no-fix --format=",
    # PHP
    "pest": (
        f"{_PHPUNIT} -p --parallel --bail --ci --dirty --retry --compact --todos --coverage --min= --profile"
        " --type-coverage --processes="
    ),
    "phan": "-o>j:pq --processes= --quick --color --no-color --no-progress-bar --progress-bar",
    "php -l": "",
    "php artisan test": (
        "-pv --filter= --parallel --processes= --stop-on-failure --testsuite= --group= --exclude-group= --coverage"
        " --min= --profile --compact --without-tty"
    ),
    "php-cs-fixer check": (
        "-vqn --diff --verbose --using-cache= --stop-on-violation --show-progress= --format= --path-mode="
        " --sequential"
    ),
    "php-cs-fixer fix": (
        "-vqn --dry-run --diff --verbose --using-cache= --stop-on-violation --show-progress= --format= --path-mode="
        " --sequential"
    ),
    "phpcbf": "-vpqwn --sniffs= --exclude= --extensions= --ignore= --standard= --colors --no-colors --parallel=",
    "phpcs": (
        "-snvpqwle --standard= --sniffs= --exclude= --extensions= --ignore= --severity= --error-severity="
        " --warning-severity= --report= --report-width= --colors --no-colors --parallel= --report-file>"
        " --tab-width="
        " --encoding="
    ),
    **dict.fromkeys(
        ("phpstan", "phpstan analyse", "phpstan analyze"),
        "-l:vqn --level= --no-progress --memory-limit= --error-format= --debug --ansi --no-ansi --no-interaction"
        " --verbose",
    ),
    "phpunit": _PHPUNIT,
    "pint": "-v --test --dirty --preset= --bail --parallel --format= --verbose",
    "psalm": (
        "-m --no-cache --show-info? --stats --threads= --output-format= --no-progress --no-diff --find-dead-code?"
        " --monochrome --php-version= --taint-analysis --long-progress --memory-limit= --report>"
    ),
}  # fmt: skip
"""By the name of the tool, with its subcommands, besides the options in the table of harmless commands."""

_STRICT: Final = frozenset({"bash -n", "node --check", "php -l", "ruby -c", "sh -n"})
"""They run what they only check with nearly any other option."""


@cache
def options_of(tool: str) -> HarmlessOptions:
    """Return the options of a tool that choose something, or change what is shown."""
    names = [tool, *([] if tool in _ROWS or tool in HARMLESS else [tool.partition(" ")[0]])]
    known = [row for name in names for row in (HARMLESS.get(name), _ROWS.get(name)) if row is not None]
    if not known:
        return parse_options(COMMON)
    return parse_options(" ".join(known if tool in _STRICT else ("--help --version", *known)))
