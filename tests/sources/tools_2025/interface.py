"""Creating Tools: the structure of a tool, each of its fields and the options of its own file."""

# pyright: basic

CALLED = []


def called(name, result=None):
    CALLED.append(name)
    return result


def name_of(cmd):
    return cmd[0] if isinstance(cmd, list) else cmd


# Line 91.
TOOL = {
    "name": "editor",
    "cmds": [["echo", "${who}"], lambda self, args, input: called("function", ",".join(CALLED))],
    "schema": {
        "type": "function",
        "function": {"name": "editor", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    },
    "system_prompt": lambda schema: f"Use {schema['function']['name']}.",
    # Line 624.
    "opts": {
        "use_handlers_once": True,
        # Line 562: the option can be a function.
        "requires_approval": lambda self, tools: called("requires_approval", {"ask": tools.tool is self}),
    },
    "env": lambda schema: called("env", {"who": schema["name"]}),
    "handlers": {
        "setup": lambda self, tools: called("setup"),
        "prompt_condition": lambda self, tools, config: called("prompt_condition", config is None),
        "on_exit": lambda self, tools: tools.notify(",".join(CALLED)),
    },
    "output": {
        "prompt": lambda self, tools: called("prompt", "Edit?"),
        "rejected": lambda self, tools, cmd: called("rejected"),
        "error": lambda self, tools, cmd, stderr, stdout=None: called("error"),
        "success": lambda self, tools, cmd, stdout: called(f"success:{name_of(cmd)}"),
        "cancelled": lambda self, tools, cmd: called("cancelled"),
    },
}
