"""Mask the secrets in a call that is recorded or shown: its URL, headers, body and response. No I/O.

Masking is stricter than :class:`~jumpseat.adapters.failures.Redactor` about field names and more careful with
content: prompts and responses must not lose words that a header happens to contain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, cast
from urllib.parse import urlsplit, urlunsplit

import orjson

from jumpseat.adapters.failures import Redactor
from jumpseat.agent.secrets import MASK

MIN_SECRET_CHARS: Final = 8
"""Shorter secrets may be ordinary words, such as ``ollama``, and are not masked in content."""
MAX_HELD_CHARS: Final = 8192
"""The longest possible start of a secret that is held back until the next chunk."""

_CREDENTIAL: Final = re.compile(r"auth|key|token|secret|cookie|password|passwd|signature|credential", re.IGNORECASE)
_LIMIT: Final = re.compile(r"rate-?limit|www-authenticate|proxy-authenticate", re.IGNORECASE)
_QUERY_CREDENTIAL: Final = re.compile(
    r"auth|key|token|secret|password|passwd|sig|signature|code|credential", re.IGNORECASE
)
_FIELD: Final = (
    r"(?:[a-z_-]*[_-]|x-)?(?:api[_-]?key|(?:access|refresh|id|auth|session|bearer)[_-]?token|authorization"
    r"|password|passwd|(?:client[_-]?)?secret|private[_-]?key|credentials?|cookie)"
)
_WORD: Final = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{19,}")
_KEY: Final = re.compile(r"\b(?:(?:sk|pk|rk|xai|gsk|nvapi|hf|tvly|jina)[-_]|gh[opusr]_|github_pat_|AIza)")
_LAST_WORD: Final = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]++\Z")
_SHORTEST_REST: Final = 16
"""The least number of characters of a key after its prefix."""
_UNLIKE_WORDS: Final = re.compile(r"(?=.*[0-9])\S{16,}\Z")


def mask_url(url: str, mask: ContentMask) -> str:
    """Return ``url`` without user and password, with the values of credentials in its query masked.

    The rest is masked as content, because a replayer compares the path.
    """
    parts = urlsplit(url)
    query = "&".join(_mask_pair(pair) for pair in parts.query.split("&")) if parts.query else ""
    return mask.text(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, "")))


def _mask_pair(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}={MASK}" if equals and _QUERY_CREDENTIAL.search(name) else pair


def mask_headers(
    headers: Iterable[tuple[str, str]], redactor: Redactor, mask: ContentMask
) -> list[tuple[str, str]]:
    """Return ``headers`` with credentials masked, both by header name and by the call's known secrets."""

    def mask_value(name: str, value: str) -> str:
        secret = value in redactor.secrets or (_CREDENTIAL.search(name) and not _LIMIT.search(name))
        return MASK if secret else mask.text(value)

    return [(name, mask_value(name, value)) for name, value in headers]


class ContentMask:
    """Masks content: secrets of the call that are unlikely to occur by chance, and strings shaped like known keys.

    ``mask_more`` is applied to every string in addition. With ``tokens``, a JSON field called ``token`` is a secret
    too, as in responses about accounts; in a model's response, a field of that name may hold ordinary words.
    """

    def __init__(self, redactor: Redactor, mask_more: Callable[[str], str] = str, *, tokens: bool = False) -> None:
        secrets = [
            secret
            for secret in redactor.secrets
            if len(secret) >= MIN_SECRET_CHARS and (secret in redactor.certain or _UNLIKE_WORDS.match(secret))
        ]
        # Include each secret as escaped in JSON.
        forms = {form for secret in secrets for form in (secret, orjson.dumps(secret).decode()[1:-1])}
        self._secrets = sorted(forms, key=len, reverse=True)
        self._many_lines = any("\n" in secret for secret in self._secrets)
        self._mask_more = mask_more
        field = rf"(?:{_FIELD}|token)" if tokens else _FIELD
        self._name = re.compile(field, re.IGNORECASE)
        self._field = re.compile(rf'("{field}"\s*:\s*")((?:[^"\\]|\\.)+)(?=")', re.IGNORECASE)
        self._field_begun = re.compile(
            rf'"[\w-]{{0,40}}(?:"\s*(?::\s*)?)?\Z|"{field}"\s*:\s*"(?:[^"\\]|\\.)*\\?\Z', re.IGNORECASE
        )

    def text(self, text: str) -> str:
        """Return ``text`` with secrets masked."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return self._mask_more(_WORD.sub(_mask_key, text))

    def json(self, value: Any) -> Any:
        """Return a JSON value with its strings masked, and with the values of secret fields replaced entirely."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(item) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {
                key: MASK if isinstance(item, str) and item and self._name.fullmatch(key) else self.json(item)
                for key, item in cast("dict[str, Any]", value).items()
            }
        return value

    def raw(self, data: bytes) -> bytes:
        """Return the bytes of a response with secrets masked; all other bytes are unchanged, even if not UTF-8."""
        # In Latin-1 every byte is one character, so a UTF-8 character cut by a chunk boundary stays intact.
        text = data.decode("latin-1")
        for secret in self._secrets:
            text = text.replace(secret.encode().decode("latin-1"), MASK)
        text = _WORD.sub(_mask_key, self._field.sub(rf"\1{MASK}", text))
        masked = text.encode("latin-1")
        try:
            return self._mask_more(masked.decode()).encode()
        except UnicodeError:
            return masked

    def held_start(self, data: bytes, *, fields: bool) -> int:
        """Return the index in ``data`` where an unfinished secret may begin, or the length of ``data`` if none.

        With ``fields``, unfinished JSON fields with secret names count too.
        """
        if data.endswith(b"\n") and not fields and not self._many_lines:
            # True of nearly every chunk of an event stream.
            return len(data)
        text = data.decode("latin-1")
        places = [len(text)]
        for secret in self._secrets:
            encoded_secret = secret.encode().decode("latin-1")
            for place in range(max(0, len(text) - len(encoded_secret) + 1), len(text)):
                if encoded_secret.startswith(text[place:]):
                    places.append(place)
                    break
        if (word := _LAST_WORD.search(text)) and (key := _KEY.search(text, word.start())):
            places.append(key.start())
        if fields and (found := self._field_begun.search(text)):
            places.append(found.start())
        place = min(places)
        return place if len(text) - place <= MAX_HELD_CHARS else len(text)


def _mask_key(word: re.Match[str]) -> str:
    """Mask what is shaped like a known key in a word."""
    key = _KEY.search(word.string, word.start(), word.end())
    if key is None or word.end() - key.end() < _SHORTEST_REST:
        return word[0]
    # A digit is required: `hf_download_model` is a name.
    if not any(character.isdecimal() for character in word.string[key.end() : word.end()]):
        return word[0]
    return word.string[word.start() : key.start()] + MASK


class MaskedPieces:
    """Masks the chunks of one response, including secrets split across chunks."""

    def __init__(self, mask: ContentMask, *, fields: bool) -> None:
        """Set ``fields`` for a response that is one JSON document."""
        self._mask = mask
        self._fields = fields
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """Return the masked bytes that are ready; a possible start of a secret is held until the next chunk."""
        data = self._held + piece
        place = self._mask.held_start(data, fields=self._fields)
        self._held = data[place:]
        return self._mask.raw(data[:place])

    def finish(self) -> bytes:
        """Return the remaining held bytes, masked, at the end of the response."""
        rest, self._held = self._held, b""
        return self._mask.raw(rest)
