"""A peer with faults: a small server that does one thing wrong, for those who write clients and scripts."""
