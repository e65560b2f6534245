"""Creating Adapters: the settings of the Copilot adapter, and a nested one."""

# pyright: basic, reportAttributeAccessIssue=false


# Line 570.
def condition(self):
    model = self.schema.model.default
    if callable(model):
        model = model()
    return not model.startswith("o1")


def validate(n):
    return n >= 0 and n <= 2, "Must be between 0 and 2"


ADAPTER = {
    "extends": "openai_compatible",
    "url": "https://api.githubcopilot.com/chat/completions",
    "schema": {
        # Line 543.
        "model": {
            "order": 1,
            "mapping": "parameters",
            "type": "enum",
            "desc": "ID of the model to use. See the model endpoint compatibility table for details on which models"
            " work with the Chat API.",
            "default": "gpt-4o-2024-08-06",
            "choices": [
                {
                    "o3-mini-2025-01-31": {"opts": {"can_reason": True}},
                    "o1-2024-12-17": {"opts": {"can_reason": True}},
                    "o1-mini-2024-09-12": {"opts": {"can_reason": True}},
                },
                "claude-3.5-sonnet",
                "claude-3.7-sonnet",
                "claude-3.7-sonnet-thought",
                "gpt-4o-2024-08-06",
                "gemini-2.0-flash-001",
            ],
        },
        # Line 570.
        "temperature": {
            "order": 2,
            "mapping": "parameters",
            "type": "number",
            "default": 0,
            "condition": condition,
            # This isn't in the Copilot adapter but it's useful to reference!
            "validate": validate,
            "desc": "What sampling temperature to use, between 0 and 2.",
        },
        # Line 611.
        "reasoning.effort": {
            "mapping": "parameters",
            "type": "string",
            "default": "high",
        },
    },
}
