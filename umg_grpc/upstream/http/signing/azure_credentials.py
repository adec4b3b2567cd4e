"""Tokens of Entra ID, as Azure's own library finds them: environment, workload identities, managed identities,
applications with a secret. Needs the optional dependencies of the extra `azure`.
"""

from math import inf
from typing import Any, Protocol

from azure.core.credentials import SupportsTokenInfo
from azure.identity import (
    ClientSecretCredential,
    DefaultAzureCredential,
    ManagedIdentityCredential,
    WorkloadIdentityCredential,
)

from umg_grpc.upstream.http.signing.library_connections import CONNECT_SECONDS, READ_SECONDS, LibraryConnections
from umg_grpc.upstream.http.signing.refreshed_credentials import BearerToken, Credentials

MAX_RETRIES = 1


class AzureSettings(Protocol):
    """Keys of `auth: {kind: azure}` that select the credentials."""

    @property
    def tenant_id(self) -> str | None: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def client_secret(self) -> str | None: ...
    @property
    def token_file(self) -> str | None: ...
    @property
    def authority(self) -> str | None: ...


class AzureCredentials:
    """Source of tokens of Entra ID for one scope."""

    title = "Azure"

    def __init__(self, auth: AzureSettings, *, scope: str, connections: LibraryConnections) -> None:
        self._auth = auth
        self._scope = scope
        self._connections = connections

    def read(self) -> Credentials:
        with self._credential() as credential:  # a new one, which has cached no token
            found = credential.get_token_info(self._scope)
        renewal = inf if found.refresh_on is None else float(found.refresh_on)
        return Credentials(BearerToken(found.token), float(found.expires_on), renewal)

    def _credential(self) -> SupportsTokenInfo:
        auth, settings = self._auth, self._settings()
        if auth.tenant_id and auth.client_id and auth.client_secret:
            return ClientSecretCredential(auth.tenant_id, auth.client_id, auth.client_secret, **settings)
        if auth.token_file is not None:
            return WorkloadIdentityCredential(
                tenant_id=auth.tenant_id, client_id=auth.client_id, token_file_path=auth.token_file, **settings
            )
        if auth.client_id and not auth.tenant_id:
            return ManagedIdentityCredential(client_id=auth.client_id, **settings)
        if auth.client_id:
            settings |= {"managed_identity_client_id": auth.client_id}
        if auth.tenant_id:
            settings |= {"workload_identity_tenant_id": auth.tenant_id, "shared_cache_tenant_id": auth.tenant_id}
        return DefaultAzureCredential(**settings)

    def _settings(self) -> dict[str, Any]:
        """Return the settings of the library's HTTP client, and the authority that issues tokens."""
        settings: dict[str, Any] = {
            "connection_timeout": CONNECT_SECONDS,
            "read_timeout": READ_SECONDS,
            "retry_total": MAX_RETRIES,
        }
        if (file := self._connections.ca_file) is not None:
            settings["connection_verify"] = file
        if (proxies := self._connections.proxies) is not None:
            settings |= {"proxies": proxies, "use_env_settings": False}
        if self._auth.authority is not None:
            # an authority of the operator's own choice need not be known to the public cloud
            settings |= {"authority": self._auth.authority, "disable_instance_discovery": True}
        return settings
