"""Write the page of errors: ``python -m tests.errors > docs/errors.md``."""

from __future__ import annotations

from typing import Final

from tests.errors.configuration_cases import MISTAKES, Mistake
from tests.errors.provider_cases import FAILURES

INTRODUCTION: Final = """\
# Errors

The messages for common mistakes in the configuration and for failures of providers, with the next step in each.
This page is generated from tests that make each mistake and send each answer (`tests/errors/`).

## Configuration

A message has the form `FILE:LINE: KEY: PROBLEM`.
The line is that of the key, or of its table if the key is missing; it is left out where it is not certain, for example in Python files.
`jumpseat adapters`, `jumpseat tools` and `jumpseat mcp list` report what is wrong with each adapter, tool and MCP server.
A mistake elsewhere in `config.toml` keeps the server from starting; in `settings.json`, it is logged as a warning, and the setting is ignored.
"""

FAILURES_INTRODUCTION: Final = """\
## Providers

A model call that has failed for good ends the run with one of these messages: in `jumpseat chat`, `jumpseat run`, Neovim, ACP editors, and in the `session.error` of the SDKs, which begins with `Execution failed: `.
`jumpseat check ADAPTER [MODEL]` gives the same explanation, with an [exit code](operators.md#diagnosis) for scripts.
Keys are masked, also where a provider repeats them; `{key}` below stands for the key.

The tables are about this adapter:

```toml
[adapters.work]
type = "openai"                     # or that of the provider in the first column
base_url = "https://llm.example.com/v1"
api_key_env = "WORK_KEY"
models = ["gpt-5"]
```
"""


def page() -> str:
    """Return the page as Markdown."""
    parts = [INTRODUCTION]
    for group, mistakes in MISTAKES.items():
        parts += [f"### {group}\n", "| mistake | file | message |", "|---|---|---|"]
        parts += [f"| {name} | {_file(mistake)} | {_code(mistake.message)} |" for name, mistake in mistakes.items()]
        parts.append("")
    parts.append(FAILURES_INTRODUCTION)
    for group, failures in FAILURES.items():
        parts += [f"### {group}\n", "| failure | answer | message |", "|---|---|---|"]
        parts += [
            f"| {name} | {_cell(failure.answer)} | {_cell(failure.message)} |" for name, failure in failures.items()
        ]
        parts.append("")
    return "\n".join(parts).rstrip("\n") + "\n"


def _file(mistake: Mistake) -> str:
    lines = "<br>".join(_code(line) for line in mistake.text.split("\n") if line)
    return lines if mistake.file == "config.toml" else f"`{mistake.file}`:<br>{lines}"


def _code(text: str) -> str:
    """Return ``text`` as code, whose spaces at the beginning stay visible."""
    indent = len(text) - len(text.lstrip())
    marks = "``" if "`" in text else "`"
    return "&nbsp;" * indent + f"{marks}{_cell(text.lstrip())}{marks}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
