"""Roles that the groups or roles of an issuer's token give, by the config."""

from collections.abc import Collection

from sqlalchemy import or_, select

from umg_grpc.access.principals import WHOLE_GATEWAY, Membership, Role
from umg_grpc.access.token_verification import Claims, claim_values, is_left_out
from umg_grpc.base.errors import UmgError
from umg_grpc.base.wildcard_patterns import matcher
from umg_grpc.config.sign_on_section import Issuer, RoleOfClaim
from umg_grpc.store import Store
from umg_grpc.store.database import repeated
from umg_grpc.store.table_definitions import AccountRow
from umg_grpc.v1 import pb


def matched_rows(issuer: Issuer, claims: Claims) -> list[RoleOfClaim]:
    """Return the rows of the config whose values the claim has. Raise UmgError(PERMISSION_DENIED) if the issuer left
    the claim out because the person is in too many groups.
    """
    values = claim_values(claims, issuer.roles_claim)
    if not values and is_left_out(claims, issuer.roles_claim):
        message = (
            f"the issuer left `{issuer.roles_claim}` out of your token, since you are in too many groups; an"
            " administrator has to set `roles_claim` to the roles of the application"
        )
        raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation="sign_in")
    return [row for row in issuer.roles if any(matcher([row.value]).match(value) for value in values)]


class IssuerRoles:
    """Source of memberships by claims: finds the accounts that the config names."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def memberships(self, issuer: Issuer, claims: Claims) -> list[Membership]:
        """Return the memberships of a token, without those in accounts that do not exist. Raise UmgError as
        `matched_rows`.
        """
        rows = matched_rows(issuer, claims)
        accounts = await self._accounts({row.project or row.organization or "" for row in rows} - {""})
        found = list[Membership]()
        for row in rows:
            kind, reference = ("project", row.project) if row.project else ("organization", row.organization)
            account = WHOLE_GATEWAY if not reference else accounts.get((kind, reference))
            if account is not None:
                found.append(Membership(account, Role(row.role)))
        return found

    @repeated
    async def _accounts(self, references: Collection[str]) -> dict[tuple[str, str], str]:
        """Return kind and name or id -> id of the accounts that exist and are open."""
        if not references:
            return {}
        is_named = or_(AccountRow.name.in_(references), AccountRow.account_id.in_(references))
        query = select(AccountRow.kind, AccountRow.name, AccountRow.account_id)
        async with self._store.read() as session:
            rows = (await session.execute(query.where(is_named, AccountRow.close_time.is_(None)))).all()
        by_name = {(kind, name): account_id for kind, name, account_id in rows}
        return by_name | {(kind, account_id): account_id for kind, _, account_id in rows}
