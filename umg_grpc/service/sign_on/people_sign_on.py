"""Sign-on of people: by an issuer (OpenID Connect, code flow with PKCE), by a key, or by a code of the start."""

import base64
import hmac
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import structlog

from umg_grpc.access.issuer_keys import Fetch, IssuerAwayError, Metadata
from umg_grpc.access.issuer_roles import IssuerRoles
from umg_grpc.access.sessions import SessionClient, UserSession, UserSessions
from umg_grpc.access.token_verification import Claims, IssuerTokens, claim_values
from umg_grpc.access.users import User, Users
from umg_grpc.base.errors import UmgError
from umg_grpc.config.sign_on_section import Issuer
from umg_grpc.service.servicers.administration_errors import converted_errors
from umg_grpc.service.sign_on.sign_in_attempts import AttemptCodec, new_attempt
from umg_grpc.v1 import pb

CALLBACK_PATH = "/auth/callback"
RETURN_ROOT = "/"
BASIC_METHOD = "client_secret_basic"

logger = structlog.get_logger(__name__)


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str


class PeopleSignOn:
    """Sign-on of people, for the HTTP face in the same process."""

    def __init__(
        self,
        tokens: Iterable[IssuerTokens],
        fetch: Fetch,
        sessions: UserSessions,
        users: Users,
        roles: IssuerRoles,
        attempts: AttemptCodec,
        base_url: Callable[[], str],
    ) -> None:
        """Create a sign-on with the issuers at which people sign in. `base_url`: returns the URL of the gateway for
        browsers, without a trailing slash.
        """
        self._tokens = {each.issuer.name: each for each in tokens if each.issuer.client_id is not None}
        self._fetch = fetch
        self._sessions = sessions
        self._users = users
        self._roles = roles
        self._attempts = attempts
        self._base_url = base_url

    @property
    def base_url(self) -> str:
        """URL of the gateway for browsers, without a trailing slash."""
        return self._base_url()

    @property
    def issuers(self) -> Mapping[str, str]:
        """Names of the issuers at which people sign in, with their titles."""
        return {name: each.issuer.title or name for name, each in self._tokens.items()}

    async def begin(self, name: str, return_path: str) -> tuple[str, str]:
        """Return the URL at the issuer `name` to which the browser is led, and the text that it keeps until it returns.
        Raise UmgError: OBJECT_NOT_FOUND, UNAVAILABLE if the issuer does not answer.
        """
        tokens = self._issuer(name)
        metadata = await tokens.keys.metadata()
        attempt = new_attempt(name, local_path(return_path))
        query = {
            "response_type": "code",
            "client_id": tokens.issuer.client_id,
            "redirect_uri": self.base_url + CALLBACK_PATH,
            "scope": " ".join(tokens.issuer.scopes),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
        }
        separator = "&" if urlsplit(metadata.authorization_endpoint).query else "?"
        url = f"{metadata.authorization_endpoint}{separator}{urlencode(query)}"
        return url, self._attempts.encode(attempt)

    async def complete(self, kept: str, query: Mapping[str, str], client: SessionClient) -> tuple[str, str]:
        """Complete a sign-in by the parameters with which the issuer led the browser back. Return the token of the new
        session, and the path to lead the browser to. `kept`: text of `begin`. Raise UmgError: INVALID_FIELD for another
        sign-in, INVALID_KEY for an invalid response, PERMISSION_DENIED, UNAVAILABLE.
        """
        attempt = self._attempts.decode(kept)
        if attempt is None or not hmac.compare_digest(attempt.state.encode(), query.get("state", "").encode()):
            start = f"{self.base_url}/auth/login"
            message = f"this sign-in was not begun in this browser, or is older than 10 minutes; begin again at {start}"
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="state")
        tokens = self._issuer(attempt.issuer)
        if query.get("iss", tokens.issuer.issuer) != tokens.issuer.issuer:  # RFC 9207
            raise _refused("another issuer has answered")
        if "error" in query or "code" not in query:
            reason = query.get("error_description") or query.get("error") or "it sent no code"
            raise _refused(f"the issuer refused the sign-in: {_shown(reason)}")
        encoded = await self._exchange(tokens, query["code"], attempt.verifier)
        claims = await tokens.verify(encoded, [tokens.issuer.client_id or ""])
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), attempt.nonce.encode()):
            raise _refused("the issuer's token was made for another sign-in")
        if isinstance(claims["aud"], list) and claims.get("azp", tokens.issuer.client_id) != tokens.issuer.client_id:
            raise _refused("the issuer's token was made for another client")
        async with converted_errors():
            user = await self._sign_in(tokens.issuer, claims)
            return await self._sessions.open_of_user(user, client), attempt.return_path

    async def open_by_key(self, secret: str, client: SessionClient) -> str:
        """Return the token of a new session that a key opens. Raise UmgError as `UserSessions.open_of_key`."""
        async with converted_errors():
            return await self._sessions.open_of_key(secret, client)

    async def open_by_code(self, code: str, client: SessionClient) -> str:
        """Return the token of a new session that a code of the start opens. Raise UmgError(INVALID_KEY)."""
        async with converted_errors():
            return await self._sessions.open_by_code(code, client)

    async def new_code(self, key_id: str) -> str:
        """Return a code that opens one session of a key."""
        return await self._sessions.new_code(key_id)

    async def session(self, token: str) -> UserSession | None:
        """Return the session with a token; None if it has ended."""
        async with converted_errors():
            return await self._sessions.get(token)

    async def end(self, token: str) -> None:
        """End a session."""
        async with converted_errors():
            await self._sessions.end(token)

    def _issuer(self, name: str) -> IssuerTokens:
        if (tokens := self._tokens.get(name)) is None:
            message = "there is no such issuer here; choose one of the page"
            raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=name[:32])
        return tokens

    async def _exchange(self, tokens: IssuerTokens, code: str, verifier: str) -> str:
        """Return the token of a person, for the code with which the issuer led the browser back."""
        issuer, metadata = tokens.issuer, await tokens.keys.metadata()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.base_url + CALLBACK_PATH,
            "code_verifier": verifier,
        }
        added, headers = _authentication(issuer, metadata)
        try:
            body = await self._fetch(metadata.token_endpoint, issuer.timeout, {**form, **added}, headers)
            return msgspec.json.decode(body, type=_Tokens).id_token
        except (IssuerAwayError, msgspec.DecodeError) as error:
            logger.warning("an issuer gave no token for a code", issuer=issuer.issuer, reason=str(error)[:300])
            raise _refused("the issuer gave no token; begin again, and ask an administrator if it stays so") from None

    async def _sign_in(self, issuer: Issuer, claims: Claims) -> User:
        memberships = await self._roles.memberships(issuer, claims)
        email = (*claim_values(claims, "email"), "")[0] if claims.get("email_verified") is True else ""
        names = (*claim_values(claims, "name"), *claim_values(claims, "preferred_username"), "")
        if not memberships and not await self._sessions.is_known(issuer.issuer, claims["sub"], email):
            message = "you have no role here; ask the gateway's administrators for one"
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation="sign_in")
        return await self._users.sign_in(
            issuer.issuer, claims["sub"], name=names[0], email=email, memberships=memberships
        )


def local_path(path: str) -> str:
    """Return a path of this gateway unchanged, and `/` for any other text: a browser is never led elsewhere."""
    is_local = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isascii() and path.isprintable()
    return path if is_local and "\\" not in path else RETURN_ROOT


def _authentication(issuer: Issuer, metadata: Metadata) -> tuple[dict[str, str], dict[str, str]]:
    """Return the form fields and headers by which the client authenticates (OpenID Connect Core 1.0, section 9)."""
    client_id, secret = issuer.client_id or "", issuer.client_secret
    if secret is None:
        return {"client_id": client_id}, {}
    if BASIC_METHOD not in metadata.token_endpoint_auth_methods_supported:
        return {"client_id": client_id, "client_secret": secret}, {}
    credentials = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
    return {}, {"Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}"}


def _shown(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())[:200]


def _refused(message: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_INVALID_KEY, message)
