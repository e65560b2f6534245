"""Sub-agents: agents that work on a task of their own, with a conversation of their own, inside a session."""
