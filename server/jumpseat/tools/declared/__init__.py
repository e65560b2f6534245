"""Tools that are declared rather than programmed: commands as data, functions, and handlers around them.

Import ``declarations`` only: it loads the rest of this folder where there are any declared tools.
"""
