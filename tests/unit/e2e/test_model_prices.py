"""Prices of models that are set while a gateway runs: their effect on calls, their list, and their sources."""

from collections.abc import AsyncGenerator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import typer
from aiohttp import web

from tests.support.databases import Database
from tests.support.gateways import KEY, Running, channel, running
from tests.support.http_admin import HttpAdmin
from tests.support.processes import run
from tests.support.serving import serving
from tests.support.video_calls import until
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.principals import Membership, Role
from umg_grpc.access.users import SERVICE_ACCOUNT, Users
from umg_grpc.cli import model_price_actions as commands
from umg_grpc.cli.admin_client import CommandError
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.text_tables import Form
from umg_grpc.config import parse
from umg_grpc.routing.set_model_prices import SetPrices
from umg_grpc.service.channels.set_price_table import SetPriceTable
from umg_grpc.service.servicers import model_price_administration
from umg_grpc.v1 import pb

INPUT, OUTPUT = pb.BILLABLE_UNIT_INPUT_TOKEN, pb.BILLABLE_UNIT_OUTPUT_TOKEN
SET = [
    pb.Price(unit=INPUT, micro_credits_per_million=2_000_000),
    pb.Price(unit=OUTPUT, micro_credits_per_million=10_000_000),
]
BUDGET = 10_000_000
COST = 1000 * 2 + 500 * 10
"""Micro-credits of a call at these prices."""


