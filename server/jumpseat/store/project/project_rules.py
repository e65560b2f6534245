"""Permission rules of projects: ``[permissions]`` in ``.jumpseat/config.toml``, combined with those of the user.

The rules of a folder that is not trusted may deny and ask, but not allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from jumpseat.agent.permissions.rules import Rule, Rules, parse_rule
from jumpseat.store.user.trusted_folders import TrustedFolders
from jumpseat.system.git import git_root
from jumpseat.system.regular_files import read_whole, repository_root

FILE: Final = Path(".jumpseat", "config.toml")
LARGEST_BYTES: Final = 64 * 1024
MOST_RULES: Final = 1000
"""Limit on the rules of one file: each call is matched against all of them."""


class PermissionRules:
    """The permission rules of working directories."""

    def __init__(self, user: Rules, trust: TrustedFolders) -> None:
        self._user = user
        self._trust = trust

    def __call__(self, cwd: Path) -> tuple[Rules, list[str]]:
        """Return the rules for a working directory, and the problems of its files, which are ignored."""
        rules, problems = self._user, list[str]()
        for folder in dict.fromkeys((Path(location(cwd)), cwd)):
            path = folder / FILE
            try:
                found = _read(path, folder)
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                problems.append(f"The permission rules in {path} are ignored: {error}")
                continue
            if found.allow and not self._trust.is_trusted(folder):
                problems.append(
                    f"The allow rules in {path} are ignored, because the folder is not trusted. Trust it with"
                    " session.permissions.folderTrust.addTrusted, or under trusted_folders in config.toml."
                )
                found = Rules(ask=found.ask, deny=found.deny)
            rules += found
        return rules, problems


def read_rules(table: Mapping[str, Any], base: str = "") -> Rules:
    """Parse the rules in a table of a configuration file; ``base`` is the folder that relative paths start from.

    Raises:
        ValueError: a rule is invalid; the text names it.
    """
    return Rules(*(_rules(table.get(name, []), name, base) for name in ("allow", "ask", "deny")))


def location(folder: Path) -> str:
    """Return the location of approvals in ``folder``: its repository, else ``folder`` itself, resolved."""
    try:
        folder = folder.resolve()
    except (OSError, RuntimeError):
        return str(folder)
    return str(git_root(folder) or folder)


def _rules(values: Any, name: str, base: str) -> tuple[Rule, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in cast("list[Any]", values)):
        raise ValueError(f"{name}: expected an array of strings")
    try:
        return tuple(parse_rule(value, base) for value in cast("Iterable[str]", values))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _read(path: Path, folder: Path) -> Rules:
    content = read_whole(path, LARGEST_BYTES, repository_root(folder))
    # Imported here: few projects have rules.
    from jumpseat.parsing.toml_text import parse_toml

    table: Any = parse_toml(content.decode()).get("permissions", {})
    if not isinstance(table, dict):
        raise ValueError("permissions: expected a table")
    rules = read_rules(cast("dict[str, Any]", table), str(folder))
    count = len(rules.allow) + len(rules.ask) + len(rules.deny)
    if count > MOST_RULES:
        raise ValueError(f"{count} rules, expected at most {MOST_RULES}")
    return rules
