"""The table of targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jumpseat.agent.permissions.rules import KINDS
from tests.fuzz import byte_streams, methods, shell, texts, times
from tests.fuzz.target import Target, pure

_JSON: Final = (
    "{", "}", "[", "]", '"', ":", ",", "null", "true", "1e999", "-0", "123456789012345678901234567890", r"\ud83d",
    r"\ude00", r"\\", r"\u0000", "\n", '"": ', '{"a":', "[[", "é",
)  # fmt: skip
_XML: Final = (
    "<tools>", "</tools>", "<tool name=\"editor\">", "<tool>", "</tool>", "<name>run</name>", "<tool name='run'",
    "<code>", "</code>", "<command>", "</command>", "<line>7</line>", "<force>true</force>", "<tags>", "</tags>",
    "<item>a</item>", "<edits>", "</edits>", "<old>", "</old>", "<at>1</at>", "<any>", "</any>", "<parameters>",
    "</parameters>", "<action type=\"add\">", "</action>", "<parameter name=\"code\">", "</parameter>", "<![CDATA[",
    "]]>", "<!--", "-->", "<?xml?>", "```xml\n", "```", "\n```\n", "~~~", "`", "\n", " ", "/>", ">", "<", "&lt;",
    "&#65;", "&#x110000;", "{\"a\": 1}", "[1]", "<tool_result>", "text",
)  # fmt: skip
_TOML: Final = (
    "[adapters.a]\n", "[models.x]\n", "[permissions]\n", "[sandbox]\n", "[retry]\n", "[tools.x]\n", "[[a]]\n",
    "[services.jina]\n", "[mcp.servers.f]\n", "[permissions.judge]\n", "[limits]\n", "[compaction]\n", "a.b = 1\n",
    'type = "openai"\n', "models = [", "{id = ", 'allow = ["', '"]\n', "mode = ", '"auto"', "attempts = ", "1\n",
    "inf", "nan", "-1", "1e400", "[", "]", "{", "}", "=", "\n", '"', "'''", '"""', "#", ".", "\\", "\\u0000",
    "true", "1979-05-27", "99:99:99", "0x1", "~/a", "shell(ls)", "cmds = [[", "default_model = ",
)  # fmt: skip

TARGETS: Final[Mapping[str, Target]] = {
    "framing": Target(
        pure(byte_streams.check_framing),
        ("Content-Length: ", "content-length:", "Content-Type: x", "1", "7", "99", "\r\n", "\r\n\r\n", "{}", "\r",
        "\n",
         "GET / HTTP/1.1", "X-Content-Length: 3", "Content-Length", "-", " ", "\t", "{\"a\":1}"),
    ),
    "lines": Target(pure(byte_streams.check_lines), ("\n", "\r\n", " ", "{}", "x" * 63, "\r", "\t", "\u2028")),
    "json_rpc": Target(
        byte_streams.open_json_rpc,
        (*_JSON, '{"jsonrpc":"2.0",', '"id":1,', '"id":"x",', '"id":null,', '"method":"ping"', '"method":"fail"',
         '"method":"later"', '"method":"$/cancelRequest","params":{"id":1}', '"params":[1]', '"params":{}',
         '"result":1', '"error":{"message":1}', '"id":true,', '"id":1.5,'),
        short=100,
    ),
    "json": Target(pure(byte_streams.check_json), (*_JSON, "\\", "\\u", "d8", "dc00")),
    "sse": Target(
        pure(byte_streams.check_sse),
        ("data: ", "data:", "event: ", "event:x", "\n\n", "\r\n", "\r", "\n", ": comment", "{}", "[DONE]", "id: 1",
         '{"error": 1}', "[", "\ufeff", "é", "data"),
        byte_streams.answer_seeds,
    ),
    "json_lines": Target(pure(byte_streams.check_json_lines), ("\n", "\r\n", "data:", "{}", " ", "\ufeff", "\x85")),
    "answers": Target(
        pure(byte_streams.check_answers),
        (*_JSON, '"choices":[{', '"delta":{', '"content":', '"tool_calls":[{', '"index":', '"function":{',
        '"usage":{',
         '"prompt_tokens":', '"finish_reason":"stop"', '"type":"message_start"', '"type":"content_block_delta"',
         '"message":{', '"candidates":[{', '"parts":[{', '"text":', '"type":"response.completed"', '"response":{',
         '"output":[', '"done":true', '"error":', "[DONE]", '"usageMetadata":{', '"totalTokenCount":'),
        byte_streams.answer_seeds,
        short=40,
    ),
    "xml_tools": Target(pure(texts.check_xml), _XML),
    "xml_round_trip": Target(pure(texts.check_xml_round_trip), (*_XML, "|", "\r\n", "&amp;", "\t", "]]]]>")),
    "log": Target(
        texts.open_log,
        (*_JSON, '{"type":"x"}\n', '{"type":"user.message","id":"1","data":{"content":"a"}}\n', '"type":"',
         '"data":', '"assistant.message"', '"id":"last"', "\r\n"),
    ),
    "rules": Target(
        pure(texts.check_rules),
        (*KINDS, "(", ")", "*", "**", "/", "/**/", "?", "a", "b", ".", "..", "[a", "\n", "://", "@", ":80", "*.",
        "xn--",
         "ß", "İ", "%", "[::1]", " *", ":*", "~"),
    ),
    "shell": Target(pure(shell.check_parsing), shell.PIECES, shell.lines),
    "shell_in_bash": Target(shell.open_judgement, shell.PIECES, shell.lines, short=250),
    "methods": Target(
        methods.open_methods, tuple(f"{name}\n" for name in methods.METHODS), methods.method_seeds, short=150
    ),
    "configuration": Target(texts.open_configuration, _TOML),
    "objective": Target(
        pure(texts.check_objective),
        (*_JSON, '{"nextId":1,"current":{', '"id":1,', '"objective":"x",', '"status":"active"', '"status":"paused"',
         '"cap_reached"', '"completed"', "18446744073709551615", "9007199254740991", '"turnCount":',
         '"tokenCount":', '"creditCountNanoAiu":"', '"resumeCount":', '"createdAt":', '"pauseReason":', "}}"),
        texts.objective_seeds,
    ),
    "times": Target(
        pure(times.check_times),
        (*_XML, "|", "a", "0", "=", ": ", "-", "@@ -1 +1 @@\n", "- [ ] a", "\"", "'", "\\", "[TOOL_CALLS]", "{",
         "<function=run>", "sk-", "@{a", "/*", ";", "No such file or directory", "host=", "model ", "tool ",
         "\u202e"),
        short=30,
    ),
    "front_matter": Target(
        pure(texts.check_front_matter),
        ("---\n", "\n---\n", "name: x\n", "description: ", "tools: [", "]", "- a\n", "&a ", "*a",
        "!!python/object:", "? ",
         ": ", "{", "}", "|\n", ">\n", "'", '"', "2026-99-99", "1e999", "<<: *a\n", "\t", "#", "\r\n", "!!binary "),
    ),
}  # fmt: skip
"""All targets by name. The seeds of each are in ``seeds/NAME``, next to inputs that once broke its property."""
