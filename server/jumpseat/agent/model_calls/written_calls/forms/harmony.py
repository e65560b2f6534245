"""gpt-oss: remains of its harmony format, ``<|channel|>commentary to=functions.NAME<|message|>`` and JSON."""

import re
from typing import Final

from jumpseat.agent.model_calls.written_calls.reader import Form, OtherFormError, Reader
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall

_START: Final = ("<|start|>assistant", "assistant")
_CHANNEL: Final = ("<|channel|>commentary", "<|channel|>analysis", "commentary", "analysis")
_TO: Final = ("to=functions.", "to=tool.", "to=")
_CONTENT: Final = ("json", "code")
_END: Final = ("<|call|>", "<|end|>", "<|return|>")
_NAME: Final = re.compile(r"[\w-]++")


def read(reader: Reader) -> list[WrittenCall]:
    started = reader.takes(*_START)
    # The recipient comes before or after the channel.
    name = _recipient(reader.space())
    channel = reader.space().takes(*_CHANNEL)
    if not name:
        name = _recipient(reader.space())
    if not name or not (started or channel):
        raise OtherFormError
    reader.space().takes("<|channel|>commentary", "<|channel|>analysis")
    reader.space().takes("<|constrain|>")
    reader.space().takes(*_CONTENT)
    reader.space().takes("<|message|>")
    call = reader.space().arguments(name, *_END, again="<|start|>")
    reader.space().takes(*_END)
    return [call]


def _recipient(reader: Reader) -> str:
    if not reader.takes(*_TO):
        return ""
    found = _NAME.match(reader.text, reader.at)
    if found is None:
        reader.ended()
        raise OtherFormError
    reader.at = found.end()
    reader.ended()
    return found[0]


FORM: Final = Form(
    begins=(
        *("<|start|>assistant", "<|channel|>commentary", "<|channel|>analysis to=", "commentary to=functions."),
        *("assistantcommentary to=functions.", "assistantanalysis to=functions.", "analysis to=functions."),
    ),
    read=read,
    parser="vLLM: --tool-call-parser openai; SGLang: --tool-call-parser gpt-oss",
)
