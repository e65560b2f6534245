"""Backends of the web tools: pages are fetched directly or by a service, searches are made by a service."""
