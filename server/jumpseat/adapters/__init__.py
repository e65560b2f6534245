"""Model providers: what speaks to them, and what is known of them.

========================== =========================================================================================
this folder                the interface of an adapter, and what all adapters share
``wires/``                 wire formats: how a request is written and an answer decoded
``providers/``             one module per provider: its addresses, variables, models and settings
``transport/``             HTTP, with ``recording/`` to record and replay it
``declared/``              adapters that users declare as data and functions
``models/``                from the name of a model to a model that can be called
========================== =========================================================================================
"""
