"""Fake issuers of Google's tokens (token server, STS, metadata server), and a service that accepts these tokens."""

import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qs

from aiohttp import web
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from google.auth import jwt

from tests.support.providers.aws_issuer import CHAT
from tests.support.providers.server import FakeProvider, ReceivedRequest, RefusedError
from tests.support.service_accounts import PEM, PUBLIC_KEY

EMAIL, SCOPE = "umg@p.example", "https://www.googleapis.com/auth/cloud-platform"
REFRESH_TOKEN, SUBJECT_TOKEN = "refresh-token", "token-of-another-issuer"
AUDIENCE = "https://oauth2.googleapis.com/token"  # of all assertions, also for another token server
METADATA = "/computeMetadata/v1/"


@dataclass(kw_only=True)
class GoogleIssuer(FakeProvider):
    """Issuer and service at one address. Each token is valid for `seconds`."""

    seconds: float = 3600
    reads: list[str] = field(default_factory=list)
    """Ways of the requests for tokens, in order."""
    expiries: dict[str, float] = field(default_factory=dict)
    """Unix times of the expiry of the tokens, by the header that carries them."""
    accepted: int = 0
    statuses: list[int] = field(default_factory=list)
    """Statuses of the next responses with tokens; empty for 200 only."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        form = {name: values[0] for name, values in parse_qs(received.body.decode(errors="replace")).items()}
        match received.path:
            case "/token" if form["grant_type"] == "refresh_token":
                if form["refresh_token"] != REFRESH_TOKEN:
                    raise RefusedError("a wrong login")
                return self._token("user")
            case "/token":
                return self._token(f"account {self._verified(form['assertion'])}")
            case "/sts":
                if form["subject_token"] != SUBJECT_TOKEN or form["scope"] != SCOPE:
                    raise RefusedError("a wrong identity")
                return self._token("workload", issued_token_type="urn:ietf:params:oauth:token-type:access_token")
            case "/impersonation" if time.time() < self.expiries.get(received.headers["authorization"], 0):
                assert received.json["scope"] == [SCOPE]
                expiry = datetime.fromtimestamp(time.time() + self.seconds, UTC)
                self.reads.append("impersonation")
                self.expiries[f"Bearer ya29.{len(self.reads)}"] = expiry.timestamp()
                found = {"accessToken": f"ya29.{len(self.reads)}", "expireTime": f"{expiry:%Y-%m-%dT%H:%M:%SZ}"}
                return web.json_response(found)
            case "/":
                return web.Response(headers={"Metadata-Flavor": "Google"})
            case path if path.startswith(METADATA):
                return self._metadata(path.removeprefix(METADATA), received)
        if time.time() >= self.expiries.get(received.headers.get("authorization", ""), 0):
            raise RefusedError("a wrong or expired token", status=401)
        self.accepted += 1
        return web.json_response({**CHAT, "project": received.headers.get("x-goog-user-project")})

    def refuse(self, refused: RefusedError) -> web.StreamResponse:
        return web.json_response({"error": "refused", "error_description": refused.message}, status=refused.status)

    def _verified(self, assertion: str) -> str:
        certificate = PUBLIC_KEY.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        claims = jwt.decode(assertion, certs={"k1": certificate}, audience=AUDIENCE)
        assert claims["iss"] == EMAIL
        return str(claims["scope"])

    def _metadata(self, path: str, received: ReceivedRequest) -> web.StreamResponse:
        if received.headers.get("metadata-flavor") != "Google":
            raise RefusedError("the header of metadata is missing", status=403)
        flavor = {"Metadata-Flavor": "Google"}
        match path:
            case "project/project-id":
                return web.Response(text="project-of-the-machine", headers=flavor)
            case "universe/universe-domain" | "universe/universe_domain":
                return web.Response(text="googleapis.com", headers=flavor)
            case "instance/service-accounts/default/":
                return web.json_response({"email": EMAIL, "scopes": [SCOPE]}, headers=flavor)
        assert path.endswith("/token"), path
        return self._token("machine")

    def _token(self, way: str, **further: str) -> web.StreamResponse:
        status = self.statuses.pop(0) if self.statuses else 200
        if status != 200:
            raise RefusedError("the issuer is down", status=status)
        self.reads.append(way)
        self.expiries[f"Bearer ya29.{len(self.reads)}"] = time.time() + self.seconds
        token = {"access_token": f"ya29.{len(self.reads)}", "expires_in": self.seconds, "token_type": "Bearer"}
        return web.json_response(token | further, headers={"Metadata-Flavor": "Google"})


def account_file(url: str) -> str:
    return json.dumps(
        {
            "type": "service_account",
            "client_email": EMAIL,
            "private_key": PEM,
            "private_key_id": "k1",
            "token_uri": f"{url}/token",
            "project_id": "p",
        }
    )


def user_file(url: str) -> str:
    return json.dumps(
        {
            "type": "authorized_user",
            "client_id": "c",
            "client_secret": "s",
            "refresh_token": REFRESH_TOKEN,
            "token_uri": f"{url}/token",
            "quota_project_id": "quota-of-the-file",
        }
    )


def workload_file(url: str, subject: str) -> str:
    return json.dumps(
        {
            "type": "external_account",
            "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": f"{url}/sts",
            "credential_source": {"file": subject},
        }
    )
