"""Tokens of an issuer as credentials: verification, keys of the issuer, callers, and memory."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from tests.support.issuers import AUDIENCE, SigningKey, TestIssuer, serving_issuer, unsigned
from tests.unit.access.conftest import Clock
from umg_grpc.access import issuer_keys
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.authentication import Authenticator
from umg_grpc.access.caller_identity import Caller
from umg_grpc.access.issuer_keys import RETRY_SECONDS, IssuerAwayError
from umg_grpc.access.issuer_roles import IssuerRoles
from umg_grpc.access.token_authentication import TokenAuthenticator
from umg_grpc.access.token_callers import TokenCallerRows
from umg_grpc.access.users import Users
from umg_grpc.base.errors import UmgError
from umg_grpc.config.sign_on_section import Issuer, RoleOfClaim, SignOn, TokenCallers
from umg_grpc.store import Store
from umg_grpc.store.database_time import utc_of
from umg_grpc.store.table_definitions import AccountRow, ApiKey
from umg_grpc.v1 import pb

INVALID, EXPIRED = pb.ERROR_REASON_INVALID_KEY, pb.ERROR_REASON_KEY_EXPIRED


@dataclass
class Setting:
    """Authenticator with an issuer, both with the clock of the test."""

    issuer: TestIssuer
    tokens: TokenAuthenticator
    authenticator: Authenticator
    clock: Clock

    def token(self, **changes: Any) -> str:
        return self.issuer.token(self.clock(), **changes)

    async def caller(self, **changes: Any) -> Caller:
        return await self.authenticator.authenticate(self.token(**changes))

    async def rejection(self, token: str) -> UmgError:
        with pytest.raises(UmgError) as caught:
            await self.authenticator.authenticate(token)
        return caught.value


Opening = Callable[..., Any]


@pytest.fixture
async def opened(store: Store, keys: ApiKeys, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Opening]:
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        issuer = await stack.enter_async_context(serving_issuer())

        async def fetch(url: str, seconds: float, form: object = None, headers: object = None) -> bytes:
            async with session.get(url) as response:
                if response.status != 200:
                    raise IssuerAwayError(f"status {response.status}")
                return await response.read()

        async def open_setting(
            *, required: dict[str, str] | None = None, rows: tuple[RoleOfClaim, ...] = (), **section: Any
        ) -> Setting:
            callers = TokenCallers(audiences=(AUDIENCE,), **section)
            entry = Issuer(name="main", issuer=issuer.url, callers=callers, required_claims=required or {}, roles=rows)
            tokens = TokenAuthenticator(
                SignOn(issuers=(entry,)), fetch, TokenCallerRows(store), IssuerRoles(store), clock
            )
            for each in tokens.issuers.values():
                each.keys._monotonic = clock
            authenticator = Authenticator(keys, monotonic=clock, now=clock, tokens=tokens)
            await authenticator.start()
            stack.push_async_callback(authenticator.aclose)
            stack.push_async_callback(tokens.aclose)
            return Setting(issuer, tokens, authenticator, clock)

        yield open_setting


async def test_a_valid_token_is_a_credential_of_its_subject(opened: Opening) -> None:
    setting: Setting = await opened()
    token = setting.token(preferred_username="Ada")
    caller = await setting.authenticator.authenticate(token)
    assert caller.key_id.startswith("jwt_")
    assert caller.name == "main:ada"
    assert not caller.administrator
    found = setting.authenticator.find(f"Bearer {token}")
    assert setting.authenticator.valid_caller(found) == caller
    assert setting.authenticator.cached(token) == caller


async def test_the_id_of_a_subject_is_the_same_for_all_its_tokens(opened: Opening) -> None:
    setting: Setting = await opened()
    first, later = await setting.caller(), await setting.caller(jti="another")
    assert first.key_id == later.key_id
    assert (await setting.caller(sub="ben")).key_id != first.key_id


@dataclass(frozen=True)
class Refused:
    id: str
    make: Callable[[Setting], str]
    reason: "pb.ErrorReason.ValueType"
    message: str


def _changed(**changes: Any) -> Callable[[Setting], str]:
    return lambda setting: setting.token(**changes)


def _at(name: str, seconds: float) -> Callable[[Setting], str]:
    return lambda setting: setting.token(**{name: int(setting.clock() + seconds)})


def _hs256_with_the_public_key(setting: Setting) -> str:
    parts = ({"alg": "HS256", "kid": "first"}, setting.issuer.claims(setting.clock()))
    head = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    signature = hmac.digest(setting.issuer.keys[0].public_pem, head, hashlib.sha256)
    return (head + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


def _with_the_head(setting: Setting, head: dict[str, Any]) -> str:
    _, claims, signature = setting.token().split(".")
    return f"{base64.urlsafe_b64encode(json.dumps(head).encode()).decode().rstrip('=')}.{claims}.{signature}"


def _of_another_key(setting: Setting) -> str:
    other = SigningKey.generated("first")
    return setting.issuer.signed(setting.issuer.claims(setting.clock()), other)


def _with_a_changed_claim(setting: Setting) -> str:
    head, _, signature = setting.token().split(".")
    claims = base64.urlsafe_b64encode(json.dumps(setting.issuer.claims(setting.clock(), sub="ben")).encode())
    return f"{head}.{claims.decode().rstrip('=')}.{signature}"


REFUSED = [
    Refused("another audience", _changed(aud="another"), INVALID, "audience"),
    Refused("no audience", _changed(aud=None), INVALID, "`aud`"),
    Refused("another issuer", _changed(iss="https://another.example"), INVALID, "issuer"),
    Refused("no issuer", _changed(iss=None), INVALID, "issuer"),
    Refused("no subject", _changed(sub=None), INVALID, "`sub`"),
    Refused("an empty subject", _changed(sub=""), INVALID, "`sub`"),
    Refused("no end", _changed(exp=None), INVALID, "`exp`"),
    Refused("an expired token", _at("exp", -31), EXPIRED, "expired"),
    Refused("a start in the future", _at("nbf", 31), INVALID, "`nbf`"),
    Refused("issued in the future", _at("iat", 31), INVALID, "`iat`"),
    Refused("a text as its end", _changed(exp="soon"), INVALID, "`exp`"),
    Refused("the algorithm none", lambda s: unsigned(s.issuer.claims(s.clock())), INVALID, "`alg`"),
    Refused("an algorithm that is no text", lambda s: _with_the_head(s, {"alg": ["ES256"]}), INVALID, "`alg`"),
    Refused("an end beyond all times", _changed(exp=10**400), INVALID, "`exp`"),
    Refused("a number as its subject", _changed(sub=5), INVALID, "`sub`"),
    Refused("HS256 with the public key", _hs256_with_the_public_key, INVALID, "`alg`"),
    Refused("a signature by another key", _of_another_key, INVALID, "signature"),
    Refused("a changed claim", _with_a_changed_claim, INVALID, "signature"),
    Refused("no JSON", lambda s: "eyJ.eyJ.x", INVALID, "read"),
    Refused("too long a text", _changed(note="x" * 40_000), INVALID, "characters"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
async def test_a_token_is_refused_with_its_reason(opened: Opening, case: Refused) -> None:
    setting: Setting = await opened()
    error = await setting.rejection(case.make(setting))
    assert (error.reason, case.message in error.message) == (case.reason, True), error.message


@pytest.mark.parametrize(("name", "seconds"), [("exp", -29), ("nbf", 29), ("iat", 29)])
async def test_clocks_may_differ_by_the_leeway(opened: Opening, name: str, seconds: int) -> None:
    setting: Setting = await opened()
    assert await setting.caller(**{name: int(setting.clock() + seconds)})


async def test_a_token_needs_the_required_claims(opened: Opening) -> None:
    setting: Setting = await opened(required={"hd": "example.com"})
    assert await setting.caller(hd="example.com")
    assert "`hd`" in (await setting.rejection(setting.token(hd="example.org"))).message


@pytest.mark.parametrize("algorithm", ["RS256", "PS256"])
async def test_other_algorithms_with_public_keys_are_verified(opened: Opening, algorithm: str) -> None:
    setting: Setting = await opened()
    setting.issuer.keys = [SigningKey.generated("rsa", algorithm)]
    assert await setting.caller()


async def test_a_remembered_token_ends_with_its_time(opened: Opening) -> None:
    setting: Setting = await opened()
    token = setting.token()
    await setting.authenticator.authenticate(token)
    found = setting.authenticator.find(f"Bearer {token}")
    setting.clock.seconds += 631
    assert setting.authenticator.valid_caller(found) is None
    assert (await setting.rejection(token)).reason == EXPIRED


async def test_a_new_key_of_the_issuer_is_read_when_a_token_names_it(opened: Opening) -> None:
    setting: Setting = await opened()
    await setting.caller()
    setting.issuer.keys.append(SigningKey.generated("second"))
    setting.clock.seconds += RETRY_SECONDS
    assert await setting.caller(jti="of the second key")
    assert setting.issuer.key_reads == 2


async def test_unknown_keys_cause_one_read_in_a_while(opened: Opening) -> None:
    setting: Setting = await opened()
    await setting.caller()
    setting.clock.seconds += RETRY_SECONDS
    claims = setting.issuer.claims(setting.clock())
    for number in range(50):
        error = await setting.rejection(setting.issuer.signed(claims, SigningKey.generated(f"unknown {number}")))
        assert "does not publish" in error.message
    assert setting.issuer.key_reads == 2


async def test_known_keys_stay_while_the_issuer_is_away(opened: Opening) -> None:
    setting: Setting = await opened()
    await setting.caller()
    setting.issuer.is_away = True
    setting.clock.seconds += issuer_keys.REFRESH_SECONDS + 1
    assert await setting.caller(sub="ben")


async def test_an_issuer_that_was_never_reached_is_named_as_the_cause(opened: Opening) -> None:
    setting: Setting = await opened()
    setting.issuer.is_away = True
    error = await setting.rejection(setting.token())
    assert (error.reason, setting.issuer.url in error.message) == (pb.ERROR_REASON_UNAVAILABLE, True)
    setting.issuer.is_away = False
    setting.clock.seconds += RETRY_SECONDS
    assert await setting.caller()


async def test_metadata_of_another_issuer_are_not_used(opened: Opening) -> None:
    setting: Setting = await opened()
    setting.issuer.named_issuer = "https://another.example"
    assert (await setting.rejection(setting.token())).reason == pb.ERROR_REASON_UNAVAILABLE


async def test_tokens_of_a_withdrawn_key_end_at_the_next_read(opened: Opening) -> None:
    setting: Setting = await opened()
    token = setting.token()
    await setting.authenticator.authenticate(token)
    found = setting.authenticator.find(f"Bearer {token}")
    setting.issuer.keys = [SigningKey.generated("second")]
    setting.clock.seconds += RETRY_SECONDS
    await setting.caller(sub="ben")
    assert setting.authenticator.valid_caller(found) is None
    assert "does not publish" in (await setting.rejection(token)).message


@dataclass(frozen=True)
class Models:
    id: str
    section: dict[str, Any]
    claims: dict[str, Any]
    allowed: tuple[str, ...]
    refused: tuple[str, ...]


MODELS = [
    Models("all without a restriction", {}, {}, ("a", "b"), ()),
    Models("those of the config", {"models": ("a",)}, {}, ("a",), ("b",)),
    Models("a list of the token", {"models_claim": "models"}, {"models": ["a", "c-*"]}, ("a", "c-1"), ("b",)),
    Models("a text of the token", {"models_claim": "models"}, {"models": "a b"}, ("a", "b"), ("c",)),
    Models("none by an empty list", {"models_claim": "models"}, {"models": []}, (), ("a",)),
    Models("none by a missing claim", {"models_claim": "models"}, {}, (), ("a",)),
    Models("the config's by a missing claim", {"models_claim": "models", "models": ("a",)}, {}, ("a",), ("b",)),
    Models("a claim within a claim", {"models_claim": "umg.models"}, {"umg": {"models": ["a"]}}, ("a",), ("b",)),
    Models("a claim with a dot", {"models_claim": "x.y/models"}, {"x.y/models": ["a"]}, ("a",), ("b",)),
]


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case.id)
async def test_a_token_allows_models(opened: Opening, case: Models) -> None:
    setting: Setting = await opened(**case.section)
    caller = await setting.caller(**case.claims)
    assert [model for model in (*case.allowed, *case.refused) if caller.may_use(model)] == list(case.allowed)


async def test_models_of_the_operator_restrict_those_of_tokens(opened: Opening, keys: ApiKeys) -> None:
    setting: Setting = await opened(models_claim="models")
    caller = await setting.caller(models=["a-1", "a-*", "b"])
    await keys.update(caller.key_id, {"model_patterns": ["a-*", "c"]})
    setting.clock.seconds += 5
    await setting.authenticator._request_lookup(caller.key_id)
    caller = await setting.caller(models=["a-1", "a-*", "b"])
    assert caller.model_patterns == ("a-1", "a-*")


async def test_limits_of_the_config_hold_where_the_caller_has_none(opened: Opening, keys: ApiKeys) -> None:
    setting: Setting = await opened(rpm=10, tpm=1000, concurrency=2)
    caller = await setting.caller()
    assert (caller.requests_per_minute, caller.tokens_per_minute, caller.concurrent_requests) == (10, 1000, 2)
    await keys.update(caller.key_id, {"requests_per_minute": 99})
    await setting.authenticator._request_lookup(caller.key_id)
    assert (await setting.caller()).requests_per_minute == 99


async def test_a_token_belongs_to_the_project_that_it_names(opened: Opening, store: Store, keys: ApiKeys) -> None:
    async with store.write() as session:
        for name in ("search", "ads"):
            session.add(_project(store, name))
    setting: Setting = await opened(project_claim="project", project="ads")
    of_search, of_ads = await setting.caller(project="search"), await setting.caller()
    assert of_search.key_id != of_ads.key_id
    async with store.read() as session:
        rows = [await session.get_one(ApiKey, caller.key_id) for caller in (of_search, of_ads)]
    assert [row.project_id for row in rows] == ["proj_search", "proj_ads"]
    assert "`gone`" in (await setting.rejection(setting.token(project="gone"))).message
    assert "several" in (await setting.rejection(setting.token(project=["search", "ads"]))).message
    half_a_letter = await setting.rejection(setting.token(project="\ud800"))
    assert (half_a_letter.reason, "unprintable" in half_a_letter.message) == (INVALID, True)


async def test_a_revoked_caller_is_refused_with_any_token(opened: Opening, keys: ApiKeys) -> None:
    setting: Setting = await opened()
    token = setting.token()
    caller = await setting.authenticator.authenticate(token)
    found = setting.authenticator.find(f"Bearer {token}")
    await keys.revoke(caller.key_id)
    await setting.authenticator._request_lookup(caller.key_id)
    assert setting.authenticator.valid_caller(found) is None
    assert "revoked" in (await setting.rejection(token)).message
    assert "revoked" in (await setting.rejection(setting.token(jti="another"))).message


async def test_disabling_a_user_ends_its_tokens_also_with_roles_of_their_own(opened: Opening, store: Store) -> None:
    setting: Setting = await opened(rows=(RoleOfClaim(value="admins", role="owner"),))
    caller = await setting.caller(groups=["admins"])  # before the first sign-in of this person
    assert caller.administrator
    users = Users(store)
    user = await users.sign_in(setting.issuer.url, "ada", name="Ada")
    await setting.caller(groups=["admins"], jti="another")
    await users.update(user.user_id, {"disabled": True})
    await setting.authenticator._request_lookup(caller.key_id)
    assert "revoked" in (await setting.rejection(setting.token(groups=["admins"], jti="third"))).message


async def test_a_caller_has_no_secret(opened: Opening, keys: ApiKeys) -> None:
    setting: Setting = await opened()
    caller = await setting.caller()
    assert (await setting.rejection(caller.key_id)).reason == INVALID
    with pytest.raises(UmgError, match="no secret"):
        await keys.rotate(caller.key_id)


async def test_a_key_with_the_name_of_a_caller_keeps_it(opened: Opening, keys: ApiKeys) -> None:
    await keys.create("main:ada")
    setting: Setting = await opened()
    caller = await setting.caller()
    assert caller.name == caller.key_id


async def test_the_memory_of_tokens_is_bounded(opened: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    setting: Setting = await opened()
    monkeypatch.setattr("umg_grpc.access.token_authentication.MAX_KNOWN_TOKENS", 3)
    for number in range(5):
        await setting.caller(jti=str(number))
    assert len(setting.tokens.by_digest) == 3


def _project(store: Store, name: str) -> AccountRow:
    lists: dict[str, Any] = {"model_patterns": [], "channels": [], "operations": [], "budgets": [], "tags": {}}
    created = utc_of(store.clock)
    return AccountRow(account_id=f"proj_{name}", kind="project", name=name, create_time=created, **lists)
