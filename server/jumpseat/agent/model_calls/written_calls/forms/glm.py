"""GLM 4.5: ``<tool_call>NAME``, then ``<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>``; Hunyuan with JSON."""

from typing import Final

from jumpseat.agent.model_calls.written_calls.reader import Form, Reader
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall

_BEGIN: Final = "<tool_call>"
_END: Final = "</tool_call>"


def read(reader: Reader) -> list[WrittenCall]:
    reader.needs(_BEGIN)
    name = reader.space().name()
    reader.space().takes("<tool_sep>")
    if reader.space().takes("```json", "```"):
        call = reader.space().arguments(name, "```", again=_BEGIN)
        reader.space().takes("```")
        reader.space().takes(_END)
        return [call]
    parameters: list[tuple[str, str]] = []
    while not reader.space().takes(_END):
        if reader.ended():
            reader.cut_off = True
            return [reader.malformed(name, "")]
        reader.needs("<arg_key>")
        key = reader.until("</arg_key>", again="\n").strip()
        reader.space().needs("<arg_value>")
        value = reader.until("</arg_value>", again="\n<arg_key>")
        if reader.cut_off:
            return [reader.malformed(name, "")]
        parameters.append((key, value))
    return [reader.parameters(name, parameters)]


FORM: Final = Form(
    begins=(_BEGIN,),
    read=read,
    parser="vLLM: --tool-call-parser glm45; SGLang: --tool-call-parser glm45",
)
