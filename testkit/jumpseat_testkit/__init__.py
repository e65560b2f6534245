"""Test agents and their clients: play scripts, be a peer with faults, serve a scripted model.

====================================== ======================================================================
``jumpseat_testkit.play_file``         ``play_file`` plays a script, a recorded conversation or a client's log
``jumpseat_testkit.target``            ``running_server`` starts a server and talks to it
``jumpseat_testkit.model.server``      ``ModelServer`` serves a scripted model on loopback
``jumpseat_testkit.patterns``          ``differences`` compares a JSON value with a pattern
``jumpseat_testkit.faults.report``     ``try_client`` and ``try_script`` try faulty servers
``jumpseat_testkit.faults.agents``     ``try_agent`` tries faulty clients
``jumpseat_testkit.pytest_plugin``     the fixtures for pytest
====================================== ======================================================================

Nothing is imported here: jumpseat loads the parts that a command needs.
"""
