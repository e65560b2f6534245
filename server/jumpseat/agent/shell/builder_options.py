"""The options of compilers, builders and task runners that only choose what they work on, or what they show.

See :mod:`jumpseat.agent.shell.checker_options`, which has those of other tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jumpseat.agent.shell.harmless import BEHIND_DASHES, HARMLESS

SCRIPT: Final = (
    "--runInBand --testNamePattern= --testPathPattern= --testPathPatterns= --coverage? --bail?"
    " --watch? --watchAll? --run --ci --passWithNoTests --maxWorkers= --no-coverage --no-cache --no-watch --shard="
    " --retries= --workers= --headed --headless --browsers= --project= --grep= --reporter= --max-warnings= --cache"
    " --noEmit --pretty? --tags= --spec= --mode= --minify --sourcemap --findRelatedTests --onlyChanged --forceExit"
    " --detectOpenHandles --parallel --recursive --keepdb --failfast --tb= --lf --durations= --maxfail= --match="
    " --test-threads= --nocapture --testTimeout= --test-timeout= --testsuite= --group= --testdox"
    " --stop-on-failure --fix --single-run --filter= --level= --cov? --cov-report="
)
"""For the arguments of a script of the project that tests, checks or builds: options of common tools."""
_GO: Final = (
    "/coverprofile> /cpuprofile> /memprofile> /blockprofile> /mutexprofile> /trace> /outputdir> /o> /msan /asan"
    " /work"
)
_DOTNET: Final = (
    "-l:o> --logger= --collect= --results-directory> --output> --nologo --no-dependencies --arch= --os= --blame"
    " --blame-hang --blame-crash --list-tests -t --filter= --force --no-self-contained --disable-build-servers"
    " /warnaserror? /clp="
)
_DART: Final = (
    "-j:t:x:n:N:p:d:r: --concurrency= --timeout= --exclude-tags= --platform= --total-shards= --shard-index="
    " --run-skipped --no-run-skipped --chain-stack-traces --test-randomize-ordering-seed= --fail-fast"
)
_BAZEL: Final = (
    "--nocache_test_results --cache_test_results= --test_tag_filters= --build_tests_only --test_summary="
    " --runs_per_test= --test_size_filters= --test_timeout= --test_lang_filters= --show_timestamps"
    " --noshow_progress"
    " --color= --curses= --local_test_jobs= --compilation_mode= --subcommands --output= --noimplicit_deps"
    " --notool_deps --order_output= --flaky_test_attempts="
)
_CARGO: Final = "--color= --target= --target-dir> --ignore-rust-version --future-incompat-report"

BUILDER_OPTIONS: Final[Mapping[str, str]] = {
    # Go
    "actionlint": "/color /no-color /oneline /verbose /ignore= /debug",
    "errcheck": "/blank /asserts /ignoretests /verbose /tags=",
    "go build": _GO,
    "go list": "/tags= /find /compiled /export",
    "go test": _GO,
    "go tool": "/func= /html= /o>",
    "ginkgo": (
        "-vrp /v /vv /r /p /race /cover /trace /succinct /randomize-all /fail-fast /keep-going /skip-package="
        " /focus= /skip= /focus-file= /skip-file= /label-filter= /procs= /repeat= /timeout= /seed= /tags= /no-color"
        " /coverprofile> /junit-report> /json-report> /output-dir>"
    ),
    "gofumpt": "-lwdse /l /w /d /s /e /extra /lang= /modpath=",
    "goimports": "/local= /format-only",
    "gosec": (
        "/quiet /verbose= /severity= /confidence= /include= /exclude= /exclude-dir= /fmt= /out> /tests /no-fail"
    ),
    "golangci-lint run": (
        "-j: --disable-all --enable-all --default= --enable-only= --presets= --skip-dirs= --skip-files= --exclude="
        " --build-tags= --new-from-rev= --new-from-merge-base= --whole-files --out-format= --color= --sort-results"
        " --print-issued-lines --print-linter-name --uniq-by-line --issues-exit-code= --concurrency= --show-stats"
        " --allow-parallel-runners --allow-serial-runners --fast-only"
    ),
    "gotestsum": (
        "-f: --format= --format-hide-empty-pkg --format-icons= --hide-summary= --rerun-fails? --packages="
        " --no-color"
        " --junitfile> --jsonfile> --max-fails= --watch --debug -->go_test"
    ),
    "govulncheck": "/mode= /format=",
    "revive": "/formatter= /exclude= /set_exit_status",
    "staticcheck": "/fail= /show-ignored /explain=",
    # Rust
    "cargo audit": "-qnD: --quiet --deny= --ignore= --json --no-fetch --stale",
    "cargo deny check": "-sA:D:W: --hide-inclusion-graph --show-stats --allow= --deny= --warn=",
    **{f"cargo {name}": _CARGO for name in ("bench", "build", "check", "clippy", "doc", "test")},
    **{
        f"cargo hack {name}": f"{HARMLESS['cargo build']} {_CARGO} --each-feature --feature-powerset --depth="
        " --skip= --include-features= --exclude-features= --ignore-private"
        for name in ("check", "clippy", "test")
    },
    "cargo insta test": f"{HARMLESS['cargo build']} {_CARGO} --check --test-runner= -->test_binary",
    "cargo llvm-cov": (
        f"{HARMLESS['cargo build']} {_CARGO} --html --json --lcov --cobertura --text --summary-only"
        " --show-missing-lines --output-path> --output-dir> --ignore-filename-regex= --no-report"
        " --branch --fail-under-lines="
    ),
    "cargo tarpaulin": (
        f"{HARMLESS['cargo build']} {_CARGO} --skip-clean --out= --output-dir> --exclude-files= --ignore-tests"
        " --ignore-panics --timeout= --engine= --line --branch --count --fail-under="
    ),
    "cargo machete": "--with-metadata --skip-target-dir",
    "cargo metadata": "--filter-platform= --all-features --no-default-features --features= --color=",
    "cargo nextest run": (
        f"{_CARGO} --retries= --fail-fast --test-threads= --no-capture --nocapture --status-level="
        " --final-status-level= --success-output= --failure-output= --run-ignored= --partition= --hide-progress-bar"
        " --show-progress= --filter-expr= --filterset= --max-fail= --cargo-profile= --cargo-quiet --no-tests="
    ),
    "cargo tree": "-f: --format= --target= --charset= --no-default-features --prune= --all-targets",
    "cargo udeps": f"{HARMLESS['cargo build']} {_CARGO}",
    "rustfmt": "--color=",
    # Java, Kotlin, Scala
    "ant": "-qvdekS /quiet /verbose /debug /emacs /keep-going /silent /noinput",
    "detekt": (
        "-i: --input= --all-rules --parallel --auto-correct --excludes= --includes= --max-issues= --debug"
        " --jvm-target= --language-version="
    ),
    "gradle": (
        "-a --rerun --fail-fast --no-parallel --max-workers= --no-watch-fs --watch-fs --no-scan --test-dry-run"
        " --configuration= --dependency= --warn --auto-correct"
    ),
    "ktlint": "-Fl:v --format --color --relative --reporter= --log-level= --limit= --verbose",
    "mvn": "--also-make-dependents /amd --resume-from= /rf= --show-version -V",
    "scalafmt": "-q --check --test --list --diff --quiet --non-interactive --exclude=",
    # C and C++
    "bazel build": _BAZEL,
    "bazel query": f"-k --keep_going {_BAZEL}",
    "bazel test": _BAZEL,
    "clang-format": (
        "--verbose --style= /style= --fallback-style= --sort-includes /i /n"
    ),
    "clang-tidy": (
        "-p: --checks= /checks= --quiet /quiet --header-filter= /header-filter= --warnings-as-errors="
        " --format-style="
        " --use-color --line-filter= --system-headers --fix /fix --export-fixes>"
    ),
    "cppcheck": (
        "-qvfj:I: --enable= --disable= --std= --language= --force --quiet --verbose --inline-suppr --suppress="
        " --error-exitcode= --xml --xml-version= --template= --max-configs= --check-level= --inconclusive"
        " --cppcheck-build-dir> --output-file>"
    ),
    "ctest": (
        "-C: --build-config= --stop-on-failure --repeat= --schedule-random --progress --output-junit>"
        " --label-regex= --label-exclude= /LE= /VV"
    ),
    "meson compile": "-j:v --jobs= --verbose --clean",
    "meson setup": "--buildtype= --reconfigure",
    "meson test": (
        "-vqt:j: --verbose --quiet --no-rebuild --list --repeat= --timeout-multiplier= --suite= --no-suite="
        " --print-errorlogs --num-processes= --benchmark --maxfail= --no-stdsplit"
    ),
    # .NET
    "dotnet build": _DOTNET,
    "dotnet format": (
        "-v: --verify-no-changes --no-restore --include= --exclude= --severity= --diagnostics="
        " --exclude-diagnostics="
        " --include-generated --verbosity= --report>"
    ),
    "dotnet test": _DOTNET,
    # Elixir, Erlang, and others
    "alejandra": "-cqe: --check --quiet --exclude= --threads=",
    "bats": (
        "-rtpTf:j:F:c --filter= --filter-tags= --filter-status= --recursive --tap --pretty --timing --jobs= --count"
        " --print-output-on-failure --no-parallelize-within-files --show-output-of-passing-tests --formatter="
    ),
    "bash -n": "",
    "buf lint": "--error-format= --path= --exclude-path=",
    "buf format": "-dw --diff --write --exit-code --path= --exclude-path=",
    "busted": (
        "-vct: --tags= --exclude-tags= --filter= --filter-out= --name= --repeat= --shuffle --verbose --coverage"
    ),
    "cabal test": "-v?j: --test-show-details= --enable-coverage",
    "cabal build": "-v?j: --enable-tests",
    "crystal spec": "-ve:l: --verbose --fail-fast --order= --tag= --example= --error-trace --no-color",
    "dart analyze": "--fatal-infos --fatal-warnings --no-fatal-warnings",
    "dart format": "-o:l: --output= --set-exit-if-changed --line-length= --show= --summary=",
    "dart test": _DART,
    **dict.fromkeys(("dune build", "dune test"), "-wfj: --watch --force --profile= --display= --no-buffer"),
    "elm-test": "--fuzz= --seed= --watch --report=",
    "flutter analyze": "--no-fatal-infos --no-fatal-warnings --fatal-infos --fatal-warnings --current-package",
    "flutter test": f"{_DART} --coverage-path> --machine --no-test-assets",
    "gleam test": "--target=",
    "gleam check": "--target=",
    "hlint": "-j:i: --ignore= --color? --only= --hint-none",
    "luacheck": (
        "-qi: --no-color --codes --std= --globals= --ignore= --only= --enable= --formatter= --max-line-length="
        " --exclude-files= --include-files="
    ),
    "mix compile": "--all-warnings --verbose --no-deps-check --return-errors",
    **dict.fromkeys(
        ("mix credo", "credo", "credo diff"),
        "-aAi: --strict --all --format= --only= --checks= --ignore= --all-priorities --min-priority="
        " --files-included="
        " --files-excluded= --verbose --mute-exit-status --no-color",
    ),
    "mix dialyzer": "--format= --quiet --no-check --list-unused-filters --ignore-exit-status --force-check --plt",
    "mix docs": "-f: --formatter= --language= --proglang= --warnings-as-errors",
    "mix test": (
        "--partitions= --repeat-until-failure= --max-cases= --all-warnings --warnings-as-errors --timeout= --raise"
        " --no-start --no-compile --no-deps-check --slowest-modules= --force"
    ),
    **dict.fromkeys(
        ("rebar3 ct", "rebar3 eunit"), "-m:cv --suite= --case= --group= --module= --app= --cover --verbose --dir="
    ),
    "sh -n": "",
    "shellcheck": "-xaW:o:C? --external-sources --check-sourced --wiki-link-count= --enable= --color? --norc",
    "shfmt": "/l /w /d /s /i= /ln= /bn /ci /sr /kp /fn /p /f /mn",
    "stack test": "-j: --fast --no-run-tests --coverage --file-watch --pedantic",
    "stack build": "-j: --fast --file-watch --pedantic",
    **{
        f"swift {name}": (
            "-j: --enable-code-coverage --num-workers= --scratch-path> --build-path> --show-bin-path --list-tests"
            " --sanitize= --xunit-output> --skip-build"
        )
        for name in ("build", "test")
    },
    "swiftlint": (
        "--strict --lenient --quiet --fix --autocorrect --format --reporter= --no-cache --force-exclude"
        " --progress"
    ),
    # Infrastructure and texts
    "ansible-lint": (
        "-qvpf:t:x:w:LT --tags= --skip-list= --warn-list= --strict --offline --nocolor --format= --exclude="
        " --profile="
        " --fix"
    ),
    "hadolint": (
        "-f:t:V --format= --failure-threshold= --ignore= --error= --warning= --info= --no-fail --no-color --verbose"
        " --strict-labels --trusted-registry="
    ),
    "helm lint": "-f:n: --strict --quiet --with-subcharts --values= --namespace= --kube-version= --debug",
    "helm template": (
        "-f:n:s:a: --values= --namespace= --debug --kube-version= --api-versions= --show-only= --include-crds"
        " --is-upgrade --no-hooks --skip-tests --output-dir> --skip-crds"
    ),
    "proselint": "-jt --json --time",
    "taplo format": "-f --check --diff --force",
    "taplo fmt": "-f --check --diff --force",
    "terraform fmt": "/no-color",
    "tflint": (
        "-f: --recursive --format= --minimum-failure-severity= --no-color --color --only= --enable-rule="
        " --disable-rule= --filter= --fix --force --call-module-type="
    ),
    "trunk check": "-an --all --filter= --no-fix --ci --sample= --no-progress",
    "vale": "--minAlertLevel= --ext= --glob= --no-wrap --no-exit",
    # Task runners
    "bin/rails": f"-vt {SCRIPT}",
    "composer validate": "-nqv --strict --no-check-all --no-check-publish --no-check-lock --with-dependencies -A",
    "composer show": "-tloisD --tree --latest --outdated --direct --installed --all --format= --no-dev --name-only",
    "composer": f"-nqv --no-interaction --quiet --timeout= --no-ansi --ansi --no-dev -->test_script {SCRIPT}",
    "deno task": f"-q --quiet {SCRIPT}",
    "inv": f"-elpDw --echo --list --dry --pty --warn-only {SCRIPT}",
    "invoke": f"-elpDw --echo --list --dry --pty --warn-only {SCRIPT}",
    "just": f"--no-dotenv --list -l --color= {SCRIPT}",
    "mage": "-vl",
    "make": "--output-sync? -O? --silent --trace --no-builtin-rules -r",
    "rake": f"-tTPqvsmn --trace --tasks --prereqs --quiet --verbose --silent --multitask --dry-run -j? {SCRIPT}",
    "task": (
        "-fsvnplC: --force --silent --verbose --dry --parallel --list --list-all --summary --color?"
        " --concurrency="
    ),
    # What is behind two dashes.
    "go_test": f"{HARMLESS['go test']} {_GO}",
    "lints": BEHIND_DASHES["lints"],
    "test_binary": f"{BEHIND_DASHES['test_binary']} -q --quiet --format= --color= --report-time --shuffle",
    "test_script": f"-xvt:g:k:m: {SCRIPT} {BEHIND_DASHES['test_script']}",
    "zig build": "-j? --summary= --verbose",
}  # fmt: skip
