"""Confine child processes: what a command may write, read and reach. ``docs/sandbox.md`` describes the rules.

Other folders use ``session.py``, which runs each command with the mechanism that works on this system
(``mechanisms.py``), confined to a :class:`~jumpseat.sandbox.view.View`. ``surroundings.py`` builds the view from
the settings (``settings.py``), from lists of well-known paths (``places.py``), and from the files in the session's
folders that configure programs (``configuration_files.py``). ``session_network.py`` decides which hosts commands
reach.
"""
