"""The Agent Host Protocol (AHP) of VS Code's Agents window and others, on the same sessions as the other protocols.

:mod:`jumpseat.ahp.states` has the reducers, :mod:`jumpseat.ahp.translation` converts between events and actions,
both pure; :mod:`jumpseat.ahp.hub` has the channels and their subscribers. Sessions know none of it.
"""
