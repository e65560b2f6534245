"""DeepSeek V3 and R1 (``function``, the name, and JSON in a code block), and V3.1 (the name and JSON)."""

from typing import Final

from jumpseat.agent.model_calls.written_calls.reader import Form, OtherFormError, Reader
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall

_BEGIN: Final = ("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<|tool▁calls▁begin|>")
_CALL: Final = ("<｜tool▁call▁begin｜>", "<|tool▁call▁begin|>")
_SEPARATOR: Final = ("<｜tool▁sep｜>", "<|tool▁sep|>")
_CALL_END: Final = ("<｜tool▁call▁end｜>", "<|tool▁call▁end|>")
_END: Final = ("<｜tool▁calls▁end｜>", "<|tool▁calls▁end|>")


def read(reader: Reader) -> list[WrittenCall]:
    if not reader.follows(*_CALL):
        reader.needs(*_BEGIN)
    calls: list[WrittenCall] = []
    while reader.space().takes(*_CALL):
        name = reader.space().name()
        reader.space().needs(*_SEPARATOR)
        if name == "function":
            name = reader.space().name()
        fenced = reader.space().takes("```json", "```")
        calls.append(reader.space().arguments(name, *(("```",) if fenced else ()), *_CALL_END, again=_CALL[0]))
        if fenced:
            reader.space().takes("```")
        reader.space().takes(*_CALL_END)
        if reader.cut_off:
            break
    if not calls:
        raise OtherFormError
    reader.space().takes(*_END)
    return calls


FORM: Final = Form(
    begins=(*_BEGIN, *_CALL),
    read=read,
    parser="vLLM: --tool-call-parser deepseek_v3, deepseek_v31; SGLang: --tool-call-parser deepseekv3, deepseekv31",
)
