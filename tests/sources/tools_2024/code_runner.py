"""codecompanion-tools.txt: the code runner, put together."""

# pyright: basic

import re
import tempfile

from jumpseat.tools.declared.xml import to_xml

# Line 85.
cmds = [
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
]

# Line 144.
schema = {
    "name": "code_runner",
    "parameters": {
        "inputs": {
            "lang": "python",
            "code": "print('Hello World')",
        },
    },
}


# Line 165.
def env(schema):
    temp_input = tempfile.mktemp()
    temp_dir = re.match(r"(.*/)", temp_input).group(1)  # type: ignore
    lang = schema["parameters"]["inputs"]["lang"]
    code = schema["parameters"]["inputs"]["code"]

    return {
        "code": code,
        "lang": lang,
        "temp_dir": temp_dir,
        "temp_input": temp_input,
    }


# Line 193.
def system_prompt(schema):
    return """### You have gained access to a new tool!

Name: Code Runner
Purpose: The tool enables you to execute any code that you've created
Why: This enables yourself and the user to validate that the code you've created is working as intended
Usage: To use this tool, you need to return an XML markdown code block (with backticks). Consider the following example which prints 'Hello World' in Python:

```xml
{}
```

You must:
- Ensure the code you're executing will be able to parsed as valid XML
- Ensure the code you're executing is safe
- Ensure the code you're executing is concise
- Ensure the code you're executing is relevant to the conversation
- Ensure the code you're executing is not malicious""".format(  # noqa: E501
        to_xml(schema, "tool")
    )


TOOL = {"name": "code_runner", "cmds": cmds, "schema": schema, "env": env, "system_prompt": system_prompt}
