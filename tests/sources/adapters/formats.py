"""Creating Adapters: the structure of the handlers, the old format and the new one, with empty functions."""

# pyright: basic

# Line 43. ``parse_extra`` is of line 177.
STRUCTURE = {
    # Lifecycle hooks (side effects and initialization)
    "lifecycle": {
        "setup": lambda self: None,  # Called before request is sent
        "on_exit": lambda self, data: None,  # Called after request completes
        "teardown": lambda self: None,  # Called last, after on_exit
    },
    # Request builders (pure transformations)
    "request": {
        "build_parameters": lambda self, params, messages: None,  # Build request parameters
        "build_messages": lambda self, messages: None,  # Format messages for LLM
        "build_tools": lambda self, tools: None,  # Transform tool schemas
        "build_reasoning": lambda self, messages: None,  # Build reasoning parameters
        "build_body": lambda self, data: None,  # Set additional body parameters
    },
    # Response parsers (pure transformations)
    "response": {
        "parse_chat": lambda self, data, tools: None,  # Parse chat response
        "parse_inline": lambda self, data, context: None,  # Parse inline response
        "parse_tokens": lambda self, data: None,  # Extract token count
        "parse_extra": lambda self, data: None,  # Process non-standard fields in the response
    },
    # Tool handlers (grouped functionality)
    "tools": {
        "format_calls": lambda self, tools: None,  # Format tool calls for request
        "format_response": lambda self, tool_call, output: None,  # Format tool response for LLM
    },
}

# Line 669.
OLD = {
    "setup": lambda self: None,
    "form_parameters": lambda self, params, messages: None,
    "form_messages": lambda self, messages: None,
    "chat_output": lambda self, data, tools: None,
    "inline_output": lambda self, data, context: None,
    "on_exit": lambda self, data: None,
    "teardown": lambda self: None,
    "tools": {
        "format_tool_calls": lambda self, tools: None,
        "output_response": lambda self, tool_call, output: None,
    },
}

# Line 686.
NEW = {
    "lifecycle": {
        "setup": lambda self: None,
        "on_exit": lambda self, data: None,
        "teardown": lambda self: None,
    },
    "request": {
        "build_parameters": lambda self, params, messages: None,
        "build_messages": lambda self, messages: None,
    },
    "response": {
        "parse_chat": lambda self, data, tools: None,
        "parse_inline": lambda self, data, context: None,
    },
    "tools": {
        "format_calls": lambda self, tools: None,
        "format_response": lambda self, tool_call, output: None,
    },
}
