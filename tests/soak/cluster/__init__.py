"""Kill replicas and servers of NATS under busy sessions, and check the histories of all clients."""
