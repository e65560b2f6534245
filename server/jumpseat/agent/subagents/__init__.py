"""Sub-agents: agents that work on their own task, with their own conversation, inside a session."""
