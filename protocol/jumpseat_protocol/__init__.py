"""Wire types of the Copilot SDK protocol. Imports pydantic and nothing else of this project."""
