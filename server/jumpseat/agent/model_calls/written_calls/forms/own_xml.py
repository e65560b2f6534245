"""Calls in our own XML (see ``xml_tools/``), from a model that saw it in the conversation."""

from typing import Final

from jumpseat.agent.model_calls.written_calls.reader import Form, OtherFormError, Reader, UnfinishedError
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall, read_calls
from jumpseat.agent.model_calls.xml_tools.reader import BlockReader

_BEGIN: Final = ("<tools>", "<tool name=")


def read(reader: Reader) -> list[WrittenCall]:
    if not reader.follows(*_BEGIN):
        raise OtherFormError
    at = reader.at
    if reader.takes("<tools>"):
        reader.space().needs("<tool name=", "<tool>")
    block_reader = BlockReader(reader.offered.schemas())
    reader.at = block_reader.read(reader.text, at, final=reader.final)
    if not block_reader.done and not reader.final:
        raise UnfinishedError
    block = block_reader.block()
    calls = [call for tool in block.tools for call in read_calls(tool)]
    if block.problem is not None:
        calls.append(WrittenCall(block.name or "", None, block.problem))
    if not calls or any(reader.offered.name_of(call.name) is None for call in calls):
        raise OtherFormError
    return calls


FORM: Final = Form(
    begins=_BEGIN,
    read=read,
    parser="",
    embedded=False,
    certain=False,
)
