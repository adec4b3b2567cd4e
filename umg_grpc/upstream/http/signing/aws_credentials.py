"""Credentials of AWS, as its own library finds them: environment, profiles, single sign-on, roles, web identities,
containers, instances. Needs the optional dependencies of the extra `aws`.
"""

import time
from bisect import bisect_left
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import Protocol

from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    AssumeRoleWithWebIdentityCredentialFetcher,
    CachedCredentialFetcher,
    RefreshableCredentials,
)
from botocore.loaders import Loader
from botocore.session import Session

from umg_grpc.upstream.http.signing.aws import AwsSigner
from umg_grpc.upstream.http.signing.library_connections import CONNECT_SECONDS, READ_SECONDS, LibraryConnections
from umg_grpc.upstream.http.signing.refreshed_credentials import Credentials

MAX_ATTEMPTS = 2
MAX_SECONDS = 7 * 86400
"""Longest lifetime of temporary credentials that is looked for."""
NOTHING_FOUND = "botocore found no credentials in the environment, shared files, container and instance"


class AwsSettings(Protocol):
    """Keys of `auth: {kind: aws}` that select the credentials."""

    @property
    def profile(self) -> str | None: ...
    @property
    def role_arn(self) -> str | None: ...
    @property
    def role_session_name(self) -> str | None: ...
    @property
    def external_id(self) -> str | None: ...
    @property
    def web_identity_token_file(self) -> str | None: ...


class AwsCredentials:
    """Source of AWS credentials for the requests to one service in one region."""

    title = "AWS"

    def __init__(
        self, auth: AwsSettings, *, region: str, service: str, session_name: str, connections: LibraryConnections
    ) -> None:
        """Create a source. `session_name`: name of a role's session, if the config has none."""
        self._auth = auth
        self._region = region
        self._service = service
        self._session_name = auth.role_session_name or session_name
        self._connections = connections
        self._loader = Loader()

    def read(self) -> Credentials:
        session = self._session()
        if self._auth.role_arn is not None:
            found = self._role(session, self._auth.role_arn).fetch_credentials()
            signer = self._signer(found["access_key"], found["secret_key"], found["token"])
            return Credentials(signer, datetime.fromisoformat(found["expiry_time"]).timestamp())
        credentials = session.get_credentials()
        if credentials is None:
            raise LookupError(NOTHING_FOUND)
        access_key, secret, token, *_ = credentials.get_frozen_credentials()
        expiry = inf
        if isinstance(credentials, RefreshableCredentials):
            # the library compares the expiry, but does not state it
            expiry = time.time() + bisect_left(range(MAX_SECONDS), True, key=credentials.refresh_needed)
        return Credentials(self._signer(access_key or "", secret or "", token or ""), expiry)

    def _session(self) -> Session:
        """Return a new session of the library, which has cached no credentials."""
        session = Session(profile=self._auth.profile)
        session.register_component("data_loader", self._loader)  # its cache saves most of the time
        session.set_config_variable("region", self._region)
        if (file := self._connections.ca_file) is not None:
            session.set_config_variable("ca_bundle", file)
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"total_max_attempts": MAX_ATTEMPTS, "mode": "standard"},
            proxies=self._connections.proxies,
        )
        session.set_default_client_config(config)
        return session

    def _role(self, session: Session, role: str) -> CachedCredentialFetcher:
        """Return the source of a role's temporary credentials, by the session or by another issuer's token."""
        create, external_id = partial(session.create_client, region_name=self._region), self._auth.external_id
        arguments = {"RoleSessionName": self._session_name} | ({"ExternalId": external_id} if external_id else {})
        if (file := self._auth.web_identity_token_file) is not None:
            read = partial(Path(file).read_text, encoding="utf-8")
            return AssumeRoleWithWebIdentityCredentialFetcher(create, read, role, arguments)
        if (credentials := session.get_credentials()) is None:
            raise LookupError(NOTHING_FOUND)
        return AssumeRoleCredentialFetcher(create, credentials, role, arguments)

    def _signer(self, access_key: str, secret: str, session_token: str) -> AwsSigner:
        return AwsSigner(access_key, secret, session_token, region=self._region, service=self._service)
