"""Sessions as people read them: prompts, answers, tool calls with their approvals, and what they used.

Built from the events of a session, and rendered as Markdown or as an HTML page. Pure: no I/O.
"""
