"""TLS as a tenant speaks it: whom it trusts, and the certificate by which it is known.

Rules it keeps:
- A server's certificate is always verified: there is no switch that turns it off. A private authority is
  named by its file, and is then the only one that is trusted.
- A client certificate belongs to one tenant. The words that open its key come from the environment.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path

import httpx

from kvfence.check.credentials import Secret
from kvfence.protocol.errors import OperatorError


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCertificate:
    """Files of a certificate and its key (None: in the same file)."""

    certificate: Path
    key: Path | None = None
    password: Secret | None = None


def context_of(authority: Path | None, own: ClientCertificate | None) -> ssl.SSLContext:
    """Return what a tenant's connections are made with. Raises OperatorError for files that do not do."""
    context = httpx.create_ssl_context(trust_env=False) if authority is None else _trusting(authority)
    if own is not None:
        _present(context, own)
    return context


def _trusting(authority: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=str(authority))
    except (OSError, ssl.SSLError) as error:
        raise OperatorError(
            f"the authority {authority} cannot be used ({_why(error)}); `ca_file` wants a file of "
            "certificates in PEM format"
        ) from error


def _present(context: ssl.SSLContext, own: ClientCertificate) -> None:
    # Without a callback OpenSSL would ask the terminal for the words that open the key, and wait.
    password = "" if own.password is None else own.password.reveal()
    try:
        context.load_cert_chain(own.certificate, own.key, password=lambda: password)
    except (OSError, ssl.SSLError) as error:
        raise OperatorError(
            f"the client certificate {own.certificate} cannot be used ({_why(error)}); `certificate` wants "
            "PEM files: `file`, `key` where the key is in another, and `password_env` where it is encrypted"
        ) from error


def _why(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "it is no certificate in PEM format, or its key does not fit"
    return error.strerror or type(error).__name__
