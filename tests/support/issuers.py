"""OpenID Connect issuer on a free port, whose keys, tokens and faults a test controls."""

import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from tests.support.serving import serving

AUDIENCE = "umg-api"


@dataclass(frozen=True)
class SigningKey:
    """Key of an issuer with its id and algorithm."""

    kid: str
    algorithm: str
    private: PrivateKeyTypes

    @classmethod
    def generated(cls, kid: str, algorithm: str = "ES256") -> "SigningKey":
        if algorithm.startswith("ES"):
            return cls(kid, algorithm, ec.generate_private_key(ec.SECP256R1()))
        return cls(kid, algorithm, rsa.generate_private_key(public_exponent=65537, key_size=2048))

    @property
    def jwk(self) -> dict[str, Any]:
        public = self.private.public_key()  # type: ignore[union-attr]
        found = json.loads(jwt.get_algorithm_by_name(self.algorithm).to_jwk(public))
        return {**found, "kid": self.kid, "alg": self.algorithm, "use": "sig"}

    @property
    def public_pem(self) -> bytes:
        public = self.private.public_key()  # type: ignore[union-attr]
        return public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


@dataclass
class TestIssuer:
    """Issuer whose faults are attributes."""

    __test__ = False

    url: str = ""
    keys: list[SigningKey] = field(default_factory=lambda: [SigningKey.generated("first")])
    is_away: bool = False
    named_issuer: str | None = None
    """Issuer in its metadata, if not its own URL."""
    key_reads: int = 0
    id_token: str | None = None
    """Token for the next code; None if the issuer refuses codes."""
    forms: list[dict[str, str]] = field(default_factory=list)
    """Forms with which codes were exchanged."""

    def claims(self, now: float, **changes: Any) -> dict[str, Any]:
        """Return claims of a valid token. A change to None removes a claim."""
        found = {"iss": self.url, "sub": "ada", "aud": AUDIENCE, "iat": int(now), "exp": int(now) + 600, **changes}
        return {name: value for name, value in found.items() if value is not None}

    def token(self, now: float, **changes: Any) -> str:
        """Return a token that its newest key signs."""
        return self.signed(self.claims(now, **changes))

    def signed(self, claims: dict[str, Any], key: SigningKey | None = None, **header: Any) -> str:
        key = key or self.keys[-1]
        return jwt.encode(claims, key.private, key.algorithm, headers={"kid": key.kid, **header})  # type: ignore[arg-type]

    async def metadata(self, request: web.Request) -> web.Response:
        if self.is_away:
            return web.Response(status=503)
        issuer = self.named_issuer or self.url
        paths = {"jwks_uri": "keys", "authorization_endpoint": "authorize", "token_endpoint": "token"}
        return web.json_response({"issuer": issuer} | {name: f"{self.url}/{path}" for name, path in paths.items()})

    async def exchange(self, request: web.Request) -> web.Response:
        self.forms.append({name: str(value) for name, value in (await request.post()).items()})
        if self.id_token is None:
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response({"id_token": self.id_token, "access_token": "unused", "token_type": "Bearer"})

    async def key_set(self, request: web.Request) -> web.Response:
        self.key_reads += 1
        return web.json_response({"keys": [key.jwk for key in self.keys]})


def unsigned(claims: dict[str, Any]) -> str:
    """Return a token of the algorithm `none`."""
    parts = ({"alg": "none", "typ": "JWT"}, claims)
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts), ""])


@asynccontextmanager
async def serving_issuer(issuer: TestIssuer | None = None) -> AsyncGenerator[TestIssuer, None]:
    """Serve an issuer until the context ends."""
    issuer = issuer or TestIssuer()
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", issuer.metadata)
    app.router.add_get("/keys", issuer.key_set)
    app.router.add_post("/token", issuer.exchange)
    async with serving(app) as url:
        issuer.url = url
        yield issuer
