"""Sessions that other replicas of a cluster own, for the clients of this one.

The owner of a session translates its events, carries out all actions and keeps its states. Each other replica has
the same channels, which follow those of the owner action by action, with numbers of their own. Requests find the
owner, and sessions move, by :mod:`jumpseat.cluster.relay`: for it, the door of a replica is a client like others,
whose methods are those of ``owner``.
"""
