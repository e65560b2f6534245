"""Runs with real weights, which ``make test`` does not have."""
