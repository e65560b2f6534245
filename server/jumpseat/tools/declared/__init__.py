"""Tools that are declared rather than programmed: commands as data, functions, and handlers around them."""
