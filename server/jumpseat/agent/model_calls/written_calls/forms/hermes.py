"""Hermes, Qwen 2.5 and 3, Granite, Nemotron, Phi 4 and others: JSON in ``<tool_call>``, or in a similar wrapper."""

from typing import Final

from jumpseat.agent.model_calls.written_calls.reader import Form, OtherFormError, Reader
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall

_ENDS: Final = {
    "<tool_call>": "</tool_call>",
    "<tool_calls>": "</tool_calls>",
    "<function_call>": "</function_call>",
    "<function_calls>": "</function_calls>",
    "<functioncall>": "</functioncall>",
    "<tools>": "</tools>",
    "<TOOLCALL>": "</TOOLCALL>",
    "<|tool_call|>": "<|/tool_call|>",
    "<|tool_call>": "<tool_call|>",
    "<|action_start|><|plugin|>": "<|action_end|>",
    "functools": "",
}
_INNER: Final = ("<tool_call>", "</tool_call>", "```json", "```")


def read(reader: Reader) -> list[WrittenCall]:
    opening = reader.needs(*_ENDS)
    end = _ENDS[opening]
    calls: list[WrittenCall] = []
    while True:
        reader.between()
        if (end and reader.takes(end)) or (calls and not end):
            break
        if reader.ended():
            reader.cut_off = True
            break
        if reader.follows("{", "["):
            calls += reader.objects(*filter(None, (end, "</tool_call>")), again=opening)
        elif opening != "<tool_call>" and calls and reader.follows(opening):
            break
        elif not reader.takes(*_INNER):
            if calls and opening in ("<tool_call>", "<|tool_call|>"):
                # Without its end.
                break
            raise OtherFormError
    if not calls:
        raise OtherFormError
    return calls


FORM: Final = Form(
    begins=tuple(_ENDS),
    read=read,
    parser="vLLM: --tool-call-parser hermes; SGLang: --tool-call-parser qwen25",
)
