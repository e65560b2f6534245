"""Mistral: ``[TOOL_CALLS]``, then JSON, or in newer models a name and its arguments."""

from typing import Final

from jumpseat.agent.model_calls.written_calls.reader import Form, Reader
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall

_BEGIN: Final = "[TOOL_CALLS]"


def read(reader: Reader) -> list[WrittenCall]:
    reader.needs(_BEGIN)
    if reader.space().follows("{", "["):
        return reader.objects(_BEGIN, again=_BEGIN)
    name = reader.name()
    if reader.space().takes("[CALL_ID]"):
        reader.space().name()
    reader.space().takes("[ARGS]")
    return [reader.space().arguments(name, _BEGIN, again=_BEGIN)]


FORM: Final = Form(
    begins=(_BEGIN,),
    read=read,
    parser="vLLM: --tool-call-parser mistral; SGLang: --tool-call-parser mistral",
)
