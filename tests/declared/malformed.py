"""Fifty malformed declarations of tools and adapters, each with the sentence that says what to do.

``@`` stands for the file. The declarations in ``CALLED_`` can be read, but fail when they run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Case(NamedTuple):
    """A file, and the sentence about it."""

    file: str
    content: str
    sentence: str


CMDS: Final = 'cmds = [["echo", "hi"]]\n'
EXTENDS: Final = 'extends = "openai_compatible"\n'


def tool(table: str, before: str = "") -> str:
    return f"{before}\nTOOL = {{'description': 'x', {table}}}\n"


def adapter(handlers: str, more: str = "") -> str:
    return (
        f"{more}\nADAPTER = {{'url': 'http://127.0.0.1:8123/ask', 'opts': {{'stream': False}},"
        f" 'schema': {{'model': {{'default': 'm'}}}}, 'handlers': {{{handlers}}}}}\n"
    )


PARSE: Final = "def parse(self, data, tools):\n    return {'status': 'success', 'output': {'content': 'hi'}}\n"

TOOLS: Final[Mapping[str, Case]] = {
    name: Case(*case)
    for name, case in {
        "an unknown key": ("t01.toml", 'cmdz = [["echo"]]\n', "@:1: cmdz: unknown, did you mean 'cmds'?"),
        "an unknown key, nothing near": (
            "t02.toml",
            CMDS + "zzzzz = 1\n",
            "@:2: zzzzz: unknown, expected one of build_cmd, callback, cmds, cwd, description, enabled, env, "
            "extends, handlers, name, on_mention, opts, output, overrides_built_in_tool, parameters, "
            "requires_approval, schema, system_prompt, timeout_s, unsandboxed, visible",
        ),
        "no commands": ("t03.toml", 'description = "x"\n', "@: expected cmds: a list of commands or functions"),
        "commands as a string": ("t04.toml", 'cmds = "echo hi"\n', "@:1: cmds: expected an array, got a string"),
        "an empty command": ("t05.toml", 'cmds = [""]\n', "@:1: cmds[0]: expected a command, got an empty string"),
        "a number as a command": (
            "t06.toml",
            "cmds = [1]\n",
            "@:1: cmds[0]: expected a list of strings, a string or a function, got 1",
        ),
        "a table inside an argv": (
            "t07.toml",
            'cmds = [["echo", {a = 1}]]\n',
            "@:1: cmds[0]: expected a list of strings, but one element is an object",
        ),
        "an unknown key of a command": (
            "t08.toml",
            'cmds = [{cmd = ["echo"], flagg = "a"}]\n',
            "@:1: cmds[0].flagg: unknown, did you mean 'flag'?",
        ),
        "a command without cmd": ("t09.toml", 'cmds = [{flag = "a"}]\n', "@:1: cmds[0].cmd: required, but missing"),
        "a time limit in words": (
            "t10.toml",
            CMDS + 'timeout_s = "soon"\n',
            "@:2: timeout_s: expected a number, got a string",
        ),
        "a negative time limit": ("t11.toml", CMDS + "timeout_s = -1\n", "@:2: timeout_s: expected more than 0"),
        "a name with spaces": (
            "t12.toml",
            CMDS + 'name = "my tool"\n',
            "@: 'my tool' cannot be the name of a tool: expected 1 to 64 letters, digits, '_' and '-'",
        ),
        "a name of a built-in tool": (
            "t13.toml",
            CMDS + 'name = "bash"\n',
            "@: 'bash' is a built-in tool; set overrides_built_in_tool to replace it",
        ),
        "a parameter that is a string": (
            "t14.toml",
            CMDS + 'parameters = "path"\n',
            "@:2: parameters: expected a table",
        ),
        "an unknown type of a parameter": (
            "t15.toml",
            CMDS + '[parameters.path]\ntype = "strnig"\n',
            "@:2: parameters.properties.path.type: unknown type 'strnig', did you mean 'string'?",
        ),
        "an unknown handler": (
            "t16.py",
            tool("'cmds': [print], 'handlers': {'setupp': print}"),
            "@: handlers.setupp: unknown, did you mean 'setup'?",
        ),
        "a handler that is no function": (
            "t17.py",
            tool("'cmds': [print], 'handlers': {'setup': 'x'}"),
            "@: handlers.setup: expected a function, got a string",
        ),
        "an unknown output": (
            "t18.py",
            tool("'cmds': [print], 'output': {'succes': print}"),
            "@: output.succes: unknown, did you mean 'success'?",
        ),
        "no TOOL": ("t19.py", "TOOLZ = {}\n", "@: expected a mapping called TOOL"),
        "a TOOL that is a list": ("t20.py", "TOOL = []\n", "@: expected a mapping called TOOL"),
        "a file that raises": (
            "t21.py",
            "1 / 0\n",
            "@: cannot be run: ZeroDivisionError: division by zero (line 1)",
        ),
        "a syntax error": ("t22.py", "def (:\n", "@: cannot be run: SyntaxError: invalid syntax (t22.py, line 1)"),
        "invalid TOML": ("t23.toml", "cmds = [\n", "@: not valid TOML: invalid value (at end of document)"),
        "an empty group": ("t24.toml", "tools = []\n", "@:1: tools: expected an array that is not empty"),
        "an unknown key of a group": (
            "t25.toml",
            'tools = ["bash"]\npromt = "x"\n',
            "@:2: promt: unknown, did you mean 'prompt'?",
        ),
        "an unknown kind": (
            "t26.toml",
            CMDS + 'extends = "cmd_tol"\n',
            "@:2: extends: expected 'cmd_tool', got 'cmd_tol'",
        ),
        "a file that ends the process": (
            "t27.py",
            "raise SystemExit(3)\n",
            "@: cannot be run: SystemExit: 3 (line 1)",
        ),
        "a callback that returns nothing": (
            "t28.py",
            "TOOL = {'callback': lambda: None}\n",
            "@: callback: expected a tool, or a function that returns one",
        ),
        "a callback that is the tool itself": (
            "t29.py",
            "TOOL = {'cmds': [print]}\nTOOL['callback'] = TOOL\n",
            "@: callback: refers to itself, or is nested too deeply",
        ),
        "a file that raises what is no Exception": (
            "t30.py",
            "raise BaseException('end')\n",
            "@: cannot be run: BaseException: end (line 1)",
        ),
        "an unpaired surrogate": (
            "t31.py",
            tool("'cmds': [print], 'system_prompt': 'x\\ud800'"),
            "@: system_prompt contains an unpaired surrogate: write the character itself",
        ),
        "a default that JSON cannot represent": (
            "t32.py",
            tool("'cmds': [print], 'parameters': {'day': {'type': 'string', 'default': object()}}"),
            "@: parameters.properties.day.default: expected a value that JSON can represent, got object",
        ),
        "a limit that JSON cannot represent": (
            "t33.toml",
            CMDS + f'[parameters.n]\ntype = "integer"\nmaximum = {10**20}\n',
            "@:2: parameters.properties.n.maximum: expected an integer of at most 64 bits",
        ),
        "a NUL character in a command": (
            "t34.py",
            tool("'cmds': [['echo', 'a\\0b']]"),
            "@: cmds[0]: contains a NUL character, which no command can",
        ),
        "parameters that are an array": (
            "t35.toml",
            CMDS + '[parameters]\ntype = "array"\n',
            "@:3: parameters.type: expected 'object', got 'array'",
        ),
        "an element of TOOLS that is no tool": ("t36.py", "TOOLS = [7]\n", "@: expected a mapping called TOOLS[0]"),
        "a misspelled placeholder": (
            "t37.toml",
            'cmds = [["cat", "${pth}"]]\n[parameters.path]\ntype = "string"\n',
            "@:1: cmds[0]: ${pth} is neither in env nor a parameter, did you mean ${path}?",
        ),
        "a misspelled placeholder in a line for the shell": (
            "t38.toml",
            'cmds = ["cat ${pth} > ${HOME}/x"]\n[parameters.path]\ntype = "string"\n',
            "@:1: cmds[0]: ${pth} is neither in env nor a parameter, did you mean ${path}?",
        ),
        "a misspelled placeholder in a question": (
            "t39.toml",
            CMDS + 'output = {prompt = "Count ${args.pth}?"}\n[parameters.path]\ntype = "string"\n',
            "@:2: output.prompt: ${args.pth} is neither in env nor a parameter, did you mean ${args.path}?",
        ),
        "a path to an unknown argument": (
            "t40.toml",
            'cmds = [["cat", "${it}"]]\nenv = {it = "args.pth"}\n[parameters.path]\ntype = "string"\n',
            "@:2: env.it: the tool has no parameter 'pth', did you mean 'path'?",
        ),
        "a misspelled option": (
            "t41.py",
            tool("'cmds': [print], 'opts': {'requires_aproval': False}"),
            "@: opts.requires_aproval: unknown, did you mean 'requires_approval'?",
        ),
        "an option that nothing reads": (
            "t42.toml",
            CMDS + "opts = {colour = 1}\n",
            "@:2: opts.colour: unknown, expected one of allowed_in_yolo_mode, on_mention, parallel, "
            "require_approval_before, require_cmd_approval, requires_approval, timeout, timeout_s, "
            "use_handlers_once, user_approval",
        ),
        "an unknown option of a group": (
            "t43.toml",
            'tools = ["bash"]\nopts = {colapse_tools = true}\n',
            "@:2: opts.colapse_tools: unknown, did you mean 'collapse_tools'?",
        ),
        "an unknown placeholder of a group": (
            "t44.toml",
            'tools = ["bash"]\nprompt = "Use ${tolls}"\n',
            "@:2: prompt: unknown placeholder ${tolls}, expected ${tools}",
        ),
        "approval in words": (
            "t45.toml",
            CMDS + 'requires_approval = "no"\n',
            "@:2: requires_approval: expected a boolean or a function, got a string",
        ),
        "a misspelled keyword of a schema": (
            "t46.toml",
            CMDS + '[parameters.n]\ntyp = "integer"\n',
            "@:2: parameters.properties.n.typ: unknown, did you mean 'type'?",
        ),
        "a type in place of a schema": (
            "t47.toml",
            CMDS + 'parameters = {n = "integer"}\n',
            "@:2: parameters.n: expected a table such as {type = 'integer'}",
        ),
        "a misspelled key of a function": (
            "t48.toml",
            CMDS + '[schema.function]\nnam = "x"\n',
            "@:3: schema.function.nam: unknown, did you mean 'name'?",
        ),
        "both a tool and a group": (
            "t49.toml",
            CMDS + 'tools = ["bash"]\n',
            "@: expected cmds, for a tool, or tools, for a group, not both",
        ),
        "two tools of one name": (
            "t50.py",
            "TOOLS = [{'name': 'twice', 'cmds': [['echo']]}] * 2\n",
            "@: TOOLS[1]: there is another 'twice'",
        ),
    }.items()
}

CALLED_TOOLS: Final[Mapping[str, Case]] = {
    name: Case(*case)
    for name, case in {
        "a function that raises": (
            "c01.py",
            tool("'cmds': [run], 'requires_approval': False", "def run(self, args):\n    raise KeyError('city')\n"),
            "The tool `c01` failed.",
        ),
        "a function that never ends": (
            "c02.py",
            tool(
                "'cmds': [run], 'requires_approval': False, 'timeout_s': 0.25",
                "import asyncio\n\nasync def run(self, args):\n    await asyncio.Event().wait()\n",
            ),
            "The tool `c02` gave no result within 0.25 s.",
        ),
        "a command that does not exist": (
            "c03.toml",
            'cmds = [["no-such-program"]]\nrequires_approval = false\n',
            "<stderr> The command could not be started: No such file or directory (no-such-program). "
            "</stderr> <exited with exit code 127>",
        ),
        "a variable that is not set": (
            "c05.toml",
            'cmds = [["echo", "${who}"]]\nrequires_approval = false\n[env]\nwho = "NO_SUCH_VARIABLE"\n',
            "The tool `c05` cannot be run: ${who} has no value: the environment variable "
            "NO_SUCH_VARIABLE is not set",
        ),
        "a setup that raises": (
            "c07.py",
            tool(
                "'cmds': [print], 'requires_approval': False, 'handlers': {'setup': setup}",
                "def setup(self):\n    raise ValueError('x')\n",
            ),
            "The tool `c07` failed.",
        ),
        "a misspelled status": (
            "c04.py",
            tool(
                "'cmds': [run], 'requires_approval': False",
                "def run(self, args):\n    return {'status': 'eror', 'data': 'x'}\n",
            ),
            "The tool `c04` failed.",
        ),
        "a setup that removes cmds": (
            "c06.py",
            tool(
                "'cmds': [print], 'requires_approval': False, 'handlers': {'setup': setup}",
                "def setup(self):\n    self.cmds = None\n",
            ),
            "The tool `c06` cannot be run: cmds: setup must leave a list, got null",
        ),
        "a function with unknown parameters": (
            "c08.py",
            tool("'cmds': [run], 'requires_approval': False", "def run(a, b, c, d, e, f, g, h):\n    return 'x'\n"),
            "The tool `c08` failed.",
        ),
    }.items()
}

ADAPTERS: Final[Mapping[str, Case]] = {
    name: Case(*case)
    for name, case in {
        "an unknown key": (
            "a01.toml",
            EXTENDS + "headres = {}\n",
            "@:2: headres: unknown, did you mean 'headers'?",
        ),
        "an unknown adapter": (
            "a02.toml",
            'extends = "opnai"\n',
            "@:1: extends: unknown adapter 'opnai', did you mean 'openai'?",
        ),
        "itself": ("a03.toml", 'extends = "a03"\n', "@:1: extends: there is no other adapter 'a03' to extend"),
        "a cycle": ("a04.toml", 'extends = "a05"\n', "@: it extends itself: a05 -> a04 -> a05"),
        "the other half of the cycle": ("a05.toml", 'extends = "a04"\n', "@: it extends itself: a04 -> a05 -> a04"),
        "a header that is a list": (
            "a06.toml",
            EXTENDS + "headers = []\n",
            "@:2: headers: expected a table, got an array",
        ),
        "an address that is a number": (
            "a07.toml",
            EXTENDS + "[env]\nbase_url = [1]\n",
            "@:3: env.base_url: expected a string, got an array",
        ),
        "an unknown key of an env entry": (
            "a08.toml",
            EXTENDS + '[env]\nkey = {valu = "x"}\n',
            "@:3: env.key.valu: unknown, did you mean 'value'?",
        ),
        "an unknown type of a setting": (
            "a09.toml",
            EXTENDS + '[schema.heat]\ntype = "nubmer"\n',
            "@:3: schema.heat.type: expected 'string', 'number', 'integer', 'boolean', 'enum', 'list' or 'map'",
        ),
        "an unknown key of a setting": (
            "a10.toml",
            EXTENDS + "[schema.heat]\ndefalt = 1\n",
            "@:3: schema.heat.defalt: unknown, did you mean 'default'?",
        ),
        "an unknown time limit": (
            "a11.toml",
            EXTENDS + "[opts.timeouts]\nconect = 1\n",
            "@:3: opts.timeouts.conect: unknown limit, did you mean 'connect'?",
        ),
        "a time limit in words": (
            "a12.toml",
            EXTENDS + '[opts.timeouts]\nconnect = "soon"\n',
            "@:3: opts.timeouts.connect: expected a number of seconds, got 'soon'",
        ),
        "an argument of curl without a meaning": (
            "a13.toml",
            EXTENDS + 'raw = ["--resolve"]\n',
            "@:2: raw: '--resolve' is not supported; supported: --insecure, --proxy, --cacert, --cert, "
            "--key, --connect-timeout, --max-time, --header, --http1.1, --compressed, --no-buffer, "
            "--silent",
        ),
        "an argument of curl without its value": (
            "a14.toml",
            EXTENDS + 'raw = ["--proxy"]\n',
            "@:2: raw: '--proxy' needs a value",
        ),
        "an unknown wire": (
            "a15.toml",
            'wire = "opnai"\nurl = "http://x"\n',
            "@:1: wire: unknown wire 'opnai', did you mean 'openai'?",
        ),
        "an unknown handler": (
            "a16.py",
            adapter("'response': {'parse_chatt': print}"),
            "@: handlers.response.parse_chatt: unknown handler, did you mean 'parse_chat'?",
        ),
        "a handler of another group": (
            "a17.py",
            adapter("'request': {'parse_chat': print}"),
            "@: handlers.request.parse_chat: unknown handler, expected one of build_body, "
            "build_messages, build_parameters, build_reasoning, build_structured_output, build_tools",
        ),
        "a handler that is no function": (
            "a18.py",
            adapter("'response': {'parse_chat': 'x'}"),
            "@: handlers.response.parse_chat: expected a function, got a string",
        ),
        "a group of handlers that is no table": (
            "a19.py",
            adapter("'response': []"),
            "@: handlers.response: expected a table of handlers",
        ),
        "neither a wire nor parse_chat": (
            "a20.py",
            adapter(""),
            "adapter 'a20' has no wire: extend an adapter, or add the handler parse_chat",
        ),
        "a file that raises what is no Exception": (
            "a25.py",
            "raise BaseException('end')\n",
            "@: cannot be run: BaseException: end (line 1)",
        ),
        "an unpaired surrogate": (
            "a26.py",
            "ADAPTER = {'extends': 'openai_compatible', 'formatted_name': '\\ud800'}\n",
            "@: formatted_name contains an unpaired surrogate: write the character itself",
        ),
        "no ADAPTER": ("a21.py", "ADAPTR = {}\n", "@: expected a mapping called ADAPTER"),
        "a file that raises": (
            "a22.py",
            "import no_such_module\n",
            "@: cannot be run: ModuleNotFoundError: No module named 'no_such_module' (line 1)",
        ),
        "an unknown kind of adapter": (
            "a23.toml",
            EXTENDS + 'type = "htpt"\n',
            "@:2: type: expected 'http' or 'acp'",
        ),
        "an unknown short key": (
            "a24.toml",
            'type = "openai"\nbase_ulr = "http://x"\n',
            "@:1: type: to start from the adapter 'openai', write extends = 'openai'",
        ),
        "a misspelled extends": (
            "a27.toml",
            'extend = "openai"\n',
            "@:1: extend: unknown, did you mean 'extends'?",
        ),
        "extends as a list": (
            "a28.toml",
            'extends = ["openai"]\n',
            "@:1: extends: expected the name of an adapter, got an array",
        ),
        "a misspelled option": (
            "a29.py",
            adapter("'response': {'parse_chat': print}").replace("'stream'", "'strem'"),
            "@: opts.strem: unknown, did you mean 'stream'?",
        ),
        "an option that nothing reads": (
            "a30.toml",
            EXTENDS + "opts = {colour = 1}\n",
            "@:2: opts.colour: unknown, expected one of can_reason, can_use_tools, has_vision, method, request, "
            "stream, timeouts, tool_protocol, tools, vision",
        ),
        "an option in words": (
            "a31.toml",
            EXTENDS + 'opts = {tools = "no"}\n',
            "@:2: opts.tools: expected a boolean, got a string",
        ),
        "a misspelled fact about a model": (
            "a32.toml",
            EXTENDS + '[schema.model]\nchoices = [{id = "m", meta = {contxt_window = 9}}]\n',
            "@:3: schema.model.choices.m.meta.contxt_window: unknown, did you mean 'context_window'?",
        ),
        "a misspelled mapping": (
            "a33.toml",
            EXTENDS + '[schema.heat]\nmapping = "paramters"\n',
            "@:3: schema.heat.mapping: unknown, did you mean 'parameters'?",
        ),
        "a default that is no choice": (
            "a34.toml",
            EXTENDS + '[schema.heat]\ntype = "enum"\nchoices = ["low", "high"]\ndefault = "hot"\n',
            "@:5: schema.heat.default: expected one of low, high",
        ),
        "limits in the wrong order": (
            "a35.toml",
            EXTENDS + "[schema.heat]\nminimum = 2\nmaximum = 1\n",
            "@:2: schema.heat: its minimum is greater than its maximum",
        ),
        "a misspelled role": (
            "a36.toml",
            EXTENDS + 'roles = {usr = "human"}\n',
            "@:2: roles.usr: unknown, did you mean 'user'?",
        ),
        "a header with a space": (
            "a37.toml",
            EXTENDS + 'headers = {"X Team" = "blue"}\n',
            "@:2: headers: 'X Team' cannot be the name of a header",
        ),
        "a placeholder that is not declared": (
            "a38.toml",
            EXTENDS + '[env]\nteam = "blue"\n[headers]\nX-Team = "${tem}"\n',
            "@:5: headers.X-Team: ${tem} has no value: it is not declared in env, did you mean ${team}?",
        ),
        "a placeholder in the base URL": (
            "a39.toml",
            EXTENDS + '[env]\nbase_url = "https://${region}.example.com"\n',
            "@:3: env.base_url: placeholders are not replaced here, but in url",
        ),
        "an unknown option of the wire": (
            "a42.toml",
            EXTENDS + "options = {stream_usag = false}\n",
            "@:2: options.stream_usag: unknown, did you mean 'stream_usage'?",
        ),
        "a misspelled key": (
            "a40.toml",
            EXTENDS + '[env]\napi_kye = "KEY"\n',
            "@:3: env.api_kye: nothing refers to it, did you mean 'api_key'?",
        ),
        "a path to an unknown setting": (
            "a41.toml",
            EXTENDS + '[env]\nit = "schema.modle.default"\n',
            "@:3: env.it: the adapter has no setting 'modle', did you mean 'model'?",
        ),
    }.items()
}

CALLED_ADAPTERS: Final[Mapping[str, Case]] = {
    name: Case(*case)
    for name, case in {
        "parse_chat raises": (
            "b01.py",
            adapter("'response': {'parse_chat': parse}", "def parse(self, data, tools):\n    return data['bdy']\n"),
            "adapter 'b01': its handler parse_chat failed (KeyError at b01.py:2)",
        ),
        "parse_chat returns nonsense": (
            "b02.py",
            adapter("'response': {'parse_chat': parse}", "def parse(self, data, tools):\n    return 42\n"),
            "adapter 'b02': its handler parse_chat must return {status, output}, got a number (b02.py:1)",
        ),
        "parse_chat returns nothing": (
            "b03.py",
            adapter("'response': {'parse_chat': parse}", "def parse(self, data, tools):\n    return None\n"),
            "adapter 'b03': its handler parse_chat must return {status, output} for at least one part "
            "of the response, got nothing (b03.py:1)",
        ),
        "parse_chat takes unknown parameters": (
            "b04.py",
            adapter("'response': {'parse_chat': parse}", "def parse(a, b, c, d, e):\n    return None\n"),
            "adapter 'b04': its handler parse_chat failed (TypeError at b04.py:1)",
        ),
        "build_messages returns a string": (
            "b05.py",
            adapter(
                "'response': {'parse_chat': parse}, 'request': {'build_messages': build}",
                PARSE + "\ndef build(self, messages):\n    return 'x'\n",
            ),
            "adapter 'b05': its handler build_messages must return a table such as {messages}, got a "
            "string (b05.py:4)",
        ),
        "setup says no": (
            "b06.py",
            adapter(
                "'response': {'parse_chat': parse}, 'lifecycle': {'setup': setup}",
                PARSE + "\ndef setup(self):\n    return False\n",
            ),
            "adapter 'b06' refused the request: its setup returned false",
        ),
        "a default that raises": (
            "b07.py",
            "def default(self):\n    raise OSError('x')\n\n"
            + PARSE
            + "\nADAPTER = {'url': 'http://127.0.0.1:8123/',"
            " 'schema': {'model': {'default': default}}, 'handlers': {'response': {'parse_chat': parse}}}\n",
            "adapter 'b07': schema.model.default: its function failed (OSError at b07.py:2)",
        ),
        "parse_chat never ends": (
            "b10.py",
            "import threading\n\ndef parse(data):\n    threading.Event().wait(2)\n\nADAPTER = {"
            "'url': 'http://127.0.0.1:8123/', 'opts': {'stream': False, 'timeouts': {'handler': 0.25}},"
            " 'schema': {'model': {'default': 'm'}}, 'handlers': {'response': {'parse_chat': parse}}}\n",
            "adapter 'b10': its handler parse_chat gave no result within 0.25 s at b10.py:3",
        ),
        "an address without a scheme": (
            "b08.toml",
            EXTENDS + '[env]\nbase_url = "localhost:8123"\n[schema.model]\ndefault = "m"\n',
            "the address of the provider must begin with http:// or https://",
        ),
        "setup returns a string": (
            "b09.py",
            adapter(
                "'response': {'parse_chat': parse}, 'lifecycle': {'setup': setup}",
                PARSE + "\ndef setup(self):\n    return 'no'\n",
            ),
            "adapter 'b09': its handler setup must return true, or false to refuse the request, got a string "
            "(b09.py:4)",
        ),
        "build_messages returns what JSON cannot represent": (
            "b11.py",
            adapter(
                "'response': {'parse_chat': parse}, 'request': {'build_messages': build}",
                PARSE + "\ndef build(self, messages):\n    return {'messages': {1, 2}}\n",
            ),
            "adapter 'b11': its request cannot be written as JSON: body.messages: expected a value that JSON can "
            "represent, got set",
        ),
        "a misspelled field of an output": (
            "b12.py",
            adapter(
                "'response': {'parse_chat': parse}",
                "def parse(self, data):\n    return {'status': 'success', 'output': {'contnt': 'hi'}}\n",
            ),
            "adapter 'b12': its handler parse_chat must return an output with 'content', not 'contnt', got a table "
            "with contnt (b12.py:1)",
        ),
    }.items()
}
