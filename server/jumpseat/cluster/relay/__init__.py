"""Requests of clients on their way to the replicas that own the sessions, and events on their way back.

::

    client                        its replica                                     the owner's replica
    ------                        -----------                                     -------------------
    request  --rpc.Connection-->  ClientRoutes.serve                              ClientRoutes.serve (relayed)
                                    Call: queued until the owner is known           Call
                                    | owner is here:   LocalService.serve           LocalService.serve
                                    | owner elsewhere: RemoteReplicas.serve           handler, response when stored
                                        RemoteReplica --Tunnel, over NATS--> Clients' rpc.Connection
    response <-- Call.later <---------- RemoteReplica <-----------------------------  Call.later
    event    <-- Feed (one source) <--- RemoteReplica <-----------------------------  Feed <-- lease's announcements

- ``clients``: the clients of this replica, its own and relayed ones, each with its ``ClientRoutes``.
- ``routing``: finds the owner of a call's session, claims a session without an owner, and retries moved calls.
- ``local_service`` serves calls here, ``remote_replicas`` at other replicas; ``fan_out`` splits calls about many
  sessions.
- ``client_sessions``: the sessions that a client has opened, which this replica opens again when an owner is gone.
- ``event_feed``: the events of one session for one client, from one owner at a time.
- ``replica_connections``: the tunnels between this replica and others.
"""
