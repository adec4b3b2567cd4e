"""Tokens of Google Cloud, as its own library finds them: Application Default Credentials, files of any type, workload
identities, metadata servers. Needs the optional dependencies of the extra `google`.
"""

from collections.abc import Mapping
from datetime import UTC
from math import inf
from typing import Protocol

import google.auth
import requests
from google.auth import impersonated_credentials
from google.auth.credentials import Credentials as GoogleToken
from google.auth.credentials import CredentialsWithQuotaProject, with_scopes_if_required
from google.auth.transport.requests import Request
from requests.adapters import HTTPAdapter

from umg_grpc.upstream.http.signing.library_connections import CONNECT_SECONDS, READ_SECONDS, LibraryConnections
from umg_grpc.upstream.http.signing.refreshed_credentials import BearerToken, Credentials


class _TimedAdapter(HTTPAdapter):
    """Transport of Google's library with the gateway's timeouts in place of the library's two minutes."""

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: float | tuple[float, float] | tuple[float, None] | None = None,
        verify: bool | str = True,
        cert: bytes | str | tuple[bytes | str, bytes | str] | None = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        is_short = isinstance(timeout, int | float) and timeout < READ_SECONDS
        bound = timeout if is_short else (CONNECT_SECONDS, READ_SECONDS)
        return super().send(request, stream, bound, verify, cert, proxies)


class GoogleSettings(Protocol):
    """Keys of `auth: {kind: google}`."""

    @property
    def file(self) -> str | None: ...
    @property
    def impersonate(self) -> str | None: ...
    @property
    def quota_project(self) -> str | None: ...
    @property
    def scopes(self) -> tuple[str, ...]: ...


class GoogleCredentials:
    """Source of OAuth tokens of Google Cloud."""

    title = "Google Cloud"

    def __init__(self, auth: GoogleSettings, connections: LibraryConnections) -> None:
        self._auth = auth
        self._connections = connections
        self._found: GoogleToken | None = None

    def read(self) -> Credentials:
        # found again after a failure only: files of credentials may be replaced, but a search takes several requests
        known, self._found = self._found, None
        with requests.Session() as session:
            request = Request(self._configured(session))
            found = known or self._credentials(request)
            found.refresh(request)
        self._found = found
        quota = {"X-Goog-User-Project": found.quota_project_id} if found.quota_project_id else None
        expiry = found.expiry.replace(tzinfo=UTC).timestamp() if found.expiry is not None else inf
        return Credentials(BearerToken(found.token or "", quota), expiry)

    def _credentials(self, request: Request) -> GoogleToken:
        auth = self._auth
        found: GoogleToken
        scopes = list(auth.scopes)
        if auth.file is not None:
            found, _ = google.auth.load_credentials_from_file(auth.file, request=request)
        else:
            found, _ = google.auth.default(request=request)
        # not above: with scopes, the library would look up the project of a workload identity, at a further service
        found = with_scopes_if_required(found, scopes)
        if auth.impersonate is not None:
            found = impersonated_credentials.Credentials(found, auth.impersonate, scopes)
        if auth.quota_project is not None and isinstance(found, CredentialsWithQuotaProject):
            found = found.with_quota_project(auth.quota_project)
        return found

    def _configured(self, session: requests.Session) -> requests.Session:
        for scheme in ("http://", "https://"):
            session.mount(scheme, _TimedAdapter())
        proxies = self._connections.proxies
        if proxies is not None:
            session.trust_env, session.proxies = False, {**proxies}
        if (file := self._connections.ca_file) is not None:
            session.verify = file
        return session
