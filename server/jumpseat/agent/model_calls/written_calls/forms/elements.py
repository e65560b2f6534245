"""A call as an element with the name of its tool: ``<bash><command>ls</command></bash>``."""

from typing import Final

from jumpseat.agent.model_calls.written_calls.forms.qwen_coder import without_breaks
from jumpseat.agent.model_calls.written_calls.reader import Form, OtherFormError, Reader
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall
from jumpseat.agent.model_calls.xml_tools.schemas import as_schema


def read(reader: Reader) -> list[WrittenCall]:
    reader.needs("<")
    name = reader.name()
    reader.needs(">")
    if name not in reader.offered.specs:
        raise OtherFormError
    schema = reader.offered.schema(name)
    properties = as_schema(schema.get("properties"))
    parameters: list[tuple[str, str]] = []
    while not reader.space().takes(f"</{name}>"):
        reader.needs("<")
        key = reader.name()
        reader.needs(">")
        if key not in properties:
            raise OtherFormError
        parameters.append((key, without_breaks(reader.until(f"</{key}>", again=f"<{name}>"))))
        if reader.cut_off:
            raise OtherFormError
    if not {*(schema.get("required") or ())} <= {key for key, _ in parameters}:
        raise OtherFormError
    return [reader.parameters(name, parameters)]


FORM: Final = Form(begins=("<%s>",), read=read, parser="", certain=False)
