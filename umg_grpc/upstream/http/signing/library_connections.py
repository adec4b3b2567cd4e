"""Settings of the connections that the libraries of clouds open to issuers of credentials."""

import os
from collections.abc import Mapping
from typing import NamedTuple

CONNECT_SECONDS, READ_SECONDS = 5, 10
"""Timeouts of the connections to issuers of credentials."""
AUTHORITY_FILE = "SSL_CERT_FILE"


class LibraryConnections(NamedTuple):
    """Proxy and certificate authorities of a channel, which also apply to the requests for its credentials."""

    proxy: str | None = None
    """URL of the proxy, "" if there is none; None for that of the environment."""
    authorities: str | None = None
    """File with certificate authorities; None for that of the environment, else the library's own."""

    @property
    def ca_file(self) -> str | None:
        return self.authorities or os.environ.get(AUTHORITY_FILE) or None

    @property
    def proxies(self) -> Mapping[str, str] | None:
        """URL scheme -> proxy; empty for no proxy, None for the proxies of the environment. Issuers on the machine or
        its network, for example instance metadata, use http and are called directly.
        """
        if self.proxy is None:
            return None
        return {"https": self.proxy} if self.proxy else {}
