"""Callers whose credentials are tokens of an issuer. Each is a row of the table of keys without a secret, so that its
usage, limits, budgets and revocation are those of a key.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import NamedTuple

from sqlalchemy import Select, or_, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from umg_grpc.access.api_keys import new_row
from umg_grpc.access.cached_api_keys import KnownKey
from umg_grpc.access.caller_identity import Caller
from umg_grpc.access.key_settings import ISSUED_CALLER_PREFIX, MAX_NAME_CHARACTERS, MAX_OWNER_CHARACTERS
from umg_grpc.access.principals import Principal
from umg_grpc.access.token_verification import Claims, claim_values
from umg_grpc.base.errors import UmgError
from umg_grpc.base.wildcard_patterns import matcher
from umg_grpc.config.sign_on_section import Issuer, TokenCallers
from umg_grpc.store import Store
from umg_grpc.store.database import repeated, repeated_idempotent
from umg_grpc.store.database_time import utc_of
from umg_grpc.store.table_definitions import AccountRow, ApiKey
from umg_grpc.store.user_tables import UserRow
from umg_grpc.v1 import pb

ISSUER_TAG = "issuer"
"""Tag of the rows with the name of the issuer in the config."""
NO_MODEL = ""
"""Pattern that no model matches, for an empty list of models, which would allow all."""


class TokenCaller(NamedTuple):
    """Caller of a token: the subject of an issuer, in a project."""

    caller_id: str
    """Id of its row, which is also in the place of the hash of a secret: no hash has this form."""
    issuer: Issuer
    subject: str
    project_id: str
    owner: str
    """Name of the subject for people, as the token states it."""


@dataclass(slots=True, eq=False)
class KnownToken:
    """Verified token in memory, with the row of its caller."""

    row: KnownKey
    section: TokenCallers
    model_patterns: tuple[str, ...]
    """Models of the token; empty allows all."""
    expires_at: float
    principal: Principal | None = None
    """Roles that the claims of the token give; None for those of the caller's user."""
    caller: Caller | None = None
    base: Caller | None = None
    """Caller of the row from which `caller` was made."""

    def caller_of(self, base: Caller) -> Caller:
        """Return the caller of the token. `base`: caller of its row, as it is now."""
        if self.caller is None or self.base is not base:
            self.base, self.caller = base, self._made(base)
        return self.caller

    def _made(self, base: Caller) -> Caller:
        section, models = self.section, self.model_patterns
        if models and base.model_patterns:  # a pattern within another one has it as a match
            models = tuple(filter(matcher(base.model_patterns).match, models)) or (NO_MODEL,)
        return replace(
            base,
            model_patterns=models or base.model_patterns,
            requests_per_minute=_first(base.requests_per_minute, section.rpm),
            tokens_per_minute=_first(base.tokens_per_minute, section.tpm),
            concurrent_requests=_first(base.concurrent_requests, section.concurrency),
            administrator=self.principal is not None and self.principal.owns_gateway,
            principal=self.principal,
        )


def models_of(claims: Claims, section: TokenCallers) -> tuple[str, ...]:
    """Return the patterns of the models that a token allows; empty for all models."""
    if section.models_claim is None:
        return section.models
    named = tuple(" ".join(claim_values(claims, section.models_claim)).split())
    return named or section.models or (NO_MODEL,)


def project_of(claims: Claims, section: TokenCallers) -> str:
    """Return the name or id of the project of a token; "" for none. Raise UmgError(INVALID_KEY) for several, and for
    one that is no name.
    """
    found = claim_values(claims, section.project_claim) if section.project_claim is not None else ()
    if len(found) > 1:
        message = f"the token's `{section.project_claim}` names several projects; request a token for one"
        raise UmgError(pb.ERROR_REASON_INVALID_KEY, message)
    project = found[0] if found else section.project or ""
    if not project.isprintable():  # half a surrogate pair, for example, which no database can compare
        message = (
            f"the token's `{section.project_claim}` is not the name or id of a project; it has unprintable characters"
        )
        raise UmgError(pb.ERROR_REASON_INVALID_KEY, message)
    return project


