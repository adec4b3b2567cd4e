"""Verification of an issuer's signed tokens (JWT), and the reading of their claims."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from umg_grpc.access.issuer_keys import SIGNATURE_ALGORITHMS, Fetch, IssuerKeys
from umg_grpc.base.errors import UmgError
from umg_grpc.config.sign_on_section import Issuer
from umg_grpc.v1 import pb

if TYPE_CHECKING:
    from jwt.types import Options

Claims: TypeAlias = Mapping[str, Any]
"""Claims of a verified token, as its issuer wrote them."""

MAX_TOKEN_CHARACTERS = 32_768
MAX_SUBJECT_CHARACTERS = 255
"""Most characters of `sub` (OpenID Connect Core 1.0, section 2)."""
FOREVER_SECONDS = 1e15
"""Bound of the times in tokens, beyond which no number is a time."""
REQUIRED_CLAIMS = ("iss", "sub", "aud", "exp")
DISTRIBUTED_CLAIMS = "_claim_names"
"""Claim with the names of the claims that the issuer left out of the token (OpenID Connect Core 1.0, section 5.6.2)."""
# the library reads the clock of the machine; `_check_times` has that of the gateway, and `_check_claims` names `sub`
_CHECKS: "Options" = {
    "require": list(REQUIRED_CLAIMS),
    "enforce_minimum_key_length": True,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_sub": False,
}


def is_token(secret: str) -> bool:
    """Return whether a credential has the form of a signed token: three parts, the first one a JSON object."""
    return secret.startswith("ey") and secret.count(".") == 2


def unverified_issuer(token: str) -> str:
    """Return the issuer that a token names, to find the keys that verify it. Raise UmgError(INVALID_KEY)."""
    import jwt  # here, as elsewhere: it takes 8 MB with its library of ciphers, and few gateways have issuers

    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        raise _invalid("the token cannot be read; send it unchanged") from None
    issuer = claims.get("iss")
    return issuer if isinstance(issuer, str) else ""


class IssuerTokens:
    """Verifier of the tokens of one issuer."""

    def __init__(
        self, issuer: Issuer, fetch: Fetch, now: Callable[[], float], on_removal: Callable[[], None] = lambda: None
    ) -> None:
        """Create a verifier. `fetch`: sends requests to the issuer; `now`: returns the Unix time; `on_removal`: called
        when the issuer has withdrawn a key.
        """
        self.issuer = issuer
        self.keys = IssuerKeys(issuer.issuer, fetch, seconds=issuer.timeout, on_removal=on_removal)
        self._now = now

    async def verify(self, token: str, audiences: Collection[str]) -> Claims:
        """Return the claims of a token for one of the audiences. Raise UmgError: INVALID_KEY, KEY_EXPIRED, UNAVAILABLE
        if the keys of the issuer were never read and cannot be.
        """
        import jwt

        try:
            header = jwt.get_unverified_header(token)
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            raise _invalid("the token cannot be read; send it unchanged") from None
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in SIGNATURE_ALGORITHMS:
            raise _invalid(
                f"the token's `alg` is not accepted; tokens need one of {', '.join(sorted(SIGNATURE_ALGORITHMS))}"
            )
        key = await self.keys.key(key_id, algorithm)
        try:
            claims = jwt.decode(token, key, [algorithm], _CHECKS, audience=list(audiences), issuer=self.issuer.issuer)
        except jwt.InvalidAudienceError:
            raise _invalid("the token is for another audience (`aud`); request one for this gateway") from None
        except jwt.InvalidIssuerError:
            raise _invalid("the token's `iss` is not its issuer") from None
        except jwt.MissingRequiredClaimError as error:
            raise _invalid(f"the token has no `{error.claim}`") from None
        except (jwt.InvalidTokenError, jwt.InvalidKeyError, ValueError, RecursionError):
            raise _invalid("the token's signature is not valid; send it unchanged") from None
        self._check_times(claims)
        self._check_claims(claims)
        return claims

    def expires_at(self, claims: Claims) -> float:
        """Return the Unix time from which on the token is rejected."""
        return float(claims["exp"]) + self.issuer.leeway

    def _check_times(self, claims: Claims) -> None:
        now, leeway = self._now(), self.issuer.leeway
        times = {name: claims[name] for name in ("exp", "nbf", "iat") if name in claims}
        for name, value in times.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < FOREVER_SECONDS:
                raise _invalid(f"the token's `{name}` is not a number")
            if name != "exp" and value > now + leeway:
                raise _invalid(f"the token is not valid yet by its `{name}`; check the clocks")
        if times["exp"] + leeway <= now:
            message = "this token has expired; get another from its issuer"
            raise UmgError(pb.ERROR_REASON_KEY_EXPIRED, message)

    def _check_claims(self, claims: Claims) -> None:
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT_CHARACTERS or not subject.isprintable():
            raise _invalid(f"the token's `sub` is not a text of 1 to {MAX_SUBJECT_CHARACTERS} printable characters")
        for name, value in self.issuer.required_claims.items():
            if value not in claim_values(claims, name):
                raise _invalid(f"the token's `{name}` is not the one that this gateway requires")


def claim_values(claims: Claims, name: str) -> tuple[str, ...]:
    """Return the values of a claim with texts: a list, or one text; empty if it is absent. A `.` in the name leads into
    a claim with further ones, unless a claim has the whole name.
    """
    value: object = claims
    for step in [name] if name in claims else name.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, str):
        return (value,)
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def is_left_out(claims: Claims, name: str) -> bool:
    """Return whether the issuer left a claim out of the token because it was too long, and names an address for it."""
    names = claims.get(DISTRIBUTED_CLAIMS)
    return isinstance(names, dict) and name in names


def _invalid(message: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_INVALID_KEY, message)
