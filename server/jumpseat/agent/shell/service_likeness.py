"""Recognize commands that show the state of a service and nothing secret: lists, logs, the pages of a project.

They leave the sandbox. An approval of one covers others that show no more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from jumpseat.agent.shell.likeness import NOTHING, SHOWS, Likeness, alike
from jumpseat.agent.shell.text_programs import reads_more


def service_likeness(texts: Sequence[str], identifier: str) -> Likeness:
    """Return what a command that shows the state of a service has in common with others."""
    if (special := _SPECIAL.get(texts[0])) is not None and (found := special(texts)):
        return _shows(*found)
    return next((_shows(*names) for known, names in _KNOWN.items() if known.fullmatch(identifier)), NOTHING)


def _shows(name: str, *less: str) -> Likeness:
    """``less`` are what a command shows that shows less."""
    return alike(f"{SHOWS}{name}", gives=[f"{SHOWS}{other}" for other in less])


def _kubectl(texts: Sequence[str]) -> Sequence[str]:
    operands = _operands(texts[2:], _KUBECTL_OPTIONS, _KUBECTL_VALUES)
    verb = texts[1] if len(texts) > 1 else ""
    if operands is None or verb not in ("describe", "get", "logs"):
        return ()
    if verb == "logs":
        return ("kubectl logs", "kubectl lists") if 1 <= len(operands) <= 2 else ()
    named = [word for index, word in enumerate(operands) if not index or "/" in word or "," in word]
    kinds = [part.partition("/")[0] for word in named for part in word.split(",")] or [""]
    if not all(map(_KUBECTL_KINDS.fullmatch, kinds)):
        return ()
    return ("kubectl describe", "kubectl lists") if verb == "describe" else ("kubectl lists",)


def _gh(texts: Sequence[str]) -> Sequence[str]:
    if list(texts[1:2]) != ["api"]:
        return ()
    operands = _operands(texts[2:], _GH_OPTIONS, frozenset({"--jq", "-q", "--cache"}))
    if any(map(reads_more, texts[2:])):
        return ()
    place = _REPOSITORY.fullmatch(operands[0]) if operands is not None and len(operands) == 1 else None
    return (f"gh api {place[1]}",) if place else ()


def _git(texts: Sequence[str]) -> Sequence[str]:
    """Only the default remote, whose branches go where they always go."""
    if list(texts[1:2]) != ["fetch"]:
        return ()
    operands = _operands(texts[2:], _FETCH_OPTIONS, frozenset())
    own = operands is not None and operands[:1] in ([], ["origin"]) and all(map(_BRANCH.fullmatch, operands))
    return ("git fetch",) if own else ()


def _operands(words: Sequence[str], options: re.Pattern[str], values: frozenset[str]) -> list[str] | None:
    """Return the words that are no options; ``None`` if an option is not known."""
    left = list(words)
    found: list[str] = []
    while left:
        word = left.pop(0)
        if word == "-o" and left:
            word += left.pop(0)
        if word in values:
            if not left or left.pop(0).startswith("-"):
                return None
        elif not word.startswith("-"):
            found.append(word)
        elif not options.fullmatch(word):
            return None
    return found


_KUBECTL_OPTIONS: Final = re.compile(
    r"-A|-f|-p|-w|-o(?:wide|name)|-o=(?:wide|name)|--output=(?:wide|name)|--(?:all-namespaces|no-headers|show-labels|follow"
    r"|previous|timestamps|all-containers|watch|prefix)|--(?:namespace|selector|tail|since|container|sort-by"
    r"|field-selector)=[\w.,:/={}\[\]@!-]*|-n[\w-]+"
)
_KUBECTL_VALUES: Final = frozenset({
    "--container", "--namespace", "--selector", "--since", "--sort-by", "--tail", "-L", "-c", "-l", "-n",
})  # fmt: skip
_KUBECTL_KINDS: Final = re.compile(
    r"all|po|pods?|svc|services?|deploy|deployments?|rs|replicasets?|sts|statefulsets?|ds|daemonsets?|jobs?|cj|cronjobs?"
    r"|no|nodes?|ns|namespaces?|ev|events?|ing|ingress(?:es)?|ep|endpoints|pvc?|hpa"
)
_GH_OPTIONS: Final = re.compile(r"--paginate|--slurp|--jq=.*|-i|--include", re.DOTALL)
_REPOSITORY: Final = re.compile(r"(?!.*\.\.)/?(repos/[\w.-]+/[\w.-]+)(?:/[\w./-]*)?(?:\?[\w=&.%-]*)?")
_FETCH_OPTIONS: Final = re.compile(
    r"-[pqtv]+|--(?:prune|quiet|verbose|tags|no-tags|dry-run|progress|depth=\d+|unshallow)"
)
_BRANCH: Final = re.compile(r"[A-Za-z][\w./-]*")

_SPECIAL: Final[Mapping[str, Callable[[Sequence[str]], Sequence[str]]]] = {
    "gh": _gh,
    "git": _git,
    "kubectl": _kubectl,
}
_KNOWN: Final[Mapping[re.Pattern[str], tuple[str, ...]]] = {
    re.compile(
        r"docker (?:compose (?:images|ls|ps)|container ls|images?(?: ls)?|network ls|ps|stats|system df|version"
        r"|volume ls)"
    ): ("docker lists",),
    re.compile(r"docker (?:compose )?logs"): ("docker logs", "docker lists"),
    re.compile(r"docker compose config"): ("docker compose config",),
    re.compile(r"kubectl rollout (?:history|status)"): ("kubectl rollouts", "kubectl lists"),
    re.compile(r"terraform plan"): ("terraform plan", "terraform lists"),
    re.compile(
        r"gh (?:issue (?:list|status|view)|label list|pr (?:checks|diff|list|status|view)|release (?:list|view)"
        r"|repo view|run (?:list|view)|workflow (?:list|view))"
    ): ("gh pages",),
    re.compile(r"aws s3 ls"): ("aws s3 ls",),
    re.compile(r"lsof|pgrep|ps|ss"): ("processes",),
    re.compile(r"terraform (?:providers|state list|version)"): ("terraform lists",),
    re.compile(r"terraform (?:show|state show)"): ("terraform state", "terraform lists"),
    re.compile(r"journalctl|systemctl status"): ("journal",),
}
"""The identifiers of known commands, and what each shows."""
