"""Creating Tools: the calculator, put together."""

# pyright: basic


def tonumber(value):
    try:
        return float(value) if "." in str(value) else int(value)
    except (TypeError, ValueError):
        return None


# Line 172.
def calculate(self, args, input):
    # Get the numbers and operation requested by the LLM
    num1 = tonumber(args.get("num1"))
    num2 = tonumber(args.get("num2"))
    operation = args.get("operation")

    # Validate input
    if num1 is None:
        return {"status": "error", "data": "First number is missing or invalid"}

    if num2 is None:
        return {"status": "error", "data": "Second number is missing or invalid"}

    if not operation:
        return {"status": "error", "data": "Operation is missing"}

    # Perform the calculation
    if operation == "add":
        result = num1 + num2
    elif operation == "subtract":
        result = num1 - num2
    elif operation == "multiply":
        result = num1 * num2
    elif operation == "divide":
        if num2 == 0:
            # Line 242.
            return {"status": "error", "data": "Cannot divide by zero"}
        result = num1 / num2
    else:
        return {"status": "error", "data": "Invalid operation: must be add, subtract, multiply, or divide"}

    # Line 248.
    return {"status": "success", "data": result}


# Line 330.
def setup(self, tools):
    return tools.notify("setup function called", "INFO")


def on_exit(self, tools):
    return tools.notify("on_exit function called", "INFO")


# Line 359.
def success(self, tools, cmd, stdout):
    chat = tools.chat
    return chat.add_tool_output(self, str(stdout[0]))


def error(self, tools, cmd, stderr):
    return tools.notify("An error occurred", "ERROR")


# Line 398.
TOOL = {
    "description": "Perform calculations",
    "callback": {
        "name": "calculator",
        "cmds": [calculate],
        # Line 304.
        "system_prompt": """## Calculator Tool (`calculator`)

## CONTEXT
- You have access to a calculator tool running within CodeCompanion, in Neovim.
- You can use it to add, subtract, multiply or divide two numbers.

### OBJECTIVE
- Do a mathematical operation on two numbers when the user asks

### RESPONSE
- Always use the structure above for consistency.
""",
        # Line 260.
        "schema": {
            "type": "function",
            "function": {
                "name": "calculator",
                "description": "Perform simple mathematical operations on a user's machine",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "num1": {
                            "type": "integer",
                            "description": "The first number in the calculation",
                        },
                        "num2": {
                            "type": "integer",
                            "description": "The second number in the calculation",
                        },
                        "operation": {
                            "type": "string",
                            "enum": ["add", "subtract", "multiply", "divide"],
                            "description": "The mathematical operation to perform on the two numbers",
                        },
                    },
                    "required": ["num1", "num2", "operation"],
                    "additionalProperties": False,
                },
                "strict": True,
            },
        },
        "handlers": {"setup": setup, "on_exit": on_exit},
        "output": {"success": success, "error": error},
    },
}
