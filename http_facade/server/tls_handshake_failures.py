"""Log of failed TLS handshakes with clients, at most one line a second."""

import ssl
import time

import structlog

LOG_SECONDS = 1.0
REASON_TEXTS = {
    "HTTP_REQUEST": "the client sent HTTP without TLS: it has to use https://",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client has no certificate, which `tls.client_ca` demands",
    "CERTIFICATE_VERIFY_FAILED": "the client certificate is not valid, or not of an authority in `tls.client_ca`",
}
"""Reasons of OpenSSL whose remedy is known, for operators."""

log = structlog.get_logger()


class HandshakeFailures:
    """Log of the failed TLS handshakes of one listener, at most one line a second."""

    def __init__(self) -> None:
        self._next = 0.0
        self._unlogged = 0

    def record(self, error: OSError) -> None:
        """Log a failed handshake; within a second of another line, only count it. Connections that close without
        sending a byte, for example port checks of load balancers, are ignored.
        """
        if isinstance(error, ConnectionResetError):
            return
        now = time.monotonic()
        if now < self._next:
            self._unlogged += 1
            return
        self._next = now + LOG_SECONDS
        text = error.reason if isinstance(error, ssl.SSLError) else str(error)
        log.info("TLS handshake failed", reason=REASON_TEXTS.get(text, text), not_logged=self._unlogged or None)
        self._unlogged = 0
