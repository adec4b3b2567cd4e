"""Signers with credentials of clouds, which stay when the config is reloaded."""

from collections.abc import Callable, Hashable
from typing import assert_never
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from umg_grpc.config import AwsAuth, AzureAuth, Channel, CloudAuth, GoogleAuth
from umg_grpc.config.channel_credentials import signature_scope
from umg_grpc.config.config_values import DIRECT_ROUTE
from umg_grpc.knowledge.cloud_credentials import token_scope
from umg_grpc.upstream.http.signing.library_connections import LibraryConnections
from umg_grpc.upstream.http.signing.refreshed_credentials import CredentialSource, RefreshedSigner

MAX_SESSION_NAME_CHARACTERS = 64


class CloudSigners:
    """Signers by channel. A reload of the config keeps the credentials of each channel whose `auth` is unchanged."""

    def __init__(self, count: Callable[[str, str], None] | None, now: Callable[[], float]) -> None:
        """Create an empty collection. `count`: counts a read of credentials, by channel and outcome."""
        self._count = count
        self._now = now
        self._made = WeakValueDictionary[Hashable, RefreshedSigner]()

    def signer(self, channel: Channel, auth: CloudAuth) -> RefreshedSigner:
        """Return a channel's signer, with its credentials if read before. Raise ImportError without the library."""
        connections = LibraryConnections("" if channel.proxy == DIRECT_ROUTE else channel.proxy, channel.ca_file)
        key = (channel.name, channel.base_url, auth, connections)
        if (signer := self._made.get(key)) is None:
            source = _source(channel, auth, connections)
            signer = RefreshedSigner(source, channel=channel.name, count=self._count, now=self._now)
            self._made[key] = signer
        return signer


def _source(channel: Channel, auth: CloudAuth, connections: LibraryConnections) -> CredentialSource:
    # imported only if used: optional packages, which are slow to import
    match auth:
        case AwsAuth():
            from umg_grpc.upstream.http.signing.aws_credentials import AwsCredentials

            region, service = signature_scope(auth, channel.base_url) or ("", "")  # the config has checked it
            name = f"umg-{channel.name}"[:MAX_SESSION_NAME_CHARACTERS]
            return AwsCredentials(auth, region=region, service=service, session_name=name, connections=connections)
        case GoogleAuth():
            from umg_grpc.upstream.http.signing.google_credentials import GoogleCredentials

            return GoogleCredentials(auth, connections)
        case AzureAuth():
            from umg_grpc.upstream.http.signing.azure_credentials import AzureCredentials

            scope = auth.scope or token_scope(urlsplit(channel.base_url).hostname or "") or ""
            return AzureCredentials(auth, scope=scope, connections=connections)
        case unhandled:
            assert_never(unhandled)
