"""Fake issuers of AWS credentials (STS, single sign-on, container, instance), and a service that verifies signatures by
botocore.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qs

from aiohttp import web
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.support.providers.server import FakeProvider, ReceivedRequest, RefusedError

REGION, SERVICE = "us-east-1", "bedrock"
LONG_LIVED = ("AKIALONGLIVED0000000", "long-lived-secret-of-a-user")
ROLE = "arn:aws:iam::123456789012:role/gateway"
CONTAINER_TOKEN, INSTANCE_TOKEN, LOGIN = "container-token", "instance-token", "sso-access-token"
CHAT = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


@dataclass(frozen=True)
class Issued:
    secret: str
    token: str
    expiry: float


@dataclass(kw_only=True)
class AwsIssuer(FakeProvider):
    """Issuer and service at one address. Each credential is valid for `seconds`."""

    seconds: float = 3600
    issued: dict[str, Issued] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    """Ways of the requests for credentials, in order."""
    statuses: list[int] = field(default_factory=list)
    """Statuses of the next responses of STS, 200 for a credential; empty for credentials only."""
    revoked: set[str] = field(default_factory=set)
    accepted: int = 0

    def issue(self, way: str) -> tuple[str, Issued]:
        self.reads.append(way)
        key = f"ASIA{len(self.issued):016d}"
        self.issued[key] = Issued(f"secret-of-{key}", f"token-of-{key}/+==", time.time() + self.seconds)
        return key, self.issued[key]

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        match received.method, received.path:
            case "POST", "/":
                return self._sts(received)
            case "GET", "/container":
                if received.headers.get("authorization") != CONTAINER_TOKEN:
                    raise RefusedError("no token of the container", status=403)
                return self._metadata("container")
            case "PUT", "/latest/api/token":
                return web.Response(text=INSTANCE_TOKEN)
            case "GET", path if path.startswith("/latest/meta-data/iam/security-credentials/"):
                if received.headers.get("x-aws-ec2-metadata-token") != INSTANCE_TOKEN:
                    raise RefusedError("IMDSv2 needs a token", status=401)
                return self._metadata("instance") if path.endswith("/gateway") else web.Response(text="gateway")
            case "GET", "/federation/credentials":
                return self._single_sign_on(received)
        return self._service(received)

    def refuse(self, refused: RefusedError) -> web.StreamResponse:
        return web.json_response(
            {"message": refused.message}, status=refused.status, headers={"x-amzn-ErrorType": refused.code or "Other"}
        )

    def _sts(self, received: ReceivedRequest) -> web.StreamResponse:
        form = {name: values[0] for name, values in parse_qs(received.body.decode()).items()}
        action = form["Action"]
        status = self.statuses.pop(0) if self.statuses else 200
        if status != 200:
            self.reads.append(f"{status}")
            return web.Response(status=status, text="<ErrorResponse><Error><Code>Broken</Code></Error></ErrorResponse>")
        if action == "AssumeRole":
            self._verify(received, "sts")
        elif form.get("WebIdentityToken") != "web-identity-token":
            raise RefusedError("a wrong web identity")
        if form["RoleArn"] != ROLE:
            raise RefusedError("a wrong role")
        key, issued = self.issue(" ".join([action, form["RoleSessionName"], form.get("ExternalId", "")]).strip())
        return web.Response(
            content_type="text/xml",
            text=(
                f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result><Credentials>'
                f"<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{issued.secret}</SecretAccessKey>"
                f"<SessionToken>{issued.token}</SessionToken><Expiration>{_iso(issued.expiry)}</Expiration>"
                f"</Credentials></{action}Result></{action}Response>"
            ),
        )

    def _metadata(self, way: str) -> web.StreamResponse:
        key, issued = self.issue(way)
        return web.json_response(
            {
                "Code": "Success",
                "AccessKeyId": key,
                "SecretAccessKey": issued.secret,
                "Token": issued.token,
                "Expiration": _iso(issued.expiry),
            }
        )

    def _single_sign_on(self, received: ReceivedRequest) -> web.StreamResponse:
        if received.headers.get("x-amz-sso_bearer_token") != LOGIN:
            raise RefusedError("not logged in", status=401)
        key, issued = self.issue(f"sso {received.query['account_id']} {received.query['role_name']}")
        found = {
            "accessKeyId": key,
            "secretAccessKey": issued.secret,
            "sessionToken": issued.token,
            "expiration": int(issued.expiry * 1000),
        }
        return web.json_response({"roleCredentials": found})

    def _service(self, received: ReceivedRequest) -> web.StreamResponse:
        self._verify(received, SERVICE)
        self.accepted += 1
        return web.json_response(CHAT)

    def _verify(self, received: ReceivedRequest, service: str) -> None:
        """Raise RefusedError unless botocore makes the same signature with a credential that is valid now."""
        headers = received.headers
        key = headers["authorization"].partition("Credential=")[2].partition("/")[0]
        if key == LONG_LIVED[0]:
            secret, token = LONG_LIVED[1], ""
        else:
            issued = self.issued[key]
            secret, token = issued.secret, issued.token
            if key in self.revoked or time.time() >= issued.expiry:
                raise RefusedError(
                    "The security token included in the request is expired", None, "ExpiredTokenException", 403
                )
        if headers.get("x-amz-security-token", "") != token or headers["authorization"] != self._signed(
            received, Credentials(key, secret, token or None), service
        ):
            raise RefusedError("The request signature does not match", None, "InvalidSignatureException", 403)

    def _signed(self, received: ReceivedRequest, credentials: Credentials, service: str) -> str:
        """Return the header `Authorization` that botocore makes for a request, over the headers that it has signed."""
        names = received.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
        sent: Mapping[str, str] = {name: received.headers[name] for name in names if name != "host"}
        request = AWSRequest(received.method, self.url + received.path, dict(sent), received.body)
        request.context["timestamp"] = received.headers["x-amz-date"]
        request.headers["host"] = received.headers["host"]
        auth = SigV4Auth(credentials, service, REGION)
        text = auth.string_to_sign(request, auth.canonical_request(request))
        scope = auth.scope(request)
        return (
            f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={';'.join(names)}, "
            f"Signature={auth.signature(text, request)}"
        )


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
