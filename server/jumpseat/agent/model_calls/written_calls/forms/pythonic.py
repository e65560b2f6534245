"""Llama 4 and others: calls as in Python, ``[view(path="a"), bash(command="ls")]``."""

from typing import Any, Final

from jumpseat.agent.model_calls.written_calls.literals import CutOffError, read_literal
from jumpseat.agent.model_calls.written_calls.reader import Form, OtherFormError, Reader, UnfinishedError
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall


def read(reader: Reader) -> list[WrittenCall]:
    reader.needs("[")
    calls = [read_function(reader.space())]
    while reader.space().takes(","):
        if reader.space().follows("]"):
            break
        calls.append(read_function(reader))
    reader.needs("]")
    return calls


def read_function(reader: Reader) -> WrittenCall:
    """Read ``NAME(KEY=VALUE, ...)``."""
    reader.count()
    offered = reader.offered.name_of(reader.tool_name().removesuffix(".call"))
    reader.needs("(")
    if offered is None:
        raise OtherFormError
    arguments: dict[str, Any] = {}
    while not reader.space().takes(")"):
        key = reader.name()
        reader.space().needs("=")
        try:
            arguments[key], reader.at = read_literal(reader.text, reader.at)
        except CutOffError:
            if not reader.final:
                raise UnfinishedError from None
            raise OtherFormError from None
        except ValueError:
            raise OtherFormError from None
        if not reader.space().takes(","):
            reader.space().needs(")")
            break
    call = reader.offered.plain_call(offered, arguments)
    if call is None:
        raise OtherFormError
    return call


def read_printed(reader: Reader) -> WrittenCall:
    """Read a call without brackets, possibly in ``print()``."""
    printed = reader.space().takes("print(")
    call = read_function(reader)
    if printed:
        reader.space().needs(")")
    return call


FORM: Final = Form(
    begins=("[",),
    read=read,
    parser="vLLM: --tool-call-parser llama4_pythonic; SGLang: --tool-call-parser pythonic",
    embedded=False,
    certain=False,
)
