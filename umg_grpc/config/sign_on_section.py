"""Section `sign_on` of the config file: issuers whose users sign on, and whose tokens are credentials of callers."""

import re
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from umg_grpc.config.file_sections import ConfigEntry, Limit, Seconds
from umg_grpc.config.network_addresses import Address

if TYPE_CHECKING:
    from umg_grpc.config.yaml_document import Path, YamlDocument

ISSUER_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
MIN_SESSION_SECONDS = 60
Claim = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Reference = Annotated[str, msgspec.Meta(min_length=1)]
"""Name or id. An empty one, of a variable that is not set, would be the whole gateway."""
SessionSeconds = Annotated[float, msgspec.Meta(ge=MIN_SESSION_SECONDS, le=30 * 86400)]


class Sessions(ConfigEntry, frozen=True):
    """Ends of the sessions of people."""

    idle: SessionSeconds = 1800
    """Seconds without a request after which a session ends."""
    absolute: SessionSeconds = 43_200
    """Seconds after the sign-in at which a session ends, however it is used."""


class RoleOfClaim(ConfigEntry, frozen=True):
    """Role that a value of the claim with roles gives: of a project, of an organisation, or of the whole gateway."""

    value: Claim
    """Value of the claim, for example the name or id of a group, in which `*` matches any characters."""
    role: Literal["owner", "admin", "member", "viewer", "billing"]
    """Role that it gives."""
    project: Reference | None = None
    """Name or id of the project that the role is of."""
    organization: Reference | None = None
    """Name or id of the organisation that the role is of, with all its projects; the role is of the whole gateway if
    neither is set.
    """


class TokenCallers(ConfigEntry, frozen=True):
    """Tokens of the issuer (JWT) as credentials of calls, in place of API keys."""

    audiences: Annotated[tuple[Claim, ...], msgspec.Meta(min_length=1)]
    """Values of `aud`, of which a token needs one."""
    project: Reference | None = None
    """Name or id of the project that its callers belong to, where `project_claim` gives none."""
    project_claim: Claim | None = None
    """Claim with the name or id of the caller's project."""
    models: tuple[str, ...] = ()
    """Models of its callers where `models_claim` gives none, in which `*` matches any characters; empty for all."""
    models_claim: Claim | None = None
    """Claim with the models that the caller may use: a list, or texts with spaces between them."""
    rpm: Limit | None = None
    """Calls of one caller in any 60 seconds, unless the caller has a limit of its own."""
    tpm: Limit | None = None
    """Input and output tokens together of one caller in any 60 seconds, unless the caller has a limit of its own."""
    concurrency: Limit | None = None
    """Calls of one caller in flight, unless the caller has a limit of its own."""


class Issuer(ConfigEntry, frozen=True):
    """OpenID Connect provider whose users sign on, whose tokens are credentials of callers, or both."""

    name: str
    """Name in addresses, the log and usage: letters, digits and `-`."""
    issuer: str
    """URL that tokens state as `iss`, below which `/.well-known/openid-configuration` is found."""
    title: str = ""
    """Text of its button on the page where people choose an issuer; the name if unset."""
    client_id: str | None = None
    """Client as which the gateway is registered; unset if people do not sign on by this issuer."""
    client_secret: str | None = None
    """Secret of the client; unset for a public client, which has PKCE alone."""
    scopes: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("openid", "profile", "email")
    """Scopes that a sign-in requests."""
    required_claims: dict[str, str] = msgspec.field(default_factory=dict)
    """Claims that each token must have with these values, for example `hd: example.com` of Google."""
    roles_claim: Claim = "groups"
    """Claim with groups or roles; a `.` leads into a claim with further ones, as in `realm_access.roles`."""
    roles: tuple[RoleOfClaim, ...] = ()
    """Roles by the values of this claim. To sign on, a person needs one or was added by an administrator."""
    callers: TokenCallers | None = None
    """Use of its tokens as credentials of calls; unset if they are none."""
    leeway: Annotated[float, msgspec.Meta(ge=0, le=300)] = 30
    """Seconds by which the clocks of the issuer and the gateway may differ."""
    timeout: Seconds = 5
    """Most seconds of a request to the issuer."""

    def __repr__(self) -> str:
        """Return a text without the secret."""
        return f"Issuer(name={self.name!r}, issuer={self.issuer!r})"


class SignOn(ConfigEntry, frozen=True):
    """Sign-on of people, and tokens of issuers as credentials of callers."""

    issuers: tuple[Issuer, ...] = ()
    """Issuers, in the order in which people choose from them."""
    sessions: Sessions = Sessions()


def check_sign_on(document: "YamlDocument", section: SignOn) -> None:
    """Report values of the section that no type can check."""
    sessions = section.sessions
    if sessions.idle > sessions.absolute:
        document.problem(
            ("sign_on", "sessions", "idle"), f"expected at most `absolute`, which is {sessions.absolute:g}"
        )
    for position, issuer in enumerate(section.issuers):
        path = ("sign_on", "issuers", position)
        others = section.issuers[:position]
        if not ISSUER_NAME.fullmatch(issuer.name):
            document.problem((*path, "name"), "expected up to 32 small letters, digits or `-`")
        elif issuer.name in {other.name for other in others}:
            document.problem((*path, "name"), "expected a name that no other issuer has")
        if issuer.issuer in {other.issuer for other in others}:
            document.problem((*path, "issuer"), "expected a URL that no other issuer has")
        _check_issuer(document, path, issuer)


def _check_issuer(document: "YamlDocument", path: "Path", issuer: Issuer) -> None:
    if not _is_issuer_url(issuer.issuer):
        expected = "expected https://HOST without a query, as tokens state it; http:// only with a loopback host"
        document.problem((*path, "issuer"), expected)
    if issuer.client_id is None and issuer.callers is None:
        document.problem(path, "expected `client_id`, `callers` or both")
    if issuer.client_id is not None and "openid" not in issuer.scopes:
        document.problem((*path, "scopes"), "expected `openid` among them")
    for position, row in enumerate(issuer.roles):
        if row.project is not None and row.organization is not None:
            document.problem((*path, "roles", position), "expected `project` or `organization`, not both")


def _is_issuer_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    if not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc or not text.isascii():
        return False
    is_loopback = Address(parts.hostname, port or 0).is_loopback
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback)
