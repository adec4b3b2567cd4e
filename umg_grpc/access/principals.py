"""Principal: the person, service account or administrator's key that acts on the administration, with its roles."""

from dataclasses import dataclass
from enum import StrEnum

WHOLE_GATEWAY = ""
"""Account of a membership that holds for the whole gateway."""


class Role(StrEnum):
    """Role of a user in an account, as `umg.v1.UserRole`; its value is the name in JSON and in the database."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"
    BILLING = "billing"


@dataclass(frozen=True)
class Membership:
    """Role in an account and in all accounts and keys below it."""

    account_id: str
    """Id of the organisation or project; `WHOLE_GATEWAY` for the whole gateway."""
    role: Role


@dataclass(frozen=True)
class Principal:
    """Subject of acts of administration."""

    user_id: str
    """Id of the user; "" for an administrator's key without a user."""
    name: str
    """Name for people and for the audit log."""
    memberships: tuple[Membership, ...] = ()

    @property
    def owns_gateway(self) -> bool:
        """Whether the principal is an owner of the whole gateway."""
        return Membership(WHOLE_GATEWAY, Role.OWNER) in self.memberships


def gateway_owner(user_id: str, name: str) -> Principal:
    """Return a principal that owns the whole gateway, as a key of an administrator does."""
    return Principal(user_id, name, (Membership(WHOLE_GATEWAY, Role.OWNER),))
