"""What becomes of the records of :mod:`jumpseat.agent.observation`: log entries, metrics and traces."""
