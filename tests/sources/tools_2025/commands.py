"""Creating Tools: command-based tools."""

# pyright: basic

import re
import tempfile

# Line 120.
MAKE = {
    "name": "make_and_hello",
    "cmds": [
        ["make", "test"],
        ["echo", "hello"],
    ],
}


# Line 131.
def env(self):
    temp_input = tempfile.mktemp()
    temp_dir = re.match(r"(.*/)", temp_input).group(1)  # type: ignore
    lang = self.args["lang"]
    code = self.args["code"]

    return {
        "code": code,
        "lang": lang,
        "temp_dir": temp_dir,
        "temp_input": temp_input,
    }


CODE_RUNNER = {
    "name": "code_runner",
    "parameters": {"lang": {"type": "string"}, "code": {"type": "string"}},
    "cmds": [
        ["docker", "pull", "${lang}"],
        [
            "docker",
            "run",
            "--rm",
            "-v",
            "${temp_dir}:${temp_dir}",
            "${lang}",
            "${lang}",
            "${temp_input}",
        ],
    ],
    "env": env,
}


# Line 160: commands that are created dynamically, as in cmd_runner.
def setup(self, tools):
    self.cmds.append(["sh", "-c", self.args["cmd"]])


CMD_RUNNER = {
    "name": "cmd_runner",
    "parameters": {"cmd": {"type": "string"}},
    "cmds": [],
    "handlers": {"setup": setup},
}

TOOLS = [MAKE, CODE_RUNNER, CMD_RUNNER]
