"""Adapters that are declared rather than programmed: data, and handlers where data does not do."""
