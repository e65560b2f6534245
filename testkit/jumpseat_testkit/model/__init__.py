"""The scripted model: its script, its answers, and its HTTP server with the wires of OpenAI and Anthropic."""
