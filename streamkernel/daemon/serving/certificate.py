"""The certificate of the HTTP server."""

from __future__ import annotations

import ssl

from streamkernel.daemon.config.endpoints import TlsConfig

__all__ = ["CertificateError", "tls_context"]


class CertificateError(Exception):
    """A certificate or its key cannot be used; the message says why."""


def tls_context(settings: TlsConfig, section: str) -> ssl.SSLContext:
    """Return what a server needs to speak TLS with a certificate; errors name the section of the configuration.

    Raises
    ------
    CertificateError
        Where the files cannot be read, or do not belong together.

    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.certificate, settings.key, password=_refuse_passphrase)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror if error.strerror else error
        raise CertificateError(
            f"{section}.tls: {settings.certificate} and {settings.key} cannot be used: {reason}"
        ) from error
    return context


def _refuse_passphrase() -> str:
    """Say that there is no passphrase: OpenSSL would ask for one at the terminal, and a daemon has none."""
    raise OSError("the key is encrypted; give one without a passphrase, which only the daemon can read")
