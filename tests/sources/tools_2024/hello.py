"""codecompanion-tools.txt: function-based tools."""

# pyright: basic

# Line 113.
TOOL = {
    "name": "hello",
    "cmds": [
        lambda self, input: "Hello, World",
        # Ensure the final function returns the status and the output
        lambda self, input: print(input),  # prints "Hello, World"
    ],
}
