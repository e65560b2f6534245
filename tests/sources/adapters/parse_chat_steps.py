"""Creating Adapters: ``parse_chat`` as the guide extends it, step by step."""

# pyright: basic

import json

from jumpseat.adapters import utilities as utils


# Line 272.
def cleaned(self, data):
    data = utils.clean_streamed_data(data)


# Line 290.
def decoded(self, data):
    data = utils.clean_streamed_data(data)
    try:
        ok, chunk = True, json.loads(data)
    except ValueError as error:
        ok, chunk = False, error


# Line 305; "---" in the document stands for the step before.
def with_delta(self, data):
    chunk = json.loads(utils.clean_streamed_data(data))
    delta = chunk["choices"][0]["delta"]


# Line 318.
def with_output(self, data):
    output = {}
    chunk = json.loads(utils.clean_streamed_data(data))
    delta = chunk["choices"][0]["delta"]

    if delta.get("content") is not None:
        output["content"] = delta["content"]
        output["role"] = delta.get("role") or None


# Line 337.
def returned(self, data):
    output = {}
    chunk = json.loads(utils.clean_streamed_data(data))
    delta = chunk["choices"][0]["delta"]

    if delta.get("content") is not None:
        output["content"] = delta["content"]
        output["role"] = delta.get("role") or None

    return {
        "status": "success",
        "output": output,
    }


INCOMPLETE = (cleaned, decoded, with_delta, with_output)
COMPLETE = returned
