"""Fake issuers of tokens of Entra ID (authority, instance and App Service metadata), and a service that accepts them."""

import ssl
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

import trustme
from aiohttp import web

from tests.support.providers.server import FakeProvider, ReceivedRequest, RefusedError
from tests.support.serving import serving

TENANT, CLIENT, SECRET = "tenant-1", "client-1", "secret-of-the-application"
FEDERATED_TOKEN, APP_SERVICE_SECRET = "token-of-another-issuer", "secret-of-app-service"
AUDIENCE = "https://cognitiveservices.azure.com"


@dataclass(kw_only=True)
class AzureIssuer(FakeProvider):
    """Issuer and service. Each token is valid for `seconds`."""

    authority: str = ""
    """URL of the authority, which has TLS."""
    seconds: int = 3600
    reads: list[str] = field(default_factory=list)
    """Ways of the requests for tokens, in order."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        form = {name: values[0] for name, values in parse_qs(received.body.decode(errors="replace")).items()}
        match received.path:
            case path if path.endswith("/.well-known/openid-configuration"):
                at = f"{self.authority}/{TENANT}/oauth2/v2.0"
                found = {"issuer": f"{self.authority}/{TENANT}/v2.0", "authorization_endpoint": f"{at}/authorize"}
                return web.json_response(found | {"token_endpoint": f"{at}/token"})
            case path if path == f"/{TENANT}/oauth2/v2.0/token":
                return self._authority(form)
            case "/metadata/identity/oauth2/token":
                if received.headers.get("metadata") != "true":
                    raise RefusedError("the header of metadata is missing")
                return self._machine("instance", received)
            case "/app-service":
                if received.headers.get("x-identity-header") != APP_SERVICE_SECRET:
                    raise RefusedError("a wrong secret", status=401)
                return self._machine("app service", received)
        if received.headers.get("authorization") != f"Bearer eyJ.{len(self.reads)}":
            raise RefusedError("a wrong token", status=401)
        return web.json_response({})

    def refuse(self, refused: RefusedError) -> web.StreamResponse:
        return web.json_response(
            {"error": "invalid_client", "error_description": refused.message}, status=refused.status
        )

    def _authority(self, form: dict[str, str]) -> web.StreamResponse:
        if (form["grant_type"], form["client_id"], form["scope"]) != (
            "client_credentials",
            CLIENT,
            f"{AUDIENCE}/.default",
        ):
            raise RefusedError("a wrong application")
        if form.get("client_secret") == SECRET:
            return self._token("secret")
        if form.get("client_assertion") == FEDERATED_TOKEN:
            return self._token("workload")
        raise RefusedError("AADSTS7000215: Invalid client secret provided", status=401)

    def _machine(self, way: str, received: ReceivedRequest) -> web.StreamResponse:
        if received.query["resource"] != AUDIENCE:
            raise RefusedError("a wrong resource")
        return self._token(f"{way} {received.query.get('client_id', '')}".strip())

    def _token(self, way: str) -> web.StreamResponse:
        self.reads.append(way)
        return web.json_response(
            {
                "token_type": "Bearer",
                "access_token": f"eyJ.{len(self.reads)}",
                "expires_in": self.seconds,
                "expires_on": str(int(time.time()) + self.seconds),
                "resource": AUDIENCE,
            }
        )


@asynccontextmanager
async def serve_azure(issuer: AzureIssuer, folder: Path) -> AsyncGenerator[str, None]:
    """Serve an issuer with and without TLS. Yield the file with the authority of its certificate."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    options = {"handler_cancellation": True, "shutdown_timeout": 0.1}
    async with (
        serving(app_of(issuer), ssl_context=context, **options) as issuer.authority,
        serving(app_of(issuer), **options) as issuer.url,
    ):
        yield str(folder / "ca.pem")


def app_of(issuer: AzureIssuer) -> web.Application:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = await issuer.handle(request)
        response.force_close()  # so that no connection with TLS is left to be closed at the end of the test
        return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    return app
