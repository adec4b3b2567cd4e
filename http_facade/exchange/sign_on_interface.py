"""Interface of the sign-on of people, which a service in the same process implements."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol


class SignInClient(NamedTuple):
    """Client that signs in, for the list of sessions and the audit log."""

    address: str
    agent: str


class RoleView(Protocol):
    """Role of the person of a session in an account."""

    @property
    def account_id(self) -> str:
        """Organisation or project; "" for the whole gateway."""
        ...

    @property
    def role(self) -> str:
        """Name of the role."""
        ...


class SessionView(Protocol):
    """Session as it is now; times in UTC."""

    @property
    def session_id(self) -> str:
        """Id of the session, which is not its token."""
        ...

    @property
    def name(self) -> str:
        """Name of the user or the key."""
        ...

    @property
    def email(self) -> str:
        """E-mail address of the user; "" for none."""
        ...

    @property
    def user_id(self) -> str:
        """User of the session; "" for a key without a user."""
        ...

    @property
    def key_id(self) -> str:
        """Key that opened the session; "" for a sign-in at an issuer."""
        ...

    @property
    def roles(self) -> Sequence[RoleView]:
        """Roles of the user or the key."""
        ...

    @property
    def create_time(self) -> datetime:
        """Time of the sign-in."""
        ...

    @property
    def idle_end(self) -> datetime:
        """Time at which the session ends unless it is used before."""
        ...

    @property
    def end(self) -> datetime:
        """Time at which the session ends, however it is used."""
        ...


class BrowserSignOn(Protocol):
    """Sign-on of people. All methods raise UmgError."""

    @property
    def base_url(self) -> str:
        """URL of the gateway for browsers, without a trailing slash."""
        ...

    @property
    def issuers(self) -> Mapping[str, str]:
        """Names of the issuers at which people sign in, with their titles."""
        ...

    async def begin(self, name: str, return_path: str) -> tuple[str, str]:
        """Return the URL at an issuer to lead the browser to, and the text that the browser keeps until it returns."""

    async def complete(self, kept: str, query: Mapping[str, str], client: SignInClient) -> tuple[str, str]:
        """Complete a sign-in by the query of the issuer's redirect and the text that the browser kept. Return the token
        of the new session and the path to lead the browser to.
        """

    async def open_by_key(self, secret: str, client: SignInClient) -> str:
        """Return the token of a new session that an API key opens."""

    async def open_by_code(self, code: str, client: SignInClient) -> str:
        """Return the token of a new session that a code of the start opens."""

    async def session(self, token: str) -> SessionView | None:
        """Return the session with a token; None if it has ended."""

    async def end(self, token: str) -> None:
        """End a session; nothing happens if there is none."""


def local_path(path: str) -> str:
    """Return a path of this gateway unchanged, and `/` for any other text: a browser is never led elsewhere."""
    is_local = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if is_local and path.isascii() and path.isprintable() else "/"
