"""Administration of keys over gRPC: by administrators only, with every field of the schema that is enforced."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from tests.support.gateways import KEY, Running, running
from umg_grpc.access.account_levels import PROJECT_KIND
from umg_grpc.access.accounts import Accounts
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.users import PERSON_KIND, Users
from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.model_list_page_token import PageBoundary, encode_token

CONFIG = "channels: [{name: sandbox, protocols: [sandbox], pace: 0, models: [famO-5]}]"
ALL_SETTINGS = pb.KeySettings(
    name="app",
    model_patterns=["famG-*"],
    requests_per_minute=7,
    tokens_per_minute=9000,
    concurrent_requests=4,
    budget_micro_credits=5_000_000,
    budget_period=pb.BUDGET_PERIOD_DAY,
    expire_time=Timestamp(seconds=2_000_000_000),
    administrator=True,
    channels=["main"],
    show_route=True,
    operations=[pb.KEY_OPERATION_EMBED, pb.KEY_OPERATION_MODELS],
    owner="search",
    tags={"a": "b"},
    budgets=[
        pb.Budget(period=pb.BUDGET_PERIOD_MONTH, micro_credits=7),
        pb.Budget(micro_credits=9),
        pb.Budget(micro_credits=8, soft=True),
    ],
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Admin:
    gateway: Running
    stub: "rpc.AdminServiceAsyncStub"

    async def call(self, method: str, request: Message, key: str = KEY) -> Message:
        return await getattr(self.stub, method)(request, metadata=[("authorization", f"Bearer {key}")])

    async def failure(self, method: str, request: Message, key: str = KEY) -> UmgError:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.call(method, request, key)
        return from_rpc(caught.value)

    async def create(self, name: str, **settings: object) -> pb.CreateKeyResponse:
        return await self.call("CreateKey", pb.CreateKeyRequest(settings=pb.KeySettings(name=name, **settings)))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Admin, None]:
    data: Path = tmp_path_factory.mktemp("admin")
    async with running(CONFIG, data) as gateway, grpc.aio.insecure_channel(gateway.grpc) as channel:
        yield Admin(gateway, rpc.AdminServiceStub(channel))


async def test_a_key_is_made_with_every_setting_and_read_back(admin: Admin) -> None:
    user = await Users(admin.gateway.service.store).create(PERSON_KIND, {"name": "ada", "email": "ada@example.com"})
    project = await Accounts(admin.gateway.service.store).create(PROJECT_KIND, {"name": "search"})
    settings = pb.KeySettings(project_id="search", user_id="ada@example.com")
    settings.MergeFrom(ALL_SETTINGS)
    made = await admin.call("CreateKey", pb.CreateKeyRequest(settings=settings))
    settings.project_id, settings.user_id = project.account_id, user.user_id
    assert made.key.settings == settings
    assert made.secret.startswith(made.key.prefix)
    assert [(each.budget, each.spent_micro_credits) for each in made.key.balances] == [
        (budget, 0) for budget in ALL_SETTINGS.budgets
    ]
    assert {field.name for field, _ in settings.ListFields()} == {*pb.KeySettings.DESCRIPTOR.fields_by_name}
    for unknown in (pb.KeySettings(name="x", project_id="y"), pb.KeySettings(name="x", user_id="y")):
        error = await admin.failure("CreateKey", pb.CreateKeyRequest(settings=unknown))
        assert (error.name, error.metadata["id"]) == ("OBJECT_NOT_FOUND", "y")
    for reference in (made.key.key_id, "app", made.key.prefix):
        assert (await admin.call("GetKey", pb.GetKeyRequest(key_id=reference))).key == made.key


async def test_every_key_reads_itself_and_only_an_administrator_others(admin: Admin) -> None:
    mine, other = await admin.create("reader", operations=[pb.KEY_OPERATION_EMBED]), await admin.create("read")
    assert (await admin.call("GetKey", pb.GetKeyRequest(), mine.secret)).key == mine.key
    assert (await admin.call("GetKey", pb.GetKeyRequest(key_id=mine.key.key_id), mine.secret)).key == mine.key
    for key_id in (other.key.key_id, "key_absent"):
        error = await admin.failure("GetKey", pb.GetKeyRequest(key_id=key_id), mine.secret)
        assert error.reason == pb.ERROR_REASON_PERMISSION_DENIED, key_id


async def test_pages_of_keys_are_the_list_newest_first_without_ended_keys(admin: Admin) -> None:
    for number in range(5):
        await admin.create(f"page {number}")
    await admin.call("RevokeKey", pb.RevokeKeyRequest(key_id="page 3"))
    stored = await ApiKeys(admin.gateway.service.store).list()
    newest_first = sorted(stored, key=lambda key: (key.create_time, key.key_id), reverse=True)
    for include_ended in (False, True):
        listed, token = [], ""
        while True:
            request = pb.ListKeysRequest(page_size=2, page_token=token, include_ended=include_ended)
            page = await admin.call("ListKeys", request)
            listed += [key.key_id for key in page.keys]
            assert len(page.keys) == 2 or not page.next_page_token
            if not (token := page.next_page_token):
                break
        assert listed == [key.key_id for key in newest_first if include_ended or key.revoke_time is None]
    for token in ("none of ours", encode_token(PageBoundary("the id of no key, as in a token of another list"))):
        error = await admin.failure("ListKeys", pb.ListKeysRequest(page_token=token))
        assert (error.name, error.metadata["field"]) == ("INVALID_FIELD", "page_token")


async def test_an_update_changes_the_fields_of_its_mask_and_no_other(admin: Admin) -> None:
    made = await admin.create("before", requests_per_minute=7, owner="a", model_patterns=["m"])
    settings = pb.KeySettings(name="after", owner="ignored", budget_period=99, operations=[pb.KEY_OPERATION_RERANK])
    mask = FieldMask(paths=["name", "requests_per_minute", "operations"])
    request = pb.UpdateKeyRequest(key_id=made.key.key_id, settings=settings, update_mask=mask)
    changed = (await admin.call("UpdateKey", request)).key.settings
    expected = pb.KeySettings(name="after", owner="a", model_patterns=["m"], operations=[pb.KEY_OPERATION_RERANK])
    assert changed == expected


@dataclass(frozen=True)
class Refused:
    id: str
    method: str
    request: Message
    reason: str
    field: str = ""


PAST = Timestamp(seconds=1)
REFUSED = [
    Refused("no settings", "CreateKey", pb.CreateKeyRequest(), "MISSING_FIELD", "settings"),
    Refused("no name", "CreateKey", pb.CreateKeyRequest(settings=pb.KeySettings(owner="a")), "MISSING_FIELD", "settings.name"),
    Refused("an expiry in the past", "CreateKey", pb.CreateKeyRequest(settings=pb.KeySettings(name="a", expire_time=PAST)), "INVALID_FIELD", "settings.expire_time"),
    Refused("an operation that there is not", "CreateKey", pb.CreateKeyRequest(settings=pb.KeySettings(name="a", operations=[99])), "INVALID_FIELD", "settings.operations[0]"),
    Refused("a tag without a name", "CreateKey", pb.CreateKeyRequest(settings=pb.KeySettings(name="a", tags={"": "b"})), "INVALID_FIELD", "settings.tags"),
    Refused("a name that is taken", "CreateKey", pb.CreateKeyRequest(settings=pb.KeySettings(name="refused")), "ALREADY_EXISTS"),
    Refused("a page of nothing", "ListKeys", pb.ListKeysRequest(page_size=0), "INVALID_FIELD", "page_size"),
    Refused("no mask", "UpdateKey", pb.UpdateKeyRequest(key_id="refused"), "MISSING_FIELD", "update_mask"),
    Refused("an empty mask", "UpdateKey", pb.UpdateKeyRequest(key_id="refused", update_mask=FieldMask()), "INVALID_FIELD", "update_mask"),
    Refused("an unknown path", "UpdateKey", pb.UpdateKeyRequest(key_id="refused", update_mask=FieldMask(paths=["key_id"])), "INVALID_FIELD", "update_mask"),
    Refused("an empty name", "UpdateKey", pb.UpdateKeyRequest(key_id="refused", update_mask=FieldMask(paths=["name"])), "INVALID_FIELD", "settings.name"),
    *(
        Refused(
            f"an update to {name} {value}",
            "UpdateKey",
            pb.UpdateKeyRequest(key_id="refused", update_mask=FieldMask(paths=[name]), settings=settings),
            "INVALID_FIELD",
            f"settings.{field}",
        )
        for name, field, value, settings in (
            ("operations", "operations[0]", 0, pb.KeySettings(operations=[0])),
            ("operations", "operations[0]", 99, pb.KeySettings(operations=[99])),
            ("budget_period", "budget_period", 99, pb.KeySettings(budget_period=99)),
        )
    ),
    Refused("a long overlap", "RotateKey", pb.RotateKeyRequest(key_id="refused", overlap=Duration(seconds=31 * 86400)), "INVALID_FIELD", "overlap"),
    Refused("the first key's secret", "RotateKey", pb.RotateKeyRequest(key_id="bootstrap"), "WRONG_STATE"),
    *(
        Refused(f"{method} of an unknown key", method, kind(key_id="absent"), "OBJECT_NOT_FOUND")
        for method, kind in (("GetKey", pb.GetKeyRequest), ("RotateKey", pb.RotateKeyRequest), ("RevokeKey", pb.RevokeKeyRequest))
    ),
    *(
        Refused(f"{method} without a key", method, kind(), "MISSING_FIELD", "key_id")
        for method, kind in (("RotateKey", pb.RotateKeyRequest), ("RevokeKey", pb.RevokeKeyRequest))
    ),
]  # fmt: skip


async def test_a_malformed_call_is_refused_by_its_field(admin: Admin) -> None:
    await admin.create("refused")
    for case in REFUSED:
        error = await admin.failure(case.method, case.request)
        assert (error.name, error.metadata.get("field", "")) == (case.reason, case.field), (case.id, error.message)


async def test_a_rotated_key_has_two_secrets_and_a_revoked_one_none(admin: Admin) -> None:
    made = await admin.create("rotated")
    began = datetime.now(UTC)
    rotated = await admin.call("RotateKey", pb.RotateKeyRequest(key_id="rotated", overlap=Duration(seconds=3600)))
    ends = rotated.key.previous_expire_time.ToDatetime(UTC)
    assert began + timedelta(hours=1) <= ends <= datetime.now(UTC) + timedelta(hours=1)
    assert rotated.key.previous_prefix == made.key.prefix
    for secret in (made.secret, rotated.secret):
        assert (await admin.call("GetKey", pb.GetKeyRequest(), secret)).key.key_id == made.key.key_id
    assert (await admin.call("RevokeKey", pb.RevokeKeyRequest(key_id="rotated"))).key.HasField("revoke_time")
    for secret in (made.secret, rotated.secret):
        async with asyncio.timeout(60):
            # within 5 seconds, as documented
            while await outcome(admin, secret) != "INVALID_KEY":  # noqa: ASYNC110  # which no event reports
                await asyncio.sleep(0.05)


async def outcome(admin: Admin, secret: str) -> str:
    try:
        await admin.call("GetKey", pb.GetKeyRequest(), secret)
    except grpc.aio.AioRpcError as error:
        return from_rpc(error).name
    return ""
