"""Shared by declared adapters and declared tools: resolving ``env`` values and reading declaration files."""
