"""The code samples of the documents that asked for this system, translated literally, and run."""
