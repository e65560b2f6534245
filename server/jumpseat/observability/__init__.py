"""Convert the records of :mod:`jumpseat.agent.observation` to log entries, metrics and traces."""
