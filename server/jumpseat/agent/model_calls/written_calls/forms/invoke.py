"""MiniMax M2, DeepSeek V3.2 and Claude: ``<invoke name="NAME"><parameter name="KEY">VALUE</parameter>``."""

import re
from typing import Final

from jumpseat.agent.model_calls.written_calls.forms.qwen_coder import without_breaks
from jumpseat.agent.model_calls.written_calls.reader import Form, Reader
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall

_PREFIXES: Final = ("", "antml:", "minimax:", "｜DSML｜")
_OUTER: Final = tuple(
    f"<{prefix}{tag}>" for prefix in _PREFIXES for tag in ("function_calls", "tool_calls", "tool_call")
)
_INVOKE: Final = tuple(f"<{prefix}invoke name=" for prefix in _PREFIXES)
_INVOKE_END: Final = tuple(f"</{prefix}invoke>" for prefix in _PREFIXES)
_PARAMETER: Final = tuple(f"<{prefix}parameter name=" for prefix in _PREFIXES)
_NAME: Final = re.compile(r"""["']?([\w.-]++)["']?""")


def read(reader: Reader) -> list[WrittenCall]:
    outer = reader.takes(*_OUTER)
    reader.space().needs(*_INVOKE)
    calls: list[WrittenCall] = []
    while True:
        calls.append(_invoke(reader))
        at = reader.at
        if outer and reader.space().takes(f"</{outer[1:]}"):
            return calls
        if reader.cut_off or not outer or not reader.takes(*_INVOKE):
            reader.at = at
            return calls


def _invoke(reader: Reader) -> WrittenCall:
    name = _attribute(reader)
    parameters: list[tuple[str, str]] = []
    while not reader.space().takes(*_INVOKE_END):
        if reader.ended():
            reader.cut_off = True
            return reader.malformed(name, "")
        prefix = reader.needs(*_PARAMETER).removeprefix("<").removesuffix("parameter name=")
        key = _attribute(reader)
        value = reader.until(f"</{prefix}parameter>", again=f"\n<{prefix}parameter name=")
        if reader.cut_off:
            return reader.malformed(name, "")
        parameters.append((key, without_breaks(value)))
    return reader.parameters(name, parameters)


def _attribute(reader: Reader) -> str:
    """Read the value of the attribute and the rest of the tag."""
    named = _NAME.match(tag := reader.until(">", again="\n"))
    return named[1] if named is not None else tag


FORM: Final = Form(
    begins=(*_OUTER, *_INVOKE),
    read=read,
    parser="vLLM: --tool-call-parser minimax_m2; SGLang: --tool-call-parser minimax-m2",
)
