"""Models of a key: pages of them, and single ones."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from tests.support.gateways import KEY, Running, running
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.config import Config, parse
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.model_list_page_token import encode_token, page_after, page_before

METADATA = (("authorization", f"Bearer {KEY}"),)


def config(*ids: str, more: str = "") -> Config:
    channel = f"{{name: c, protocols: [chat], base_url: 'http://127.0.0.1:1', api_key: x, models: [{', '.join(ids)}]}}"
    return parse(f"channels: [{channel}]\n{more}", "test.yaml", {})


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Running, None]:
    async with running(config(*"dbaec"), tmp_path) as state:
        yield state


@pytest_asyncio.fixture
async def models(gateway: Running) -> rpc.ModelServiceStub:
    return rpc.ModelServiceStub(gateway.service.channel())


@dataclass(frozen=True)
class Page:
    id: str
    ids: str
    more: bool = False  # a page follows
    before: bool = False  # a page precedes
    fields: dict[str, object] = field(default_factory=dict)


PAGES = [
    Page("all", "abcde"),
    Page("the first", "ab", more=True, fields={"page_size": 2}),
    Page(
        "one in the middle",
        "cd",
        more=True,
        before=True,
        fields={"page_size": 2, "page_token": encode_token(page_after("b"))},
    ),
    Page("the last", "e", before=True, fields={"page_size": 2, "page_token": encode_token(page_after("d"))}),
    Page("as many as there are", "abcde", fields={"page_size": 5}),
    Page(
        "behind an id that is gone",
        "cd",
        more=True,
        before=True,
        fields={"page_size": 2, "page_token": encode_token(page_after("bb"))},
    ),
    Page(
        "before an id",
        "bc",
        more=True,
        before=True,
        fields={"page_size": 2, "page_token": encode_token(page_before("d"))},
    ),
    Page(
        "before an id that is gone",
        "bc",
        more=True,
        before=True,
        fields={"page_size": 2, "page_token": encode_token(page_before("cc"))},
    ),
    Page(
        "before an id, all that are left",
        "ab",
        more=True,
        fields={"page_size": 9, "page_token": encode_token(page_before("c"))},
    ),
    Page("behind the end", "", before=True, fields={"page_token": encode_token(page_after("z"))}),
    Page("behind the last", "", before=True, fields={"page_size": 2, "page_token": encode_token(page_after("e"))}),
    Page(
        "before the first",
        "",
        more=True,
        fields={"page_size": 2, "page_token": encode_token(page_before("a"))},
    ),
]


@pytest.mark.parametrize("case", PAGES, ids=lambda case: case.id)
async def test_a_page_has_the_models_at_its_position(case: Page, models: rpc.ModelServiceStub) -> None:
    response = await models.ListModels(pb.ListModelsRequest(**case.fields), metadata=METADATA)
    assert ids_of(response) == case.ids
    assert (bool(response.next_page_token), bool(response.previous_page_token)) == (case.more, case.before)


def ids_of(response: pb.ListModelsResponse) -> str:
    return "".join(model.id for model in response.models)


async def walk(models: rpc.ModelServiceStub, token: str, *, back: bool = False) -> str:
    """Return every id from the page of a token on, in the order of the pages."""
    seen = ""
    while token:
        request = pb.ListModelsRequest(page_size=2, page_token=token)
        response = await models.ListModels(request, metadata=METADATA)
        seen += ids_of(response)
        token = response.previous_page_token if back else response.next_page_token
    return seen


async def test_the_page_tokens_traverse_the_list_in_both_directions(models: rpc.ModelServiceStub) -> None:
    first = await models.ListModels(pb.ListModelsRequest(page_size=2), metadata=METADATA)
    assert ids_of(first) + await walk(models, first.next_page_token) == "abcde"
    last = await models.ListModels(
        pb.ListModelsRequest(page_size=2, page_token=encode_token(page_after("d"))), metadata=METADATA
    )
    assert await walk(models, last.previous_page_token, back=True) == "cdab"


@pytest.mark.parametrize("case", [case for case in PAGES if not case.ids], ids=lambda case: case.id)
async def test_the_tokens_of_an_empty_page_return_to_the_list(case: Page, models: rpc.ModelServiceStub) -> None:
    empty = await models.ListModels(pb.ListModelsRequest(**case.fields), metadata=METADATA)
    seen = await walk(models, empty.next_page_token or empty.previous_page_token, back=case.before)
    assert sorted(seen) == list("abcde")


async def test_a_page_token_is_valid_after_a_change_of_the_list(gateway: Running, models: rpc.ModelServiceStub) -> None:
    first = await models.ListModels(pb.ListModelsRequest(page_size=2), metadata=METADATA)
    gateway.service.reload(config(*"ad", "bb", "f"))  # the last id of the page is removed, another follows its place
    assert await walk(models, first.next_page_token) == "bbdf"


async def refusal(models: rpc.ModelServiceStub, request: pb.ListModelsRequest | pb.GetModelRequest) -> UmgError:
    call = models.ListModels if isinstance(request, pb.ListModelsRequest) else models.GetModel
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(request, metadata=METADATA)
    return from_rpc(caught.value)


@pytest.mark.parametrize("token", ["x", "a", "nonsense", "!!", "é", "PmI", "\0", "A" * 1000])
async def test_an_invalid_page_token_is_refused(token: str, models: rpc.ModelServiceStub) -> None:
    error = await refusal(models, pb.ListModelsRequest(page_token=token))
    assert (error.reason, error.metadata) == (pb.ERROR_REASON_INVALID_FIELD, {"field": "page_token"})


async def test_a_changed_page_token_is_refused(models: rpc.ModelServiceStub) -> None:
    first = await models.ListModels(pb.ListModelsRequest(page_size=2), metadata=METADATA)
    token = first.next_page_token
    for changed in (token[:-1], token + "A", token + "=", token.swapcase(), f" {token}"):
        error = await refusal(models, pb.ListModelsRequest(page_token=changed))
        assert error.metadata == {"field": "page_token"}


@pytest.mark.parametrize("size", [0, -1, 1001])
async def test_a_page_size_outside_its_range_is_refused(size: int, models: rpc.ModelServiceStub) -> None:
    error = await refusal(models, pb.ListModelsRequest(page_size=size))
    assert (error.reason, error.metadata) == (pb.ERROR_REASON_INVALID_FIELD, {"field": "page_size"})


MIXED = ("famG-2.5-flash", "famG-3-pro", "famO-5", "text-embedding-3-small", "vendor/large")
DESCRIPTIONS = "models: {famG-3-pro: {display_name: Three, created: 2025-06-15, description: The third.}}"


@pytest_asyncio.fixture
async def mixed(tmp_path: Path) -> AsyncGenerator[Running, None]:
    async with running(config(*MIXED, more=DESCRIPTIONS), tmp_path) as state:
        yield state


async def test_the_list_of_a_key_has_exactly_its_models(mixed: Running) -> None:
    models = rpc.ModelServiceStub(mixed.service.channel())
    _, secret = await ApiKeys(mixed.service.store).create("narrow", model_patterns=["famG-*", "vendor/large"])
    narrow = (("authorization", f"Bearer {secret}"),)
    listed = await models.ListModels(pb.ListModelsRequest(page_size=2), metadata=narrow)
    assert [model.id for model in listed.models] == ["famG-2.5-flash", "famG-3-pro"]
    rest = pb.ListModelsRequest(page_token=listed.next_page_token)
    assert [model.id for model in (await models.ListModels(rest, metadata=narrow)).models] == ["vendor/large"]
    for model in ("famG-3-pro", "famG-2.5-flash-thinking", "vendor/large"):
        assert (await models.GetModel(pb.GetModelRequest(model=model), metadata=narrow)).model.id == model
    entry = list[str]()
    for hidden in ("nope", "famO-5", "text-embedding-3-small"):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await models.GetModel(pb.GetModelRequest(model=hidden), metadata=narrow)
        error = from_rpc(caught.value)
        assert error.reason == pb.ERROR_REASON_MODEL_NOT_FOUND
        entry.append(error.message.replace(hidden, "nope"))
    assert entry == entry[:1] * 3, "nothing tells which of them is there"


VECTORS = (
    "channels: [{name: v, protocols: [embeddings], base_url: 'http://127.0.0.1:1', api_key: x, models: [b, d, e]}]"
)


async def test_a_page_has_the_models_of_an_operation(tmp_path: Path) -> None:
    texts = config("a", "c")
    both = parse(VECTORS, "test.yaml", {})
    async with running(replace(both, channels=(*texts.channels, *both.channels)), tmp_path) as gateway:
        models = rpc.ModelServiceStub(gateway.service.channel())
        request = pb.ListModelsRequest(operation=pb.MODEL_OPERATION_EMBED, page_size=2)
        first = await models.ListModels(request, metadata=METADATA)
        request.page_token = first.next_page_token
        last = await models.ListModels(request, metadata=METADATA)
    assert [model.id for model in (*first.models, *last.models)] == ["b", "d", "e"]
    assert not last.next_page_token


async def test_a_single_model_equals_its_entry_in_the_list(mixed: Running) -> None:
    models = rpc.ModelServiceStub(mixed.service.channel())
    listed = (await models.ListModels(pb.ListModelsRequest(), metadata=METADATA)).models
    assert [model.id for model in listed] == list(MIXED)
    for model in listed:
        found = await models.GetModel(pb.GetModelRequest(model=model.id), metadata=METADATA)
        assert found.model == model
    (entry,) = [model for model in listed if model.id == "famG-3-pro"]
    assert (entry.display_name, entry.description) == ("Three", "The third.")
    assert pb.MODEL_OPERATION_GENERATE in entry.operations
    assert entry.capabilities.reasoning == pb.REASONING_CONTROL_LEVEL


@pytest.mark.parametrize("suffix", ["-thinking", "-nothinking", "-thinking-low", "-thinking-high", "-thinking-1024"])
async def test_an_id_with_a_suffix_finds_its_model_and_is_returned_with_the_suffix(mixed: Running, suffix: str) -> None:
    models = rpc.ModelServiceStub(mixed.service.channel())
    for base, name in (("famG-2.5-flash", f"famG-2.5-flash{suffix}"), ("famG-3-pro", "Three")):
        plain = (await models.GetModel(pb.GetModelRequest(model=base), metadata=METADATA)).model
        found = (await models.GetModel(pb.GetModelRequest(model=base + suffix), metadata=METADATA)).model
        assert (found.id, found.display_name) == (base + suffix, name)
        found.id, found.display_name = plain.id, plain.display_name
        assert found == plain
    # changes to the response do not change the model's own description
    again = (await models.GetModel(pb.GetModelRequest(model="famG-2.5-flash"), metadata=METADATA)).model
    assert again.id == "famG-2.5-flash"


@pytest.mark.parametrize("model", ["famO-5-thinking", "famG-2.5-flash-thinking-", "famG-2.5-flash-thinkin", "fam"])
async def test_an_id_that_names_no_model_is_not_found(mixed: Running, model: str) -> None:
    error = await refusal(rpc.ModelServiceStub(mixed.service.channel()), pb.GetModelRequest(model=model))
    assert error.reason == pb.ERROR_REASON_MODEL_NOT_FOUND
    assert model in error.message


ROUTED = """\
channels:
- {name: here, protocols: [chat], base_url: "http://127.0.0.1:1", models: [m, famG-2.5-pro, "open-*"]}
- {name: there, protocols: [chat], base_url: "http://127.0.0.1:1", models: [n, {id: "vendor/*", upstream: "*"}]}
aliases: {fast: m, low: famG-2.5-pro-thinking-low, theirs: vendor/x}
models: {vendor/known: {display_name: Known}, m: {display_name: M}}
"""


@dataclass(frozen=True)
class Sees:
    id: str
    listed: str
    also: str = ""
    """Models that are not listed, yet found."""
    hidden: str = ""
    patterns: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()


SEES = [
    Sees("a key that may everything", "famG-2.5-pro fast low m n theirs vendor/known", "open-1 vendor/y fast"),
    Sees("one that may an alias alone", "fast", hidden="m n", patterns=("fast",)),
    Sees("a key that may use the model of an alias", "fast m", hidden="n theirs", patterns=("m",)),
    Sees("one of some channels", "n theirs vendor/known", "vendor/y", "m fast low open-1", channels=("th*",)),
    Sees("one of channels that there are not", "", "", "m n fast vendor/y", channels=("x",)),
    Sees("one of both", "famG-2.5-pro low", "open-1", "m n vendor/known", ("famG-*", "open-*", "n"), ("here",)),
]  # fmt: skip


@pytest.mark.parametrize("case", SEES, ids=lambda case: case.id)
async def test_a_key_sees_the_names_that_it_can_use(case: Sees, tmp_path: Path) -> None:
    async with running(parse(ROUTED, "test.yaml", {}), tmp_path) as state:
        models = rpc.ModelServiceStub(state.service.channel())
        keys = ApiKeys(state.service.store)
        _, secret = await keys.create("k", model_patterns=case.patterns, channels=case.channels)
        metadata = (("authorization", f"Bearer {secret}"),)
        listed = (await models.ListModels(pb.ListModelsRequest(), metadata=metadata)).models
        assert [model.id for model in listed] == case.listed.split()
        for model in listed:
            assert (await models.GetModel(pb.GetModelRequest(model=model.id), metadata=metadata)).model == model
        for name in case.also.split():
            found = await models.GetModel(pb.GetModelRequest(model=name), metadata=metadata)
            assert found.model.id == name
        for name in case.hidden.split():
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await models.GetModel(pb.GetModelRequest(model=name), metadata=metadata)
            assert from_rpc(caught.value).reason == pb.ERROR_REASON_MODEL_NOT_FOUND
