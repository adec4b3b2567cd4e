"""Authentication of calls by tokens of issuers (JWT). A verified token stays in memory until it expires, so that a
further call with it costs as much as one with a key.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.access.cached_api_keys import KnownKey, Rejection
from umg_grpc.access.issuer_keys import Fetch
from umg_grpc.access.issuer_roles import IssuerRoles
from umg_grpc.access.principals import Principal
from umg_grpc.access.token_callers import (
    KnownToken,
    TokenCaller,
    TokenCallerRows,
    models_of,
    project_of,
    token_caller,
)
from umg_grpc.access.token_verification import MAX_TOKEN_CHARACTERS, Claims, IssuerTokens, unverified_issuer
from umg_grpc.base.errors import UmgError
from umg_grpc.config.sign_on_section import Issuer, SignOn
from umg_grpc.v1 import pb

MAX_KNOWN_TOKENS = 20_000
RETRY_SECONDS = 1.0
REVOKED_MESSAGE = "the gateway's operator has revoked the access of this token's subject"


class CallerRows(Protocol):
    """Rows of the table of keys in memory, by the texts in the place of the hashes of secrets."""

    def usable_row(self, digest: str) -> KnownKey | None:
        """Return a valid row in memory; None if it is not there or has to be looked up."""

    async def look_up_row(self, digest: str) -> KnownKey | Rejection | None:
        """Return a row of the database, or why it is invalid; None if the database does not answer."""


class TokenAuthenticator:
    """Authenticator of callers by the tokens of all issuers in the config."""

    def __init__(
        self, section: SignOn, fetch: Fetch, rows: TokenCallerRows, roles: IssuerRoles, now: Callable[[], float]
    ) -> None:
        """Create an authenticator. `fetch`: sends requests to issuers; `now`: returns the Unix time."""
        self._rows = rows
        self._roles = roles
        self._now = now
        self.by_digest: dict[str, KnownToken] = {}
        """Verified tokens by the hashes of their texts, oldest first."""
        self.issuers: Mapping[str, IssuerTokens] = {
            issuer.issuer: IssuerTokens(issuer, fetch, now, self._forget_all) for issuer in section.issuers
        }

    async def aclose(self) -> None:
        """Stop the reads of keys in the background."""
        for issuer in self.issuers.values():
            await issuer.keys.aclose()

    async def authenticate(self, token: str, digest: str, rows: CallerRows) -> KnownToken:
        """Return a verified token, and remember it by its hash. Raise UmgError: INVALID_KEY, KEY_EXPIRED, UNAVAILABLE
        if the issuer or the database is needed and does not answer.
        """
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, f"a token has at most {MAX_TOKEN_CHARACTERS} characters")
        tokens = self.issuers.get(unverified_issuer(token))
        if tokens is None or (section := tokens.issuer.callers) is None:
            message = "tokens of this issuer are no credentials here; the gateway's config lists its issuers"
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, message)
        claims = await tokens.verify(token, section.audiences)
        reference = project_of(claims, section)
        project_id = await self._rows.project_id(reference) if reference else ""
        caller = token_caller(tokens.issuer, claims, project_id)
        row = rows.usable_row(caller.caller_id) or await self._look_up(caller, rows)
        principal = await self._principal(tokens.issuer, claims, row)
        if not row.caller.user_id:  # also beside roles of the token: disabling the user ends its tokens
            with suppress(SQLAlchemyError, OSError, TimeoutError):  # the next token does it
                await self._rows.assign_user(caller)
        known = KnownToken(row, section, models_of(claims, section), tokens.expires_at(claims), principal)
        self.by_digest.pop(digest, None)
        self.by_digest[digest] = known
        if len(self.by_digest) > MAX_KNOWN_TOKENS:
            del self.by_digest[next(iter(self.by_digest))]
        return known

    async def _look_up(self, caller: TokenCaller, rows: CallerRows) -> KnownKey:
        found = await rows.look_up_row(caller.caller_id)
        if found is Rejection.UNKNOWN:
            try:
                await self._rows.create(caller)
                found = await rows.look_up_row(caller.caller_id)
            except (SQLAlchemyError, OSError, TimeoutError):
                found = None
        if isinstance(found, Rejection):
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, REVOKED_MESSAGE)
        if found is None:
            message = "the token's caller cannot be checked at the moment; try again"
            raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds=f"{RETRY_SECONDS:g}")
        return found

    async def _principal(self, issuer: Issuer, claims: Claims, row: KnownKey) -> Principal | None:
        """Return the roles that the claims of a token give; None if they give none."""
        if not issuer.roles:
            return None
        try:
            memberships = await self._roles.memberships(issuer, claims)
        except (UmgError, SQLAlchemyError, OSError, TimeoutError):
            return None
        return Principal(row.caller.user_id, row.caller.name, tuple(memberships)) if memberships else None

    def _forget_all(self) -> None:
        """Forget the verified tokens, also in connections that refer to them: their keys may have been withdrawn."""
        for known in self.by_digest.values():
            known.expires_at = float("-inf")
        self.by_digest.clear()
