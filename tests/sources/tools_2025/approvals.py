"""Creating Tools: the parts that add approvals to the calculator. The test appends them to its file."""

# pyright: basic

TOOL: dict = {"callback": {"output": {}}}


# Line 573.
def prompt(self, tools):
    return "Perform the calculation `{}`?".format(
        str(self.args["num1"]) + " " + self.args["operation"] + " " + str(self.args["num2"])
    )


# Line 594.
def rejected(self, tools, cmd):
    tools.chat.add_tool_output(self, "The user declined to run the calculator tool")


def cancelled(self, tools, cmd):
    tools.chat.add_tool_output(self, "The user cancelled the execution of the calculator tool")


TOOL["callback"]["output"].update({"prompt": prompt, "rejected": rejected, "cancelled": cancelled})

# Line 550.
TOOL["opts"] = {"requires_approval": True}
