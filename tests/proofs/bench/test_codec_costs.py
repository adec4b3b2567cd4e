"""Benchmark of the codecs: it measures translations of the same bodies in every format. No time is measured."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import msgspec
import pytest

from bench.codec_costs import (
    ANSWER,
    BATCH,
    QUICK,
    WORKS,
    Amount,
    Cost,
    Work,
    canonical,
    measured,
    provider_samples,
    rounds,
)
from bench.codec_samples import REPLY, THEIRS, TOOLS, TURNS, samples, words
from bench.processes import BenchError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS, TEXT_UPSTREAMS
from umg_grpc.wire.core.stream_aggregator import StreamAggregator

ROOT = Path(__file__).parents[3]


class Translation(msgspec.Struct):
    """Members of a measured pair that the test reads."""

    face: str
    upstream: str
    work: str
    over_the_cheapest: float | None
    rounds: list[float]


class Written(msgspec.Struct):
    """Members of `--json` that the test reads."""

    translations: list[Translation]
    rows: list[msgspec.Raw]


@pytest.mark.skipif(sys.platform != "linux", reason="the benchmark reads /proc")
def test_every_pair_of_formats_is_in_the_table_and_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    command = [sys.executable, "-m", "bench", "translate", "--quick", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    written = msgspec.json.decode(file.read_bytes(), type=Written)
    found = [(each.face, each.upstream, each.work) for each in written.translations]
    assert sorted(found) == sorted(product(TEXT_FORMATS, TEXT_UPSTREAMS, WORKS))
    assert {len(each.rounds) for each in written.translations} == {1}
    assert all((each.over_the_cheapest is None) == (each.face == each.upstream) for each in written.translations)
    for work in WORKS:  # one of the sixteen is the cheapest
        assert min(each.over_the_cheapest or 9 for each in written.translations if each.work == work) == 1
    assert written.rows == []  # no scenario was selected
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line[:1] == "|"]
    assert [tuple(cells[:2]) for cells in lines if cells[1] in TEXT_UPSTREAMS] == list(
        product(TEXT_FORMATS, TEXT_UPSTREAMS)
    )
    assert [cells[0] for cells in lines if cells[0] in TEXT_UPSTREAMS and cells[1] not in TEXT_UPSTREAMS] == list(
        TEXT_UPSTREAMS
    )


def test_each_round_measures_each_pair_once() -> None:
    lines = list[str]()
    costs = [cost for some in rounds(2, Amount(1, 1, 1, 1), lines.append) for cost in some]
    assert sorted(cost[:3] for cost in costs) == sorted([*product(TEXT_FORMATS, TEXT_UPSTREAMS, WORKS)] * 2)
    assert len(lines) == 2


def test_a_translation_with_another_meaning_is_a_failure() -> None:
    work = Work(ANSWER, [b"a"] * BATCH * 2, bytes.decode, str.encode, expected=["a"] * BATCH + ["b"] * BATCH)
    with pytest.raises(BenchError, match="'b' is not in b'a'"):
        measured("chat", "native", work)
    fine = Work(ANSWER, [b'"', b"c"], lambda body: b"\\" + body, bytes, expected=['"', "c"])
    assert isinstance(measured("chat", "native", fine), Cost)


@pytest.mark.parametrize("face", TEXT_FORMATS)
def test_an_agents_body_has_the_same_meaning_in_every_format(face: str) -> None:
    body = samples()[face].agent
    assert 0.95e6 < len(body) < 1.1e6
    request = canonical(face, body)
    parts = [part for message in request.messages for part in message.parts]
    assert len(request.tools) == TOOLS
    assert len({tool.function.parameters_json for tool in request.tools}) == 1
    assert sum(part.HasField("tool_call") for part in parts) == TURNS
    assert sum(part.HasField("tool_result") for part in parts) == TURNS
    assert not TEXT_FORMATS[face].decode_request(body, {}).notes.indispensable


@pytest.mark.parametrize("face", TEXT_FORMATS)
@pytest.mark.parametrize("upstream", TEXT_UPSTREAMS)
def test_nothing_that_matters_is_dropped(face: str, upstream: str) -> None:
    for body in (samples()[face].small, samples()[face].agent):
        notes = TEXT_FORMATS[face].decode_request(body, {}).notes
        report = TEXT_UPSTREAMS[upstream].encode_request(canonical(face, body), THEIRS, False, notes=notes).report
        assert set(report.dropped) <= {"cache_control"}


@pytest.mark.parametrize("upstream", TEXT_UPSTREAMS)
def test_the_answers_and_streams_are_whole(upstream: str) -> None:
    known, request = provider_samples()[upstream], canonical("chat", samples()["chat"].small)
    answer = TEXT_UPSTREAMS[upstream].decode_response(known.answer, request, False)
    stream, aggregator = known.stream(QUICK.events), StreamAggregator()
    decoder = TEXT_UPSTREAMS[upstream].translating_decoder(request)
    read = [decoder.feed(data) for data in (stream.opening, *stream.deltas, stream.ending) if data]
    for message in (*read, decoder.close()):
        aggregator.feed(message or pb.StreamGenerateResponse())
    for response, text in ((answer, REPLY), (aggregator.response(), "".join(words(QUICK.events)))):
        assert [part.text.text for part in response.candidates[0].message.parts] == [text]
        assert response.candidates[0].finish_reason == pb.FINISH_REASON_STOP
        assert response.usage.input_tokens == 31
