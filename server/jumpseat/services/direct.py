"""Fetch pages directly, without a service.

A host is resolved once and checked, and the connection is made to the checked address, so that a second look-up
cannot return a different one. A proxy resolves names itself; names are then checked as far as they resolve here.
A redirect to another site is reported rather than followed, because permission was given for this site only.
"""

from __future__ import annotations

import codecs
import re
import ssl
from typing import Final

import anyio
import httpx2

from jumpseat.adapters.transport.network import Proxies, tls_context
from jumpseat.agent.conversation.pictures import HEAD_BYTES, MAX_IMAGE_BYTES, image_type
from jumpseat.parsing.decompression import DecompressionError, decompress
from jumpseat.services.addresses import HostPolicy
from jumpseat.tools.web import Page, WebError
from jumpseat_protocol.version import __version__

MAX_REDIRECTS: Final = 5
CONNECT_S: Final = 10.0
_HEADERS: Final = {
    "User-Agent": f"jumpseat/{__version__}",
    "Accept": "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, */*;q=0.5",
    # Not deflate, because two incompatible formats go by that name.
    "Accept-Encoding": "gzip",
}
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TEXTUAL: Final = re.compile(
    r"text/.*|application/(.*\+)?(json|xml|yaml|toml)|application/(x-)?(javascript|ecmascript|ndjson|jsonlines|sh|sql)"
    r"|application/(x-yaml|x-toml|jsonl|graphql|xhtml\+xml|x-httpd-php|rtf)|image/svg\+xml|message/.*"
)
# Python's other codecs are not used by web pages, and some of them are slow on crafted input.
_CHARSET: Final = re.compile(
    r"utf-?(8|16|32)([-_]?[lb]e)?|us-ascii|ascii|(iso-?)?(8859|latin)[-_]?\d+([-_]\d+)?|(windows|cp)-?\d+|koi8-[rtu]"
    r"|gbk?|gb2312|gb18030|big5(-?hkscs)?|euc-?(jp|kr|tw|cn)|shift[-_]?jis|s?jis|iso-2022-(jp|kr)|mac[-_]?\w{0,12}|tis-620",
    re.IGNORECASE,
)
_META_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}charset\s{0,5}=\s{0,5}[\"']?([\w-]{1,40})", re.IGNORECASE)
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


