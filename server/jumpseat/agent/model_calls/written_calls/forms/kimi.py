"""Kimi K2: a section of calls with ids such as ``functions.bash:0``, and JSON."""

from typing import Final

from jumpseat.agent.model_calls.written_calls.reader import Form, OtherFormError, Reader
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall

_BEGIN: Final = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>")
_END: Final = ("<|tool_calls_section_end|>", "<|tool_call_section_end|>")
_CALL: Final = "<|tool_call_begin|>"
_CALL_END: Final = "<|tool_call_end|>"


def read(reader: Reader) -> list[WrittenCall]:
    reader.takes(*_BEGIN)
    calls: list[WrittenCall] = []
    while reader.space().takes(_CALL):
        name = reader.space().name()
        reader.space().needs("<|tool_call_argument_begin|>")
        calls.append(reader.space().arguments(name, _CALL_END, again=_CALL))
        reader.space().takes(_CALL_END)
        if reader.cut_off:
            break
    if not calls:
        raise OtherFormError
    reader.space().takes(*_END)
    return calls


FORM: Final = Form(
    begins=(*_BEGIN, _CALL),
    read=read,
    parser="vLLM: --tool-call-parser kimi_k2; SGLang: --tool-call-parser kimi_k2",
)