def token_caller(issuer: Issuer, claims: Claims, project_id: str) -> TokenCaller:
    """Return the caller of verified claims. A subject is another caller in another project, as it would need another
    key there.
    """
    subject = str(claims["sub"])
    digest = hashlib.sha256(f"{issuer.issuer}\0{subject}\0{project_id}".encode()).hexdigest()
    names = (*claim_values(claims, "email"), *claim_values(claims, "preferred_username"), subject)
    owner = next((name for name in names if len(name) <= MAX_OWNER_CHARACTERS and name.isprintable()), "").strip()
    return TokenCaller(ISSUED_CALLER_PREFIX + digest[:32], issuer, subject, project_id, owner)


class TokenCallerRows:
    """Rows of callers of tokens in the table of keys."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._projects = dict[str, str]()
        """Reference to a project -> its id, for the time in which the database is unavailable."""

    async def project_id(self, reference: str) -> str:
        """Return the id of the project with a name or id. Raise UmgError: INVALID_KEY if there is none, UNAVAILABLE if
        the database does not answer and the project is not known here.
        """
        try:
            found = await self._find_project(reference)
        except (SQLAlchemyError, OSError, TimeoutError):
            found = self._projects.get(reference)
            if found is None:
                message = "the token's project cannot be read at the moment; try again"
                raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds="1") from None
        if found is None:
            self._projects.pop(reference, None)
            message = f"the token's project `{reference[:MAX_NAME_CHARACTERS]}` does not exist here; create it first"
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, message)
        self._projects[reference] = found
        return found

    @repeated
    async def _find_project(self, reference: str) -> str | None:
        named = (AccountRow.name == reference) & AccountRow.close_time.is_(None)
        query = select(AccountRow.account_id).where(
            AccountRow.kind == "project", or_(AccountRow.account_id == reference, named)
        )
        async with self._store.read() as session:
            found: str | None = await session.scalar(query)
        return found

    async def create(self, caller: TokenCaller) -> None:
        """Create the row of a caller; it stays as it is if it exists. Raises SQLAlchemyError."""
        name = f"{caller.issuer.name}:{caller.subject}"
        for candidate in (name, caller.caller_id) if len(name) <= MAX_NAME_CHARACTERS else (caller.caller_id,):
            try:
                await self._insert(caller, candidate)
            except IntegrityError:  # a key has the name, or another process created the row
                continue
            return

    @repeated_idempotent
    async def _insert(self, caller: TokenCaller, name: str) -> None:
        row = new_row("", name, utc_of(self._store.clock))
        row.key_id = row.secret_hash = caller.caller_id
        row.prefix, row.owner, row.tags = "", caller.owner, {ISSUER_TAG: caller.issuer.name}
        row.project_id = caller.project_id or None
        async with self._store.write() as session:
            if await session.get(ApiKey, caller.caller_id) is None:
                row.user_id = await session.scalar(_user_of(caller))
                session.add(row)

    @repeated_idempotent
    async def assign_user(self, caller: TokenCaller) -> None:
        """Assign a caller to the user with the same issuer and subject, if there is one. Raises SQLAlchemyError."""
        async with self._store.read() as session:
            user_id = await session.scalar(_user_of(caller))
        if user_id is not None:
            async with self._store.write() as session:
                await session.execute(update(ApiKey).where(ApiKey.key_id == caller.caller_id).values(user_id=user_id))


def _user_of(caller: TokenCaller) -> Select[str]:
    return select(UserRow.user_id).where(UserRow.issuer == caller.issuer.issuer, UserRow.subject == caller.subject)


def _first(limit: int | None, default: int | None) -> int | None:
    return default if limit is None else limit
