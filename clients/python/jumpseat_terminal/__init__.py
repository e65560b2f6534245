"""The terminal front ends of jumpseat: ``jumpseat chat``, and ``jumpseat run`` for scripts and pipes.

Both start a server as a child process and are clients of it, over the same protocol as every other client. They can
do nothing that other clients cannot, and a failure of the screen cannot harm a session.
Only ``chat`` loads ``rich`` and ``prompt_toolkit``.
"""