class DirectFetcher:
    """Fetches pages. ``max_bytes`` limits a page, compressed and decompressed; ``timeout_s`` a whole fetch."""

    def __init__(self, policy: HostPolicy, *, max_bytes: int, timeout_s: float) -> None:
        self._policy = policy
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._proxies = Proxies.from_environment()
        self._tls: ssl.SSLContext | None = None

    async def fetch(self, url: str, *, raw: bool) -> Page:
        """Fetch the page at ``url`` unchanged; see :meth:`jumpseat.tools.web.Fetcher.fetch`."""
        try:
            with anyio.fail_after(self._timeout_s):
                return await self._follow(parse_url(url))
        except TimeoutError:
            raise WebError(f"Fetching {url} took longer than {self._timeout_s:g} s.") from None

    async def _follow(self, url: httpx2.URL) -> Page:
        for _ in range(MAX_REDIRECTS + 1):
            found = await self._get(url)
            if isinstance(found, Page):
                return found
            if not _same_site(url, found):
                return Page(str(url), "", redirected_to=str(found))
            url = found
        raise WebError(f"{url.host} redirects more than {MAX_REDIRECTS} times.")

    async def _get(self, url: httpx2.URL) -> Page | httpx2.URL:
        """Return the page, or the URL that it redirects to."""
        proxy = self._proxies.for_url(url)
        if proxy is not None:
            await self._policy.check_name(url.host, _port(url))
            return await self._ask(url, url, proxy)
        addresses = await self._policy.addresses(url.host, _port(url))
        for address in addresses[:-1]:
            try:
                return await self._ask(url, url.copy_with(host=address), None)
            except _NotConnectedError:
                continue
        return await self._ask(url, url.copy_with(host=addresses[-1]), None)

    async def _ask(self, url: httpx2.URL, target: httpx2.URL, proxy: str | None) -> Page | httpx2.URL:
        """Request ``url`` at ``target``, which has the checked address in place of the host."""
        try:
            # One transport per request, because hosts with the same address must not share connections.
            async with httpx2.AsyncHTTPTransport(
                verify=self._context() if url.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                proxy=httpx2.Proxy(proxy) if proxy else None,
                trust_env=False,
            ) as transport:
                request = httpx2.Request(
                    "GET",
                    target.copy_with(fragment=None, userinfo=b""),
                    headers={**_HEADERS, "Host": url.netloc.decode("ascii").rpartition("@")[2]},
                    extensions={
                        "sni_hostname": url.host,
                        "timeout": {
                            "connect": CONNECT_S,
                            "read": self._timeout_s,
                            "write": CONNECT_S,
                            "pool": None,
                        },
                    },
                )
                response = await transport.handle_async_request(request)
                try:
                    return await self._read(url, response)
                finally:
                    with anyio.move_on_after(1, shield=True):
                        await response.aclose()
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise _NotConnectedError(f"Cannot connect to {url.host}: {_reason(error)}.") from None
        except httpx2.HTTPError as error:
            raise WebError(f"The connection to {url.host} failed: {_reason(error)}.") from None
        except (ValueError, httpx2.InvalidURL, OSError) as error:
            raise WebError(f"Cannot fetch {url} ({type(error).__name__}).") from None

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = tls_context()
        return self._tls

    async def _read(self, url: httpx2.URL, response: httpx2.Response) -> Page | httpx2.URL:
        location = response.headers.get("location")
        if response.status_code in _REDIRECTS and location:
            try:
                return parse_url(str(url.join(location)))
            except (httpx2.InvalidURL, ValueError, WebError):
                raise WebError(f"{url.host} redirects to an invalid URL: {location[:200]!r}.") from None
        kind = response.headers.get("content-type", "")
        media_type = kind.partition(";")[0].strip().lower()
        if response.status_code >= 300 or response.status_code < 200:
            raise WebError(f"{url} returned HTTP {response.status_code} {response.reason_phrase}".rstrip() + ".")
        if media_type.startswith("image/") and media_type != "image/svg+xml":
            return await self._read_image(url, media_type, response)
        if media_type and not _TEXTUAL.fullmatch(media_type) and media_type != "application/octet-stream":
            raise WebError(_binary(url, media_type))
        body = await self._body(url, response, self._max_bytes)
        if (seen := image_type(body[:HEAD_BYTES])) is not None:
            return Page(str(url), seen, picture=body)
        bom = next((name for mark, name in _BOMS if body.startswith(mark)), None)
        if bom is None and b"\0" in body[:8192] and "utf-16" not in kind.lower() and "utf-32" not in kind.lower():
            raise WebError(_binary(url, media_type or "unknown type"))
        text = _decode(body, bom or _charset(kind, body))
        if not media_type or media_type == "application/octet-stream":
            start = text[:256].lstrip().lower()
            media_type = "text/html" if start.startswith(("<!doctype html", "<html")) else "text/plain"
        return Page(str(url), media_type, text)

    async def _read_image(self, url: httpx2.URL, media_type: str, response: httpx2.Response) -> Page:
        body = await self._body(url, response, MAX_IMAGE_BYTES)
        seen = image_type(body[:HEAD_BYTES])
        if seen is None:
            raise WebError(_binary(url, media_type))
        return Page(str(url), seen, picture=body)

    async def _body(self, url: httpx2.URL, response: httpx2.Response, limit: int) -> bytes:
        """Read and decompress the body, at most ``limit`` bytes of it."""
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip", "x-gzip", ""):
            raise WebError(f"{url} has an unsupported Content-Encoding: {encoding[:40]!r}, expected gzip.")
        too_large = WebError(
            f"{url} is larger than {limit} bytes. Download it in the shell and read parts of the file."
        )
        body = bytearray()
        try:
            async for piece in decompress(response.aiter_raw(), encoding):
                body += piece
                if len(body) > limit:
                    raise too_large
        except DecompressionError:
            raise WebError(f"{url} has an invalid body: expected gzip data.") from None
        return bytes(body)


class _NotConnectedError(WebError):
    """The connection failed before the request was sent, so another address of the host may be tried."""


def parse_url(url: str) -> httpx2.URL:
    """Parse an http or https URL.

    Raises:
        WebError: it is not an http or https URL with a host.
    """
    try:
        parsed = httpx2.URL(url.strip())
        _ = parsed.port, parsed.host
    except (httpx2.InvalidURL, ValueError, TypeError):
        raise WebError(f"{url[:200]!r} is not a valid URL.") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise WebError(f"{url[:200]!r} is not an http or https URL.")
    return parsed


def _port(url: httpx2.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _same_site(old: httpx2.URL, new: httpx2.URL) -> bool:
    """Return whether permission for ``old`` covers ``new``: the same host without ``www.``, no less secure."""
    if old.host.removeprefix("www.") != new.host.removeprefix("www."):
        return False
    if old.scheme == new.scheme:
        return _port(old) == _port(new)
    return new.scheme == "https" and _port(old) == 80 and _port(new) == 443


def _charset(content_type: str, body: bytes) -> str:
    stated = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", content_type, re.IGNORECASE)
    name = stated[1] if stated else ""
    if not name and (inside := _META_CHARSET.search(body[:2048])):
        name = inside[1].decode("ascii", "replace")
    return name if _CHARSET.fullmatch(name) else "utf-8"


def _decode(body: bytes, charset: str) -> str:
    try:
        codecs.lookup(charset)
    except LookupError:
        charset = "utf-8"
    try:
        return body.decode(charset)
    except UnicodeDecodeError:
        # A page without a declared charset that is not UTF-8 is most likely in Windows-1252.
        return body.decode("cp1252" if charset == "utf-8" else charset, "replace")


def _binary(url: httpx2.URL, media_type: str) -> str:
    return f"{url} is not a text file ({media_type[:80]}). Download it in the shell if you need it."


def _reason(error: httpx2.HTTPError) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return "timed out"
    text = " ".join(str(error).split())[:200]
    return text.rstrip(".") or type(error).__name__
