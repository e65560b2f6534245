"""Read YAML, and JSON where a file may have either. Needs PyYAML, which is imported at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from yaml import SafeLoader


def read_yaml(text: str) -> Any:
    """Parse JSON or YAML.

    Raises:
        ValueError: the text is neither; the message is one of YAML.
    """
    text = text.removeprefix("\ufeff")
    if text.lstrip().startswith(("{", "[")):
        # PyYAML refuses tabs and long keys, and reads 1e5 as a string.
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
    import yaml

    try:
        return yaml.load(text, safe_loader())  # noqa: S506 - a safe loader
    except Exception as error:
        # Not only YAMLError: invalid dates and deep nesting raise errors of other types.
        raise ValueError(" ".join(str(error).split())[:200] or type(error).__name__) from None


def safe_loader() -> type[SafeLoader]:
    """Return YAML's safe loader, with emojis for escaped pairs of surrogates, as in JSON, and U+FFFD for halves."""
    # Imported here, because most processes read no YAML.
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_scalar(self, node: Any) -> str:
            text = super().construct_scalar(node)
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    return Loader
