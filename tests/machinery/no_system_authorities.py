"""Faster tests: certificate authorities of the system are not loaded, since each SDK client would load all of them, for
25 ms.
"""

import os
import ssl

import certifi
import pytest


def pytest_configure() -> None:
    """Let TLS contexts of this process trust none of the system's authorities. Those of the tests are in other files,
    and the processes that tests start load their own.
    """
    paths = ssl.get_default_verify_paths()
    system = {os.environ.get("SSL_CERT_FILE"), paths.cafile, paths.openssl_cafile, certifi.where()} - {None}
    load = ssl.SSLContext.load_verify_locations

    def load_others(
        context: ssl.SSLContext, cafile: str | None = None, capath: str | None = None, cadata: str | bytes | None = None
    ) -> None:
        if cafile not in system or cadata is not None:
            load(context, cafile, capath, cadata)

    pytest.MonkeyPatch().setattr(ssl.SSLContext, "load_verify_locations", load_others)
