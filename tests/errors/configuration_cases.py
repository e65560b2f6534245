"""Mistakes in configuration files, each with the message that the program gives for it.

In messages, ``~/.jumpseat`` stands for the home folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Mistake(NamedTuple):
    """A file with a mistake, the arguments of the command that reports it, and the message."""

    text: str
    message: str
    command: tuple[str, ...] = ("adapters",)
    file: str = "config.toml"


KEYS: Final = (
    "unknown, keys do not belong in this file: put the key into an environment variable, "
    'and name that with api_key_env = "NAME_OF_THE_VARIABLE"'
)
PROVIDERS: Final = (
    "anthropic, azure, azure_responses, copilot, copilot_messages, copilot_responses, deepseek, gemini, "
    "gemini_interactions, githubmodels, huggingface, kimi, llamacpp, lmstudio, mistral, novita, ollama, openai, "
    "openai_compatible, openai_responses, openrouter, vllm, xai"
)

MISTAKES: Final[Mapping[str, Mapping[str, Mistake]]] = {
    "The file": {
        "a string without quotes": Mistake(
            "default_model = fast",
            "~/.jumpseat/config.toml:1:17: not valid TOML: invalid value, strings need quotes, and booleans are true "
            "and false",
        ),
        "a header without its bracket": Mistake(
            "[adapters.work\ntype = 'openai'",
            "~/.jumpseat/config.toml:1:15: not valid TOML: expected ']' at the end of a table declaration",
        ),
        "a key twice": Mistake(
            "[retry]\nattempts = 1\nattempts = 2",
            "~/.jumpseat/config.toml:3:13: not valid TOML: cannot overwrite a value",
        ),
        "a misspelled key": Mistake(
            "default_modle = 'fast'",
            "~/.jumpseat/config.toml:1: default_modle: unknown, did you mean 'default_model'?",
        ),
        "a misspelled table": Mistake(
            "[adaptors.work]\ntype = 'openai'",
            "~/.jumpseat/config.toml:1: adaptors: unknown, did you mean 'adapters'?",
        ),
        "several mistakes": Mistake(
            "default_model = 7\n[retry]\nattempts = 0",
            "~/.jumpseat/config.toml:1: default_model: expected a string, got an integer; line 3: retry.attempts: "
            "expected at least 1",
        ),
        "a server that does not start, seen by `jumpseat run`": Mistake(
            "[hooks]\ntimeout = 5",
            "error: the server could not start: ~/.jumpseat/config.toml:2: hooks.timeout: unknown, did you mean "
            "'timeout_s'?",
            ("run", "-p", "hi"),
        ),
    },
    "Adapters": {
        "no type": Mistake(
            "[adapters.work]\nbase_url = 'https://llm.example.com/v1'",
            "~/.jumpseat/config.toml:1: adapters.work: type: required, because there is no provider 'work': most "
            f'servers of your own work with type = "openai_compatible"; the others are {PROVIDERS}',
        ),
        "no type, and the name of a provider misspelled": Mistake(
            "[adapters.opnai]\napi_key_env = 'WORK_KEY'",
            "~/.jumpseat/config.toml:1: adapters.opnai: there is no provider 'opnai': did you mean "
            "[adapters.openai]? Or add a type",
        ),
        "a misspelled type": Mistake(
            "[adapters.work]\ntype = 'antropic'",
            "~/.jumpseat/config.toml:2: adapters.work: type: unknown adapter 'antropic', did you mean 'anthropic'?",
        ),
        "a key in the file": Mistake(
            "[adapters.work]\ntype = 'openai'\napi_key = 'sk-0123456789abcdef'",
            f"~/.jumpseat/config.toml:3: adapters.work.api_key: {KEYS}",
        ),
        "a key in place of the name of its variable": Mistake(
            "[adapters.work]\ntype = 'openai'\napi_key_env = 'sk-0123456789abcdef'",
            "~/.jumpseat/config.toml:3: adapters.work.api_key_env: expected the name of an environment variable, such "
            "as WORK_API_KEY; keys do not belong in this file",
        ),
        "a variable that is not set": Mistake(
            "[adapters.work]\ntype = 'openai'\napi_key_env = 'WORK_KEY'\nmodels = ['gpt-5']",
            "~/.jumpseat/config.toml:3: adapters.work.api_key_env: the environment variable 'WORK_KEY' is not set",
            ("check", "work"),
        ),
        "a local address without a scheme": Mistake(
            "[adapters.local]\ntype = 'openai'\nbase_url = 'localhost:11434/v1'",
            "~/.jumpseat/config.toml:3: adapters.local.base_url: expected an address that begins with http:// or "
            "https://, did you mean 'http://localhost:11434/v1'?",
        ),
        "an address without a scheme": Mistake(
            "[adapters.work]\ntype = 'openai'\nbase_url = 'llm.example.com/v1'",
            "~/.jumpseat/config.toml:3: adapters.work.base_url: expected an address that begins with http:// or "
            "https://, did you mean 'https://llm.example.com/v1'?",
        ),
        "no address": Mistake(
            "[adapters.local]\ntype = 'openai_compatible'\nmodels = ['qwen3']",
            "~/.jumpseat/config.toml:1: adapters.local.base_url: required, but missing",
            ("check", "local"),
        ),
        "another word for a key": Mistake(
            "[adapters.work]\ntype = 'openai'\napi_base = 'https://llm.example.com/v1'",
            "~/.jumpseat/config.toml:3: adapters.work.api_base: unknown, did you mean 'base_url'?",
        ),
        "models as a string": Mistake(
            "[adapters.work]\ntype = 'openai'\nmodels = 'gpt-5'",
            "~/.jumpseat/config.toml:3: adapters.work.models: expected an array, got a string",
        ),
        "a model without an id": Mistake(
            "[adapters.work]\ntype = 'openai'\nmodels = [\n  'gpt-5',\n  {name = 'Mini'},\n]",
            "~/.jumpseat/config.toml:5: adapters.work.models[1].id: required, but missing",
        ),
        "a misspelled key of a model": Mistake(
            "[[adapters.work.models]]\nid = 'gpt-5'\nvisoin = true",
            "~/.jumpseat/config.toml:3: adapters.work.models[0].visoin: unknown, did you mean 'vision'?",
        ),
        "a number as a header": Mistake(
            "[adapters.work]\ntype = 'openai'\nheaders = {X-Team = 7}",
            "~/.jumpseat/config.toml:3: adapters.work.headers.X-Team: expected a string, got an integer",
        ),
        "a misspelled option": Mistake(
            "[adapters.work]\ntype = 'azure'\nbase_url = 'https://example.com'\nmodels = ['m']\n"
            "options = {api_versoin = '1'}",
            "~/.jumpseat/config.toml:5: adapters.work.options.api_versoin: unknown, did you mean 'api_version'?",
            ("check", "work"),
        ),
        "an unknown key of an adapter's file": Mistake(
            "extends = 'openai'\nheadres = {}",
            "~/.jumpseat/adapters/work.toml:2: headres: unknown, did you mean 'headers'?",
            file="adapters/work.toml",
        ),
        "an unknown base of an adapter's file": Mistake(
            "extends = 'opnai'",
            "~/.jumpseat/adapters/work.toml:1: extends: unknown adapter 'opnai', did you mean 'openai'?",
            file="adapters/work.toml",
        ),
        "a placeholder without a value": Mistake(
            "extends = 'openai'\n\n[headers]\nX-Team = '${teem}'\n\n[env]\nteam = 'TEAM'\n\n"
            "[schema.model]\ndefault = 'm'",
            "~/.jumpseat/adapters/work.toml:4: headers.X-Team: ${teem} has no value: it is not declared in env, did "
            "you mean ${team}?",
            ("check", "work"),
            file="adapters/work.toml",
        ),
    },
    "Models": {
        "an alias of an unknown adapter": Mistake(
            "[adapters.work]\ntype = 'openai'\n\n[models.fast]\nadapter = 'wrok'\nmodel = 'gpt-5'",
            "~/.jumpseat/config.toml:5: models.fast.adapter: unknown adapter 'wrok', did you mean 'work'?",
        ),
        "an alias without a model": Mistake(
            "[adapters.work]\ntype = 'openai'\n\n[models.fast]\nadapter = 'work'",
            "~/.jumpseat/config.toml:4: models.fast.model: required, but missing",
        ),
        "a misspelled default": Mistake(
            "default_model = 'fats'\n\n[models.fast]\nadapter = 'a'\nmodel = 'm'\n\n[adapters.a]\ntype = 'openai'\n\n"
            "[adapters.b]\ntype = 'openai'",
            "~/.jumpseat/config.toml:1: default_model: unknown model 'fats', did you mean 'fast'?",
            ("run", "-p", "hi"),
        ),
    },
    "Permissions, the sandbox and limits": {
        "a string as a boolean": Mistake(
            "[permissions]\nallow_unasked = 'yes please'",
            "~/.jumpseat/config.toml:2: permissions.allow_unasked: expected a boolean, got a string",
        ),
        "one rule without an array": Mistake(
            "[permissions]\nallow = 'read'",
            "~/.jumpseat/config.toml:2: permissions.allow: expected an array, got a string",
        ),
        "an unknown mode": Mistake(
            "[sandbox]\nmode = 'on'",
            "~/.jumpseat/config.toml:2: sandbox.mode: expected 'auto', 'require' or 'off'",
        ),
        "a relative path": Mistake(
            "[sandbox]\nwrite = ['shared']",
            "~/.jumpseat/config.toml:2: sandbox.write: expected a path that begins with / or ~, got 'shared'",
        ),
        "a number out of range": Mistake(
            "[compaction]\nbackground_threshold = 80",
            "~/.jumpseat/config.toml:2: compaction.background_threshold: expected at most 1",
        ),
    },
    "Tools and MCP servers": {
        "a misspelled key of a tool": Mistake(
            "[tools.lint]\ndescription = 'Lint'\ncmdz = [['make', 'lint']]",
            "~/.jumpseat/config.toml:3: tools.lint: cmdz: unknown, did you mean 'cmds'?",
            ("tools",),
        ),
        "a tool without commands": Mistake(
            "description = 'Lint'",
            "~/.jumpseat/tools/lint.toml: expected cmds: a list of commands or functions",
            ("tools",),
            file="tools/lint.toml",
        ),
        "a string in place of commands": Mistake(
            "description = 'Lint'\ncmds = 'make lint'",
            "~/.jumpseat/tools/lint.toml:2: cmds: expected an array, got a string",
            ("tools",),
            file="tools/lint.toml",
        ),
        "a server without a command": Mistake(
            "[mcp.servers.files]\ncomand = 'npx'",
            "~/.jumpseat/config.toml:2: mcp.servers.files.comand: unknown, did you mean 'command'?; line 1: "
            "mcp.servers.files: expected a command to run, or the url of a server",
            ("mcp", "list"),
        ),
        "the URL of a server without a scheme": Mistake(
            '{\n  "mcpServers": {\n    "wiki": {"url": "wiki.example.com/mcp"}\n  }\n}',
            "~/.jumpseat/mcp-config.json:3: mcpServers.wiki.url: expected an address that begins with http:// or "
            "https://",
            ("mcp", "list"),
            file="mcp-config.json",
        ),
        "arguments as a string": Mistake(
            "[mcp.servers.files]\ncommand = 'npx'\nargs = '-y server'",
            "~/.jumpseat/config.toml:3: mcp.servers.files.args: expected an array, got a string",
            ("mcp", "list"),
        ),
    },
}
