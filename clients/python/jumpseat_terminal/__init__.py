"""jumpseat for people at a terminal: ``jumpseat chat`` and, for pipes, ``jumpseat run``.

Both are clients of a server that they start as a child process, over the protocol that every other client speaks.
What a person sees here is thus what any client can have, and a broken screen cannot harm a session.
``rich`` and ``prompt_toolkit`` are loaded by ``chat`` alone.
"""