async def chat(_: web.Request) -> web.Response:
    message = {"role": "assistant", "content": "Hi"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
    body = {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
    return web.json_response(body)


@asynccontextmanager
async def provider() -> AsyncGenerator[str, None]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    async with AsyncExitStack() as stack:
        yield f"{await stack.enter_async_context(serving(app))}/v1"


def config(url: str, database: str = "sqlite", more: str = "") -> str:
    """Return the config of two channels of the model `own`, and one of a model with a public price."""
    channels = [channel(name, "chat", url, "own") for name in "ab"]
    channels += [channel("famous", "chat", url, "public", "gpt-4o")]
    return f"database: {database}\naliases: {{mine: own}}\nchannels:\n{''.join(channels)}{more}"


async def talk(gateway: Running, key: str, model: str = "own") -> int:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
    async with (
        aiohttp.ClientSession(gateway.url) as session,
        session.post("/v1/chat/completions", json=body, headers={"authorization": f"Bearer {key}"}) as response,
    ):
        return response.status


async def listed(admin: HttpAdmin, **fields: object) -> pb.ListModelPricesResponse:
    return await admin.call(pb.ListModelPricesRequest(**fields), pb.ListModelPricesResponse)  # type: ignore[arg-type]


async def update(admin: HttpAdmin, model: str = "own", **fields: object) -> pb.PricedModel:
    request = pb.UpdateModelPriceRequest(model=model, **fields)  # type: ignore[arg-type]
    return (await admin.call(request, pb.UpdateModelPriceResponse)).model


async def test_calls_of_every_process_are_charged_by_a_set_price(prepared_database: Database, tmp_path: Path) -> None:
    if prepared_database.url == "sqlite":
        data = prepared_database.data_dir  # as two workers have it
    else:
        (data := tmp_path / "other").mkdir()
    async with (
        provider() as url,
        running(config(url, prepared_database.url), prepared_database.data_dir) as one,
        running(config(url, prepared_database.url), data) as two,
    ):
        store, admin = one.service.store, HttpAdmin(one.url, KEY)
        key, secret = await ApiKeys(store).create("app", budget_micro_credits=BUDGET)
        assert await talk(two, secret) == 403  # a key with a budget may not call a model without a price
        [found] = (await listed(admin, unpriced_only=True)).models
        assert (found.model, found.unpriced, [each.source for each in found.channels]) == (
            "own",
            True,
            [pb.PRICE_SOURCE_NONE] * 2,
        )

        planned = await update(admin, "mine", prices=SET, dry_run=True)
        assert (planned.unpriced, list(planned.prices)) == (False, SET)
        assert (await listed(admin)).unpriced_models == 1
        made = await update(admin, "mine", prices=SET, note="contract")
        [override] = made.overrides
        assert (made.model, override.actor_name, override.note) == ("own", "bootstrap", "contract")
        await until(lambda: all(each.prices.micro_credits for each in two.service.router.targets("own")))
        assert await talk(two, secret) == 200
        usage, query = pb.GetUsageResponse(), pb.GetUsageRequest(key_id=key.key_id)
        while usage.usage.micro_credits < COST or usage.remaining_micro_credits < BUDGET - COST:
            usage = await admin.call(query, pb.GetUsageResponse)  # it is written within seconds
        assert (usage.usage.micro_credits, usage.remaining_micro_credits) == (COST, BUDGET - COST)
        request = pb.ListRequestRecordsRequest(key_ids=[key.key_id], models=["own"])
        records = await admin.call(request, pb.ListRequestRecordsResponse)
        [record] = [each for each in records.records if each.status == "OK"]
        assert (record.micro_credits, list(record.prices)) == (COST, SET)
        [found] = (await listed(admin, text="OWN")).models
        assert found.calls >= 1

        await update(HttpAdmin(two.url, KEY))  # takes it back
        await until(lambda: not any(each.prices.micro_credits for each in one.service.router.targets("own")))
        assert await talk(one, secret) == 403


async def test_an_update_reads_the_set_prices_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = list[None]()

    class CountedTable(SetPriceTable):
        async def read(self) -> SetPrices:
            reads.append(None)
            return await super().read()

    monkeypatch.setattr(model_price_administration, "SetPriceTable", CountedTable)
    async with provider() as url, running(config(url), tmp_path) as gateway:
        admin = HttpAdmin(gateway.url, KEY)
        await update(admin, prices=SET[:1], channel="b", note="before")
        for prices, notes in ((SET, {"contract", "before"}), ([], {"before"})):
            reads.clear()
            made = await update(admin, prices=prices, note="contract")
            assert (len(reads), {each.note for each in made.overrides}) == (1, notes)
            [shown] = (await listed(admin, text="own")).models
            assert {*map(str, made.overrides)} == {*map(str, shown.overrides)}


async def test_a_set_price_survives_a_restart_and_ends_where_the_file_states_one(prepared_database: Database) -> None:
    data, database = prepared_database.data_dir, prepared_database.url
    async with provider() as url:
        async with running(config(url, database), data) as gateway:
            await update(HttpAdmin(gateway.url, KEY), prices=SET, channel="b")
        async with running(config(url, database), data) as gateway:
            admin = HttpAdmin(gateway.url, KEY)
            [own] = (await listed(admin, model="own")).models
            assert [(each.channel, each.source) for each in own.channels] == [
                ("a", pb.PRICE_SOURCE_NONE),
                ("b", pb.PRICE_SOURCE_DATABASE),
            ]
            assert [each.channel for each in own.routes[0].channels] == ["a", "b"]
            stated = config(url, database, "models:\n  own:\n    price: {input: 1, output: 3}\n")
            gateway.service.reload(parse(stated, "umg.yaml", {}))
            [own] = (await listed(admin, text="own")).models
            place = own.price_place
            assert place.startswith("umg.yaml:")
            assert {(each.source, each.place) for each in own.channels} == {(pb.PRICE_SOURCE_FILE, place)}
            assert own.overrides[0].ineffective_reason == f"{place} states the price"
            with pytest.raises(CommandError, match=f"{place} states the price of `own`: change it there"):
                await update(admin, prices=SET)
            gone = config(url, database).replace("own", "other")
            gateway.service.reload(parse(gone, "umg.yaml", {}))
            [orphan] = (await listed(admin)).overrides_without_model
            assert (orphan.model, orphan.ineffective_reason) == ("own", "no channel serves the model")
            with pytest.raises(CommandError, match="own"):
                await update(admin, prices=SET)
            assert await update(admin, channel="b") == pb.PricedModel()
            assert not (await listed(admin)).overrides_without_model


@dataclass(frozen=True)
class Refusal:
    id: str
    problem: str
    prices: tuple[pb.Price, ...] = (SET[0],)
    model: str = "own"
    channel: str = ""
    note: str = ""


MANY = 10**16
REFUSALS = [
    Refusal("an unknown model", "absent", model="absent"),
    Refusal("a channel of other models", r"no channel famous serves `own`; name one of a, b", channel="famous"),
    Refusal("two prices of a unit", r"`prices\[1\]`: expected one price", (SET[0], SET[0])),
    Refusal("a negative price", r"prices\[0\]\.micro_credits_per_million", (pb.Price(unit=INPUT, micro_credits_per_million=-1),)),
    Refusal("too many credits", r"prices\[0\]\.micro_credits_per_million", (pb.Price(unit=INPUT, micro_credits_per_million=MANY),)),
    Refusal("a token with a size", r"`prices\[0\]\.size`: leave it out", (pb.Price(unit=INPUT, size="2k"),)),
    Refusal("a line end in a word", r"`prices\[0\]\.quality`", (pb.Price(unit=pb.BILLABLE_UNIT_IMAGE, quality="a\nb"),)),
    Refusal("a long note", "note", note="x" * 301),
]  # fmt: skip


async def test_malformed_prices_are_refused_by_their_field_and_prices_are_listed(tmp_path: Path) -> None:
    async with provider() as url, running(config(url), tmp_path) as gateway:
        admin = HttpAdmin(gateway.url, KEY)
        for case in REFUSALS:
            with pytest.raises(CommandError, match=case.problem):
                await update(admin, case.model, channel=case.channel, prices=case.prices, note=case.note)
        async with (
            aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session,
            session.patch("/admin/v1/models/own", json={"prices": [{"unit": "litre"}]}) as response,
        ):
            assert (response.status, (await response.json())["error"]["param"]) == (
                400,
                "prices[0].micro_credits_per_million",
            )

        [public] = (await listed(admin, model="public")).models
        [price] = public.channels
        assert (price.source, bool(price.as_of), bool(price.origin)) == (pb.PRICE_SOURCE_PUBLIC, True, True)
        await update(admin, "public", prices=SET)  # in place of the public price
        [public] = (await listed(admin, model="public")).models
        assert [each.source for each in public.channels] == [pb.PRICE_SOURCE_DATABASE]
        assert list(public.prices) == SET
        pages, token = list[str](), ""
        while True:
            page = await listed(admin, page_size=1, page_token=token)
            pages += [each.model for each in page.models]
            if not (token := page.next_page_token):
                break
        assert pages == ["own", "public"]  # the one without a price first
        with pytest.raises(CommandError, match="page_token"):
            await listed(admin, page_token="none")


async def test_roles_see_parts_and_changes_are_audited(tmp_path: Path) -> None:
    async with provider() as url, running(config(url), tmp_path) as gateway:
        owner, store = HttpAdmin(gateway.url, KEY), gateway.service.store
        seen, found_by_channel = {}, set()
        for role in Role:
            made = {"name": f"a {role}", "memberships": [Membership("", role)]}
            user = await Users(store).create(SERVICE_ACCOUNT, made)  # type: ignore[arg-type]
            _, secret = await ApiKeys(store).create(f"of {role}", user_id=user.user_id)
            admin = HttpAdmin(gateway.url, secret)
            [found] = (await listed(admin, model="public")).models
            seen[role] = bool(found.prices), bool(found.channels), bool(found.routes)
            if (await listed(admin, text="famous")).models:
                found_by_channel.add(role)
            if role is not Role.OWNER:
                with pytest.raises(CommandError, match=f"your role is {role}"):
                    await update(admin, prices=SET)
        whole, part, own = (True, True, True), (True, True, False), (True, False, False)
        assert seen == {Role.OWNER: whole, Role.ADMIN: whole, Role.VIEWER: whole, Role.BILLING: part, Role.MEMBER: own}
        assert found_by_channel == {*Role} - {Role.MEMBER}  # which does not see the channels
        await update(owner, prices=SET, note="contract")
        events = await owner.call(pb.ListAuditEventsRequest(object_ids=["own"]), pb.ListAuditEventsResponse)
        changed, *refused = events.events
        assert (changed.object_kind, changed.before_json, changed.after_json) == (
            "model",
            '{"note":"","price":null}',
            '{"note":"contract","price":"input 2, output 10"}',
        )
        assert len([each for each in refused if each.refused]) == len(Role) - 1


async def test_commands_set_show_and_reset_a_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UMG_ADMIN_KEY", KEY)

    async def printed(work: Coroutine[None, None, None]) -> str:
        capsys.readouterr()
        await work
        return capsys.readouterr().out

    async with provider() as url:
        file, data = tmp_path / "umg.yaml", tmp_path / "data"
        file.write_text(config(url))
        async with running(config(url), data) as gateway:
            remote = AdminTarget(gateway=gateway.url)
            out = await printed(commands.list_model_prices(remote, "", Form.TABLE, unpriced_only=True))
            assert ("own" in out, "public" in out) == (True, False)
            made = commands.set_model_price(remote, "own", "", ["input=2", "output=10"], "contract", dry_run=False)
            assert "own has input 2, output 10;" in await printed(made)
            planned = commands.set_model_price(remote, "own", "", ["input=3"], "", dry_run=True)
            assert await printed(planned) == "own would have input 3\n"
            assert "own has none;" in await printed(commands.reset_model_price(remote, "own", "", ""))
            with pytest.raises(typer.BadParameter, match="`litre` is no unit"):
                await commands.set_model_price(remote, "own", "", ["litre=2"], "", dry_run=False)
        local = AdminTarget(config=file, data=data)
        await commands.set_model_price(local, "own", "a", ["input=4"], "", dry_run=False)
        out = await printed(commands.list_model_prices(local, "own", Form.WIDE, unpriced_only=False))
        assert ("a: input 4" in out, "b: none" in out) == (True, True)
        code, out, err = await run("prices", "explain", "own", "--config", str(file), "--data", str(data))
        assert (code, "source: the database, by `umg prices set`" in out) == (0, True), err
