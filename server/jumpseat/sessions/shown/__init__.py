"""Texts about a session that all doors show to people: titles of tool calls, facts of permission questions."""
