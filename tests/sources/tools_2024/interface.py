"""codecompanion-tools.txt: the interface, each of its fields."""

# pyright: basic


# Line 65, and line 217: the commands are set dynamically, as in cmd_runner.
def setup(self):
    for command in self.tool.request["action"]["commands"]:
        self.tool.cmds.append(command.split(" "))


def approved(self, cmd):
    return cmd[0] != "rm"


def on_exit(self):
    self.chat.notify(f"{self.tool.name} is done")


def rejected(self, cmd):
    self.chat.add_buf_message({"role": "user", "content": f"I chose not to run {cmd!r}"})


def error(self, cmd, error):
    self.chat.add_buf_message({"role": "user", "content": f"There was an error from {cmd!r}: {error!r}"})


def success(self, cmd, output):
    self.chat.add_buf_message({"role": "user", "content": f"The output from {cmd!r}: {output!r}"})


# Line 50.
TOOL = {
    "name": "cmd_runner",
    "cmds": [],
    "schema": {"name": "cmd_runner", "parameters": {"action": {"commands": ["ls -l"]}}},
    "system_prompt": lambda schema: f"Use {schema['name']}.",
    "opts": {"user_approval": True},
    "handlers": {"setup": setup, "approved": approved, "on_exit": on_exit},
    "output": {"rejected": rejected, "error": error, "success": success},
}
