"""Setting jumpseat up from inside: providers, keys, a trial of a model, and the configuration file."""
