"""Pass the results on stdin, by method, to the official Python SDK as the responses to its calls.

Print a JSON object with the outcome per method of the SDK: null if it decoded the result, otherwise the error. All
methods of the generated namespaces are called, with empty params. Runs in the virtual environment of one SDK
version and imports no code of jumpseat.
"""
# pyright: basic, reportMissingImports=false
# The SDK lives in a virtual environment of its own, where the type checker does not look.

import asyncio
import inspect
import json
import sys
import traceback
from importlib.metadata import version

from copilot.generated import rpc


class NotAskedAboutError(Exception):
    pass


class Client:
    """A client that returns the results from stdin and records the requested methods."""

    def __init__(self, results):
        self.results = results
        self.method = None

    async def request(self, method, params=None, **_options):
        self.method = method
        if method not in self.results:
            raise NotAskedAboutError
        return self.results[method]


class Params:
    def to_dict(self):
        return {}


def methods(namespace, seen):
    seen.add(id(namespace))
    for name, member in inspect.getmembers(namespace):
        if inspect.iscoroutinefunction(member):
            yield member
        elif type(member).__module__ == rpc.__name__ and not name.startswith("__") and id(member) not in seen:
            yield from methods(member, seen)


async def main():
    client = Client(json.load(sys.stdin))
    read = {}
    roots = [
        cls(client, "session") if "Session" in name else cls(client)
        for name in ("ServerRpc", "_InternalServerRpc", "SessionRpc", "_InternalSessionRpc")
        if (cls := getattr(rpc, name, None))
    ]
    for root in roots:
        for method in methods(root, set()):
            wanted = [
                parameter
                for parameter in inspect.signature(method).parameters.values()
                if parameter.default is inspect.Parameter.empty
                and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            ]
            try:
                await method(*(Params() for _ in wanted))
            except NotAskedAboutError:
                continue
            except Exception:
                read[client.method] = traceback.format_exc(limit=-3)
            else:
                read[client.method] = None
    print(json.dumps({"sdk": version("github-copilot-sdk"), "read": read}))


asyncio.run(main())
