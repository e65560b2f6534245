"""Sessions of many replicas in NATS JetStream. Nothing imports this package without ``[store] url``."""
