"""What a command line needs besides files, judging by its text."""

from __future__ import annotations

from jumpseat.tools.shell.sandbox_needs import command_needs
from tests.support.cases import check_each

NPM = ("registry.npmjs.org", "registry.yarnpkg.com")
PYPI = ("pypi.org", "files.pythonhosted.org")

HOSTS: dict[str, tuple[str, ...]] = {
    "npm install lodash": NPM,
    "cd web && npm ci": NPM,
    "CI=1 npm ci": NPM,
    "for folder in a b; do npm --prefix $folder ci; done": NPM,
    "yarn": NPM,
    "timeout 60 npx create-vite app": NPM,
    "python3 -m pip install -r requirements.txt": PYPI,
    "env A=b uv sync": PYPI,
    "curl -fsS https://Example.com/a | tar x": ("example.com",),
    "git clone https://github.com/a/b": ("github.com",),
    "curl http://localhost:3000/ http://127.0.0.1:3000/": (),
    "npm test": (),
    "npm run build": (),
    "pytest -q": (),
    "echo npm install": (),
    "make": (),
}

OUTSIDE = [
    "git push origin main",
    "git -C sub fetch",
    "git clone git@github.com:a/b.git",
    "git submodule update --init",
    "docker compose up -d && docker ps",
    "sudo apt install x",
    "npm publish",
    "git config user.name Me",
    "git remote add origin https://github.com/a/b",
    "rsync -a a host:b",
    "ps aux | grep node",
    "pkill node",
]

INSIDE = [
    "git status",
    "git config user.name",
    "git config --list",
    "git config --get remote.origin.url",
    "git remote -v",
    "git commit -m 'fetch and push'",
    "rsync -a a b",
    "echo docker; make docker; grep -rn ssh src",
    # Ended is what the line itself has started.
    "npm start & sleep 2; pkill node",
    # A number of a process means another one outside.
    "kill 1234",
]


def test_approved_commands_reach_the_registries_of_their_programs_and_the_hosts_that_they_name() -> None:
    check_each({line: (line, hosts) for line, hosts in HOSTS.items()}, _check_hosts)


def _check_hosts(case: tuple[str, tuple[str, ...]]) -> None:
    line, hosts = case
    needs = command_needs(line)
    assert needs.hosts == hosts
    assert needs.outside is None


def test_commands_that_no_sandbox_can_serve_are_known_by_their_programs() -> None:
    assert [line for line in OUTSIDE if command_needs(line).outside is None] == []
    assert [line for line in INSIDE if command_needs(line).outside is not None] == []
