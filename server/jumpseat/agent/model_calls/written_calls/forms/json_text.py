"""Llama 3 and others: a whole answer of JSON, an object with a name and arguments or several."""

import re
from typing import Final

from jumpseat.agent.model_calls.written_calls.reader import Form, OtherFormError, Reader, UnfinishedError, calls_in
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall

# The beginning of a call up to its arguments; it is certain that the rest was to be arguments.
_BEGUN: Final = re.compile(
    r'\[?\s*+\{\s*+(?:"(?:type|id)"\s*+:\s*+"[^"]*+"\s*+,\s*+)*+"(?:name|tool_name|tool|function)"\s*+:\s*+"([\w.:/-]++)"\s*+,'
    r'\s*+"(?:arguments|parameters|args)"\s*+:\s*+["{]'
)
_FIRST: Final = re.compile(r'[\[{\s]*+"((?:[^"\\]|\\.)*+)("?)(?:\s*+(:)?\s*+(?:"([^"\\]*+)("?))?)?')
_KEYS: Final = (
    *("name", "tool_name", "tool", "function", "action", "recipient_name", "type", "id", "arguments", "parameters"),
    *("args", "tool_calls"),
)
_NAMED_BY: Final = ("name", "tool_name", "tool", "recipient_name")


def read(reader: Reader) -> list[WrittenCall]:
    if not reader.follows("{", "["):
        raise OtherFormError
    if not _may_be_call(reader):
        raise OtherFormError
    start = reader.at
    reader.count()
    try:
        value = reader.value()
    except UnfinishedError:
        raise
    except ValueError:
        begun = _BEGUN.match(reader.text, start)
        if begun is None or reader.offered.name_of(begun[1]) is None:
            raise OtherFormError from None
        reader.at = begun.end() - 1
        return [reader.arguments(begun[1])]
    return [*calls_in(value, reader.offered.plain_call)]


def _may_be_call(reader: Reader) -> bool:
    """Return whether the first key and its value, as far as they are known, may be those of a call."""
    first = _FIRST.match(reader.text, reader.at)
    if first is None:
        # Layout alone, or an array of other things.
        return not reader.text[reader.at :].strip("[{ \t\r\n")
    key, closed, _, value, value_closed = first.groups()
    if not closed:
        return not reader.final and any(known.startswith(key) for known in _KEYS)
    if key not in _KEYS:
        return False
    if key not in _NAMED_BY or value is None:
        return True
    if value_closed:
        return reader.offered.name_of(value) is not None
    return reader.offered.may_become_name(value)


FORM: Final = Form(
    begins=("{", "["),
    read=read,
    parser="vLLM: --tool-call-parser llama3_json; SGLang: --tool-call-parser llama3",
    embedded=False,
    certain=False,
)
