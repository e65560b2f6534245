"""Llama 3 and 4: after a token, JSON, a call as in Python (``search.call(query="a")``), or a list of those."""

from typing import Final

from jumpseat.agent.model_calls.written_calls.forms import pythonic
from jumpseat.agent.model_calls.written_calls.reader import Form, Reader
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall

_BEGIN: Final = "<|python_tag|>"
# Llama 4, and LFM.
_LISTS: Final = {"<|python_start|>": "<|python_end|>", "<|tool_call_start|>": "<|tool_call_end|>"}


def read(reader: Reader) -> list[WrittenCall]:
    if listed := reader.takes(*_LISTS):
        found = pythonic.read(reader.space())
        reader.space().takes(_LISTS[listed])
        return found
    reader.needs(_BEGIN)
    calls: list[WrittenCall] = []
    while True:
        if reader.space().follows("{", "["):
            calls += reader.objects(_BEGIN, "<|eom_id|>", "<|eot_id|>", again=_BEGIN)
        else:
            calls.append(pythonic.read_function(reader))
        at = reader.at
        reader.space()
        if reader.at < len(reader.text) and not reader.takes(";"):
            reader.at = at
            return calls
        if not reader.space().follows("{", "["):
            return calls


FORM: Final = Form(
    begins=(_BEGIN, *_LISTS),
    read=read,
    parser="vLLM: --tool-call-parser llama3_json; SGLang: --tool-call-parser llama3",
)
