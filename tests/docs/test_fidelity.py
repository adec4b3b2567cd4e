"""Page docs/fidelity.md: the codecs do as it states, nothing is lost without a report, and the gateway sends callers
the report.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import aiohttp
import pytest
import pytest_asyncio

from tests.pairs.fidelity.alone import UNMEASURED
from tests.pairs.fidelity.measure import Cell, Row, decoded, everything
from tests.pairs.fidelity.page import PAGE, render
from tests.pairs.fidelity.sample import FORMATS, TARGETS, Sample
from tests.pairs.table import LEAST, STRICT_MODELS
from tests.support.callers.http_caller import HttpCaller
from tests.support.gateways import channel, running, takes_all
from tests.support.providers import converse_wire
from tests.support.providers.scenarios import Answer, ScenarioRequest
from tests.support.providers.server import RecordingProvider, serve_provider
from tests.support.recorded_gateway import RecordedGateway
from tests.unit.schema.test_fields import HOMES, VALUES, names
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS as CODECS
from umg_grpc.wire import TEXT_UPSTREAMS

TABLES = everything()
ROWS = [row for rows in TABLES.values() for row in rows]


def test_the_page_equals_the_measurements() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make fidelity` and look at the difference"


@pytest.mark.parametrize("row", ROWS, ids=[row.sample.row for row in ROWS])
def test_every_lost_field_is_reported(row: Row) -> None:
    silent = {way: cell.note for way, cell in row.cells.items() if cell.kind == "silent"}
    changed = {(face, target) for (face, target), cell in row.cells.items() if face == target and cell.kind != "exact"}
    assert silent == {}
    assert row.sample.ignored or changed == set()


def test_every_field_of_a_request_is_measured() -> None:
    covered = {home for row in ROWS if isinstance(row.sample, Sample) for home in row.sample.covers} | set(UNMEASURED)
    homes = {home for row in HOMES if row.section in ("Request", "Conversation") for home in names(row.cells[0])}
    values = {value for row in VALUES if row.section in ("Request", "Conversation") for value in names(row.cells[0])}
    assert sorted((homes | values) - covered) == []


def test_no_measured_field_is_on_the_list_of_exceptions() -> None:
    covered = {home for row in ROWS if isinstance(row.sample, Sample) for home in row.sample.covers}
    assert sorted(covered & set(UNMEASURED)) == []


# --- through the gateway


ANSWERS = {
    name: CODECS[name].encode_response(
        pb.GenerateResponse(
            response_id="r",
            model="m",
            candidates=[
                pb.Candidate(
                    message=pb.Message(role=pb.ROLE_ASSISTANT, parts=[pb.Part(text=pb.TextPart(text="x"))]),
                    finish_reason=pb.FINISH_REASON_STOP,
                )
            ],
            usage=pb.Usage(input_tokens=1, output_tokens=1),
        ),
        pb.GenerateRequest(model="m"),
    )
    for name in FORMATS
} | {"converse": json.dumps(converse_wire.whole(ScenarioRequest(model="m"), Answer(("x",)), {})).encode()}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def captured(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RecordedGateway, None]:
    """Run a gateway with a channel of each format to one provider."""
    provider = RecordingProvider(lambda request: ANSWERS[request.path.split("/")[1]])
    async with AsyncExitStack() as stack:
        url = (await stack.enter_async_context(serve_provider(provider))).url
        channels = [
            channel(each, each, f"{url}/{each}", f"to-{each}", STRICT_MODELS[each]) + takes_all(each)
            for each in TARGETS
        ]
        config = "channels:\n" + "".join(f"{each}    shared_objects: true\n" for each in channels)
        gateway = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("fidelity")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield RecordedGateway(HttpCaller(session, gateway.url, gateway.key), provider)


WHOLE = [
    (row, face, target, cell)
    for number, row in enumerate(ROWS)
    for place, ((face, target), cell) in enumerate(row.cells.items())
    if isinstance(row.sample, Sample) and not row.sample.bodies[face].get("stream") and face != target
    if (number + place) % 3 == 0
]
"""A third of the cells, each field in several of its ways: the codecs were measured in all of them."""
BY_CELL = pytest.mark.parametrize(
    ("row", "face", "target", "cell"),
    WHOLE,
    ids=[f"{row.sample.row}, {face} -> {target}" for row, face, target, _ in WHOLE],
)


@pytest.mark.asyncio(loop_scope="module")
@BY_CELL
async def test_fields_that_a_provider_does_not_get_are_reported_to_the_caller(
    captured: RecordedGateway, row: Row, face: str, target: str, cell: Cell
) -> None:
    assert isinstance(row.sample, Sample)
    body = LEAST[face] | row.sample.bodies[face]
    model = {} if face == "native" else {"model": f"to-{target}"}
    captured.provider.received.clear()
    got = await captured.caller.send(face, f"to-{target}", json.dumps(body | model).encode())
    strict = await captured.caller.send(
        face, f"to-{target}", json.dumps(body | model).encode(), **{"x-umg-strict": "true"}
    )
    if cell.kind == "refused":
        assert (got.status, strict.status, captured.provider.bodies) == (400, 400, [])
        return
    request, _, notes = decoded(face, row.sample.bodies[face])
    upstream = TEXT_UPSTREAMS[target].encode_request(request, STRICT_MODELS[target], False, notes=notes)
    report = upstream.report
    report.rename(CODECS[face].wire_path)
    assert (got.status, got.headers.get("x-umg-dropped", "")) == (200, report.header())
    assert captured.provider.bodies[0] == json.loads(upstream.body)
    assert strict.status == (400 if report.lost else 200)
    if report.lost:
        assert len(captured.provider.bodies) == 1
        assert strict.is_error
        assert next(iter(report.dropped), "") in strict.error.message
