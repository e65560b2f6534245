"""TLS for connections from other machines."""

from __future__ import annotations

import ssl

from jumpseat.errors import ConfigError


def server_context(certificate: str, key: str) -> ssl.SSLContext:
    """Return the context of a server with a certificate chain and its private key, both files in PEM form.

    Raises:
        ConfigError: a file cannot be read or is invalid, or the key is encrypted or of another certificate.
    """
    for option, path in (("--tls-cert", certificate), ("--tls-key", key)):
        _check_readable(option, path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # Without a password, OpenSSL asks for one on the terminal.
        context.load_cert_chain(certificate, key, password=_refuse_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(f"--tls-key: {key!r} is not the key of the certificate {certificate!r}") from None
        option, path, kind = ("--tls-cert", certificate, "certificate")
        if _has_certificate(certificate):
            option, path, kind = ("--tls-key", key, "private key")
        raise ConfigError(f"{option}: {path!r} is not a {kind} in PEM form") from None
    except ValueError as error:
        raise ConfigError(f"--tls-key: {key!r}: {error}") from None
    return context


def _check_readable(option: str, path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise ConfigError(f"{option}: cannot read {path!r}: {error.strerror or error}") from None


def _has_certificate(path: str) -> bool:
    try:
        ssl.create_default_context(cafile=path)
    except (ssl.SSLError, OSError):
        return False
    return True


def _refuse_password() -> str:
    raise ValueError("the key has a password, which is not supported")
