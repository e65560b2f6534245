"""Qwen3-Coder and Seed: ``<function=NAME><parameter=KEY>VALUE``; Llama 3 with JSON in ``<function=NAME>``."""

from typing import Final

from jumpseat.agent.model_calls.written_calls.reader import Form, Reader
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall

_OUTER: Final = {"<tool_call>": "</tool_call>", "<seed:tool_call>": "</seed:tool_call>"}


def read(reader: Reader) -> list[WrittenCall]:
    outer = reader.takes(*_OUTER)
    calls: list[WrittenCall] = []
    reader.space().needs("<function=")
    while True:
        calls.append(_function(reader))
        at = reader.at
        if outer and reader.space().takes(_OUTER[outer]):
            break
        if not outer or not reader.takes("<function="):
            reader.at = at
            break
    return calls


def _function(reader: Reader) -> WrittenCall:
    name = reader.name()
    reader.needs(">")
    if reader.space().follows("{"):
        call = reader.arguments(name, "</function>", again="<function=")
        reader.space().takes("</function>")
        return call
    parameters: list[tuple[str, str]] = []
    while not reader.space().takes("</function>"):
        if reader.ended():
            reader.cut_off = True
            return reader.malformed(name, "")
        if reader.follows("</tool_call>"):
            break
        reader.needs("<parameter=")
        key = reader.until(">", again="\n").strip()
        parameters.append((key, without_breaks(reader.until("</parameter>", again="\n<parameter="))))
        if reader.cut_off:
            return reader.malformed(name, "")
    return reader.parameters(name, parameters)


def without_breaks(text: str) -> str:
    """Return a value without the line breaks next to its tags."""
    return text.removeprefix("\r").removeprefix("\n").removesuffix("\n").removesuffix("\r")


FORM: Final = Form(
    begins=("<tool_call>", "<seed:tool_call>", "<function="),
    read=read,
    parser="vLLM: --tool-call-parser qwen3_coder; SGLang: --tool-call-parser qwen3_coder",
)
