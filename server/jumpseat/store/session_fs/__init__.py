"""Sessions that are stored in the virtual file system of a client, and leave nothing on the disk."""
