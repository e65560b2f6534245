"""Taking the secrets out of a call that is written down or shown: its URL, headers, body and answer. No I/O.

Stricter than an error's :class:`~jumpseat.adapters.failures.Redactor` about names, and more careful with content:
what a model reads and says must not lose the words that some header happens to hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, cast
from urllib.parse import urlsplit, urlunsplit

import orjson

from jumpseat.adapters.failures import Redactor
from jumpseat.agent.secrets import MASK

SHORTEST_IN_CONTENT: Final = 8
"""Secrets of fewer characters are words, such as ``ollama``: in content they are left alone."""
LONGEST_HELD: Final = 8192

_CREDENTIAL: Final = re.compile(r"auth|key|token|secret|cookie|password|passwd|signature|credential", re.IGNORECASE)
_LIMIT: Final = re.compile(r"rate-?limit|www-authenticate|proxy-authenticate", re.IGNORECASE)
_QUERY_CREDENTIAL: Final = re.compile(
    r"auth|key|token|secret|password|passwd|sig|signature|code|credential", re.IGNORECASE
)
_FIELD: Final = (
    r"(?:[a-z_-]*[_-]|x-)?(?:api[_-]?key|(?:access|refresh|id|auth|session|bearer)[_-]?token|authorization"
    r"|password|passwd|(?:client[_-]?)?secret|private[_-]?key|credentials?|cookie)"
)
_FIELD_NAME: Final = re.compile(_FIELD, re.IGNORECASE)
_PREFIX: Final = r"(?:(?:sk|pk|rk|xai|gsk|nvapi|hf|tvly|jina)[-_]|gh[opusr]_|github_pat_|AIza)"
# With a figure in it: `hf_download_model` is a name.
_SHAPE: Final = re.compile(rf"\b{_PREFIX}(?=[A-Za-z0-9_-]*[0-9])[A-Za-z0-9_-]{{16,}}")
_SHAPE_BEGUN: Final = re.compile(rf"\b{_PREFIX}[A-Za-z0-9_-]*\Z")
_UNLIKE_WORDS: Final = re.compile(r"(?=.*[0-9])\S{16,}\Z")


def masked_url(url: str, mask: ContentMask) -> str:
    """``url`` without user and password, and with the values of credentials in its query masked.

    As content, for a path that loses a word is not found again.
    """
    parts = urlsplit(url)
    query = "&".join(_masked_pair(pair) for pair in parts.query.split("&")) if parts.query else ""
    return mask.text(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, "")))


def _masked_pair(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}={MASK}" if equals and _QUERY_CREDENTIAL.search(name) else pair


def masked_headers(headers: Iterable[tuple[str, str]], veil: Redactor, mask: ContentMask) -> list[tuple[str, str]]:
    """``headers`` with the values of credentials masked, and those that the call knows as secret."""

    def masked(name: str, value: str) -> str:
        secret = value in veil.secrets or (_CREDENTIAL.search(name) and not _LIMIT.search(name))
        return MASK if secret else mask.text(value)

    return [(name, masked(name, value)) for name, value in headers]


class ContentMask:
    """Masks content: the secrets of a call that no text holds by chance, and what has the form of a key.

    ``also`` is put over every text besides. With ``tokens``, a field called ``token`` is a secret too, as it is
    where an account answers; a model's answer may have fields of that name that hold words.
    """

    def __init__(self, veil: Redactor, also: Callable[[str], str] = str, *, tokens: bool = False) -> None:
        secrets = [
            one
            for one in veil.secrets
            if len(one) >= SHORTEST_IN_CONTENT and (one in veil.certain or _UNLIKE_WORDS.match(one))
        ]
        # Also as they stand in JSON.
        forms = {form for one in secrets for form in (one, orjson.dumps(one).decode()[1:-1])}
        self._secrets = sorted(forms, key=len, reverse=True)
        self._many_lines = any("\n" in one for one in self._secrets)
        self._also = also
        field = rf"(?:{_FIELD}|token)" if tokens else _FIELD
        self._name = re.compile(field, re.IGNORECASE)
        self._field = re.compile(rf'("{field}"\s*:\s*")((?:[^"\\]|\\.)+)(?=")', re.IGNORECASE)
        self._field_begun = re.compile(
            rf'"[\w-]{{0,40}}(?:"\s*(?::\s*)?)?\Z|"{field}"\s*:\s*"(?:[^"\\]|\\.)*\\?\Z', re.IGNORECASE
        )

    def text(self, text: str) -> str:
        """``text``, which may be anything, masked."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return self._also(_SHAPE.sub(MASK, text))

    def json(self, value: Any) -> Any:
        """A JSON value with its texts masked, and the whole of those whose name says that they are secrets."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {
                key: MASK if isinstance(one, str) and one and self._name.fullmatch(key) else self.json(one)
                for key, one in cast("dict[str, Any]", value).items()
            }
        return value

    def answer(self, data: bytes) -> bytes:
        """The bytes of an answer, masked; those that are no secret stay as they are, valid text or not."""
        # As Latin-1 every byte is one character, so that a character cut in two stays cut where it was.
        text = data.decode("latin-1")
        for secret in self._secrets:
            text = text.replace(secret.encode().decode("latin-1"), MASK)
        text = _SHAPE.sub(MASK, self._field.sub(rf"\1{MASK}", text))
        masked = text.encode("latin-1")
        try:
            return self._also(masked.decode()).encode()
        except UnicodeError:
            return masked

    def held_from(self, data: bytes, *, fields: bool) -> int:
        """Where in ``data`` the beginning of a secret may stand that the next piece completes; its end if nowhere.

        ``fields`` looks for fields of JSON whose name says that they are secrets, too.
        """
        if data.endswith(b"\n") and not fields and not self._many_lines:
            # As nearly all pieces of a stream.
            return len(data)
        text = data.decode("latin-1")
        places = [len(text)]
        for secret in self._secrets:
            wanted = secret.encode().decode("latin-1")
            for place in range(max(0, len(text) - len(wanted) + 1), len(text)):
                if wanted.startswith(text[place:]):
                    places.append(place)
                    break
        for pattern in (_SHAPE_BEGUN, self._field_begun) if fields else (_SHAPE_BEGUN,):
            if found := pattern.search(text):
                places.append(found.start())
        place = min(places)
        return place if len(text) - place <= LONGEST_HELD else len(text)


class MaskedPieces:
    """The pieces of one answer, such that no secret is told because it came in two."""

    def __init__(self, mask: ContentMask, *, fields: bool) -> None:
        """``fields`` is for an answer that is one JSON text."""
        self._mask = mask
        self._fields = fields
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """What can be told now; what may be the beginning of a secret goes with the next piece."""
        data = self._held + piece
        place = self._mask.held_from(data, fields=self._fields)
        self._held = data[place:]
        return self._mask.answer(data[:place])

    def rest(self) -> bytes:
        """What was held back, at the end."""
        rest, self._held = self._held, b""
        return self._mask.answer(rest)
