"""What the web tools stand on: pages fetched directly or by a service, and searches by a service."""
