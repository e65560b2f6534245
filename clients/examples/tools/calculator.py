def calculate(self, args):
    a, operation, b = args["num1"], args["operation"], args["num2"]
    if operation == "divide" and b == 0:
        return {"status": "error", "data": "Cannot divide by zero"}
    results = {"add": a + b, "subtract": a - b, "multiply": a * b, "divide": a / b if b else None}
    return {"status": "success", "data": results[operation]}


def prompt(self):
    return f"Perform the calculation `{self.args['num1']} {self.args['operation']} {self.args['num2']}`?"


def success(self, tools, stdout):
    tools.chat.add_tool_output(self, f"The result is {stdout[-1]}")


TOOL = {
    "description": "Perform simple mathematical operations",
    "parameters": {
        "num1": {"type": "integer", "description": "The first number"},
        "num2": {"type": "integer", "description": "The second number"},
        "operation": {"enum": ["add", "subtract", "multiply", "divide"]},
    },
    "cmds": [calculate],
    "output": {
        "success": success,
        "prompt": prompt,
        "rejected": "The user declined to run the calculator tool",
        "cancelled": "The user cancelled the execution of the calculator tool",
    },
}
