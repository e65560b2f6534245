"""TLS for connections from other machines."""

from __future__ import annotations

import ssl

from jumpseat.errors import ConfigError


def server_context(certificate: str, key: str) -> ssl.SSLContext:
    """Return the context of a server with a certificate chain and its private key, both files in PEM form.

    Raises:
        ConfigError: a file cannot be read or is invalid, or the key is encrypted or of another certificate.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # Without a password, OpenSSL asks for one on the terminal.
        context.load_cert_chain(certificate, key, password=_refuse_password)
    except FileNotFoundError:
        raise ConfigError(f"--tls-cert {certificate!r} or --tls-key {key!r} does not exist") from None
    except ssl.SSLError as error:
        raise ConfigError(f"--tls-cert and --tls-key: {error.reason or 'not a certificate and its key'}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"--tls-cert and --tls-key: {reason}") from None
    return context


def _refuse_password() -> str:
    raise ValueError("an encrypted key is not supported")
