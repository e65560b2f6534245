"""Confine child processes: what a command may write, read and reach. ``docs/sandbox.md`` describes the rules.

``session.py`` is what other folders use. It asks ``mechanisms.py`` which mechanism works here, and hands it a
:class:`~jumpseat.sandbox.view.View`. ``surroundings.py`` builds that from the settings (``settings.py``), from
lists of well-known paths (``places.py``), and from the files in the session's folders that configure programs
(``configuration_files.py``). ``session_network.py`` decides which hosts commands reach.
"""
