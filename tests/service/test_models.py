"""Pages of the model list."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from umg_grpc.cli.serve import Address, Options, gateway
from umg_grpc.config import parse
from umg_grpc.v1 import pb, rpc

CONFIG = "channels: [{name: c, protocols: [chat], base_url: 'http://127.0.0.1:1', api_key: x, models: [d, b, a, e, c]}]"
METADATA = (("authorization", "Bearer sk-umg-models"),)


@pytest_asyncio.fixture
async def models(tmp_path: Path) -> AsyncGenerator[rpc.ModelServiceStub, None]:
    anywhere = Address("127.0.0.1", 0)
    options = Options(None, anywhere, anywhere, tmp_path, ("grpc",))
    async with gateway(options, parse(CONFIG, "test.yaml", {}), {"UMG_API_KEY": "sk-umg-models"}, None) as state:
        assert state.service is not None
        yield rpc.ModelServiceStub(state.service.channel())


@dataclass(frozen=True)
class Page:
    id: str
    ids: str
    more: bool = False  # a page follows
    before: bool = False  # a page goes before
    asked: dict[str, object] = field(default_factory=dict)


PAGES = [
    Page("all", "abcde"),
    Page("the first", "ab", more=True, asked={"page_size": 2}),
    Page("one in the middle", "cd", more=True, before=True, asked={"page_size": 2, "after_id": "b"}),
    Page("the last", "e", before=True, asked={"page_size": 2, "after_id": "d"}),
    Page("behind an id that is gone", "cd", more=True, before=True, asked={"page_size": 2, "after_id": "bb"}),
    Page("before an id", "bc", more=True, before=True, asked={"page_size": 2, "before_id": "d"}),
    Page("behind the end", "", before=True, asked={"after_id": "z"}),
]


@pytest.mark.parametrize("case", PAGES, ids=lambda case: case.id)
async def test_a_page_holds_what_stands_there(case: Page, models: rpc.ModelServiceStub) -> None:
    response = await models.ListModels(pb.ListModelsRequest(**case.asked), metadata=METADATA)
    assert "".join(model.id for model in response.models) == case.ids
    assert (bool(response.next_page_token), bool(response.previous_page_token)) == (case.more, case.before)


async def test_the_tokens_lead_through_the_whole_list(models: rpc.ModelServiceStub) -> None:
    seen, token = "", ""
    while True:
        position = {"page_token": token} if token else {}
        response = await models.ListModels(pb.ListModelsRequest(page_size=2, **position), metadata=METADATA)
        seen += "".join(model.id for model in response.models)
        token = response.next_page_token
        if not token:
            break
    assert seen == "abcde"
