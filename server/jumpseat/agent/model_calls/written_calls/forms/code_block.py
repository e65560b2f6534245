"""A code block that contains calls alone: JSON, calls as in Python (Gemma), or another form of calls."""

from typing import Final

from jumpseat.agent.model_calls.written_calls.forms import hermes, json_text, pythonic
from jumpseat.agent.model_calls.written_calls.reader import Form, OtherFormError, Reader
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall

_FENCE: Final = "```"
_LABELS: Final = ("", "json", "xml", "tool_call", "tool_calls", "tool_code", "tool")


def read(reader: Reader) -> list[WrittenCall]:
    reader.needs(_FENCE)
    label = _label(reader)
    start = reader.space().at
    for form in (hermes, json_text, pythonic):
        reader.at = start
        try:
            calls = form.read(reader)
            _close(reader)
        except OtherFormError:
            continue
        return calls
    if label != "tool_code":
        raise OtherFormError
    reader.at = start
    calls = [pythonic.read_printed(reader)]
    while not reader.space().follows(_FENCE):
        calls.append(pythonic.read_printed(reader))
    _close(reader)
    return calls


def _label(reader: Reader) -> str:
    label = reader.text[reader.at : reader.at + 16].partition("\n")
    if not label[1]:
        if len(label[0]) < 16 and any(known.startswith(label[0].strip().lower()) for known in _LABELS):
            reader.at = len(reader.text)
            reader.ended()
        raise OtherFormError
    if label[0].strip().lower() not in _LABELS:
        raise OtherFormError
    reader.at += len(label[0])
    return label[0].strip().lower()


def _close(reader: Reader) -> None:
    """Skip the end of the block, which may be missing at the end of the answer."""
    if not reader.space().takes(_FENCE) and not reader.ended():
        raise OtherFormError


FORM: Final = Form(
    begins=(_FENCE,),
    read=read,
    parser="vLLM: --tool-call-parser llama3_json; SGLang: --tool-call-parser llama3",
    certain=False,
)
