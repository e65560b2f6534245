"""The slash commands of ``chat``: one module per subject, and the table of all."""
