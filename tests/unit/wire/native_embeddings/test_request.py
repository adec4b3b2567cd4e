"""A caller's body and the provider's."""

from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.laws import few, members, present_members, sprinkled
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.embeddings import EMBEDDINGS_FORMAT
from umg_grpc.wire.native_embeddings import NATIVE_EMBEDDING, NATIVE_EMBEDDINGS
from umg_grpc.wire.text_format_interface import UpstreamRequest
from umg_grpc.wire.unary_format_interface import UnaryFormat

Codec = UnaryFormat[pb.EmbedRequest, pb.EmbedResponse]
Json = dict[str, object]
TEXT = {"parts": [{"text": "a"}]}


def texts(*words: str) -> list[pb.EmbeddingInput]:
    return [pb.EmbeddingInput(text=each) for each in words]


@dataclass(frozen=True)
class Reading:
    """A body of `:embedContent`."""

    id: str
    body: Json
    request: pb.EmbedRequest = field(default_factory=lambda: pb.EmbedRequest(inputs=texts("a")))


def titled(title: str) -> pb.EmbedRequest:
    return pb.EmbedRequest(inputs=[pb.EmbeddingInput(text="a", title=title)])


QUERY = pb.EmbedRequest(inputs=texts("a"), task_type="RETRIEVAL_QUERY")
SHORT = pb.EmbedRequest(inputs=texts("a"), dimensions=256)
# fmt: off
READINGS = [
    Reading("a text", {"content": TEXT}),
    Reading("a turn", {"content": {"role": "user", **TEXT}}),
    Reading("a part without its list", {"content": {"parts": {"text": "a"}}}),
    Reading("several texts", {"content": {"parts": [{"text": "a"}, {"text": ""}, {"text": "b\n"}, {"text": "c"}]}}, pb.EmbedRequest(inputs=texts("a\nb\n\nc"))),
    Reading("a task", {"content": TEXT, "taskType": "RETRIEVAL_QUERY"}, QUERY),
    Reading("a task in snake_case", {"content": TEXT, "task_type": "RETRIEVAL_QUERY"}, QUERY),
    Reading("a task in small letters", {"content": TEXT, "taskType": "retrieval_query"}, QUERY),
    Reading("a task in the config", {"content": TEXT, "embedContentConfig": {"taskType": "RETRIEVAL_QUERY"}}, QUERY),
    Reading("a task in either unknown_field", {"content": TEXT, "taskType": "CLUSTERING", "embed_content_config": {"task_type": "RETRIEVAL_QUERY"}}, QUERY),
    Reading("no task", {"content": TEXT, "taskType": "TASK_TYPE_UNSPECIFIED"}),
    Reading("a title", {"content": TEXT, "title": "t"}, titled("t")),
    Reading("an empty title", {"content": TEXT, "title": ""}, titled("")),
    Reading("a title in the config", {"content": TEXT, "embedContentConfig": {"title": "t"}}, titled("t")),
    Reading("dimensions", {"content": TEXT, "outputDimensionality": 256}, SHORT),
    Reading("dimensions in snake_case", {"content": TEXT, "output_dimensionality": 256}, SHORT),
    Reading("whole dimensions", {"content": TEXT, "outputDimensionality": 256.0}, SHORT),
    Reading("dimensions as text", {"content": TEXT, "outputDimensionality": "256"}, SHORT),
    Reading("dimensions in the config", {"content": TEXT, "outputDimensionality": 8, "embedContentConfig": {"outputDimensionality": 256}}, SHORT),
    Reading("an empty config", {"content": TEXT, "outputDimensionality": 256, "embedContentConfig": {}}, SHORT),
    Reading("a model", {"content": TEXT, "model": "models/m"}, pb.EmbedRequest(model="m", inputs=texts("a"))),
    Reading("a model with a slash", {"content": TEXT, "model": "models/a/b"}, pb.EmbedRequest(model="a/b", inputs=texts("a"))),
    Reading("nulls", {"content": {"role": None, "parts": [{"text": "a"}]}, "taskType": None, "title": None, "outputDimensionality": None, "embedContentConfig": None, "model": None}),
]
# fmt: on


def unsourced(request: pb.EmbedRequest) -> pb.EmbedRequest:
    request.ClearField("source")
    return request


def sent(face: Codec, provider: Codec, body: bytes) -> UpstreamRequest:
    request, notes = face.decode_request(body, {})
    return provider.encode_request(request, "theirs", notes)


@pytest.mark.parametrize("case", READINGS, ids=lambda case: case.id)
def test_a_body_is_read(case: Reading) -> None:
    body = msgspec.json.encode(case.body)
    request = NATIVE_EMBEDDING.decode_request(body, {}).canonical
    assert request.source == pb.SourceDocument(format="native_embedding", body=body)
    assert unsourced(request) == case.request


@pytest.mark.parametrize("case", READINGS, ids=lambda case: case.id)
def test_a_batch_of_one_is_encoded_as_a_single_request(case: Reading) -> None:
    body = msgspec.json.encode({"requests": [case.body]})
    request = NATIVE_EMBEDDINGS.decode_request(body, {}).canonical
    assert request.source == pb.SourceDocument(format="native_embeddings", body=body)
    assert unsourced(request) == case.request


def test_options_that_all_items_share_are_those_of_the_request() -> None:
    item = {"content": TEXT, "taskType": "CLUSTERING", "outputDimensionality": 8}
    body = msgspec.json.encode({"requests": [{**item, "title": "t"}, {**item, "task_type": "clustering"}]})
    request = unsourced(NATIVE_EMBEDDINGS.decode_request(body, {}).canonical)
    inputs = [pb.EmbeddingInput(text="a", title="t"), pb.EmbeddingInput(text="a")]
    assert request == pb.EmbedRequest(inputs=inputs, task_type="CLUSTERING", dimensions=8)


def test_options_that_differ_are_those_of_each_item() -> None:
    items = [{"content": TEXT, "taskType": "CLUSTERING"}, {"content": TEXT, "outputDimensionality": 8}]
    request = unsourced(NATIVE_EMBEDDINGS.decode_request(msgspec.json.encode({"requests": items}), {}).canonical)
    inputs = [pb.EmbeddingInput(text="a", task_type="CLUSTERING"), pb.EmbeddingInput(text="a", dimensions=8)]
    assert request == pb.EmbedRequest(inputs=inputs)


# --- to a provider of the same format

SINGLE = {"content": {"role": "user", "parts": [{"text": "a"}]}, "embed_content_config": {"taskType": "CLUSTERING"}}


@few
@given(st.data(), st.sampled_from([None, "ours", "models/ours"]))
def test_every_field_except_the_model_is_forwarded_byte_for_byte(data: st.DataObject, named: str | None) -> None:
    body = msgspec.json.encode(sprinkled(SINGLE | ({"model": named} if named else {}), data))
    upstream = sent(NATIVE_EMBEDDING, NATIVE_EMBEDDING, body)
    assert members(upstream.body) == present_members(body) | ({"model": b'"models/theirs"'} if named else {})
    assert (upstream.path, upstream.report.lost) == ("/models/theirs:embedContent", 0)


@few
@given(st.data(), st.lists(st.sampled_from([None, "ours", "models/ours"]), min_size=1, max_size=3))
def test_every_item_of_a_batch_gets_the_providers_model(data: st.DataObject, named: list[str | None]) -> None:
    items = [SINGLE | ({"model": model} if model else {}) for model in named]
    body = msgspec.json.encode(sprinkled({"requests": items}, data))
    upstream = sent(NATIVE_EMBEDDINGS, NATIVE_EMBEDDINGS, body)
    assert upstream.path == "/models/theirs:batchEmbedContents"
    assert members(upstream.body).keys() == present_members(body).keys()
    for encoded, written in zip(listed(upstream.body), listed(body), strict=True):
        assert members(encoded) == present_members(written) | {"model": b'"models/theirs"'}


def listed(body: bytes) -> list[bytes]:
    return [bytes(raw) for raw in msgspec.json.decode(members(body)["requests"], type=list[msgspec.Raw])]


@pytest.mark.parametrize(
    ("written", "encoded"),
    [
        (
            b'{"requests":[{"content":{"parts":[{"text":"a"}]}}],"model":"ours"}',
            b'{"requests":[{"content":{"parts":[{"text":"a"}]},"model":"models/theirs"}],"model":"models/theirs"}',
        ),
        (
            b'{"requests":{"model":"ours", "content":{"parts":{"text":"a"}}}}',
            b'{"requests":[{"model":"models/theirs","content":{"parts":{"text":"a"}}}]}',
        ),
    ],
    ids=["items without a model", "an item without its list"],
)
def test_spellings_of_the_gateway_are_encoded_in_those_of_providers(written: bytes, encoded: bytes) -> None:
    assert sent(NATIVE_EMBEDDINGS, NATIVE_EMBEDDINGS, written).body == encoded


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("m", "/models/m"),
        ("models/m", "/models/m"),
        ("a/b", "/models/a/b"),
        ("a/../b", "/models/a%2F..%2Fb"),
        ("a:b?", "/models/a%3Ab%3F"),
    ],
)
def test_a_model_id_cannot_change_the_path(model: str, path: str) -> None:
    request = pb.EmbedRequest(inputs=texts("a"))
    upstream = NATIVE_EMBEDDINGS.encode_request(request, model)
    assert upstream.path == f"{path}:batchEmbedContents"
    (item,) = listed(upstream.body)
    assert members(item)["model"] == msgspec.json.encode(f"models/{model.removeprefix('models/')}")


# --- unknown fields


@dataclass(frozen=True)
class UnknownField:
    path: str
    body: Json  # body of a single call
    count: int = 1

    @property
    def id(self) -> str:
        return self.path


UNKNOWN_FIELDS = [
    UnknownField("zork", {"content": TEXT, "zork": 1}),
    UnknownField("content.zork", {"content": {**TEXT, "zork": 1}}),
    UnknownField("content.parts[1].zork", {"content": {"parts": [{"text": "a"}, {"text": "b", "zork": 1}]}}),
    UnknownField("embedContentConfig.zork", {"content": TEXT, "embedContentConfig": {"zork": 1}}),
    UnknownField(
        "embed_content_config.zork", {"content": TEXT, "embed_content_config": {"zork": 1, "null": None}, "zork": 2}, 2
    ),
]


def reports(face: Codec, body: Json) -> Report:
    request, notes = face.decode_request(msgspec.json.encode(body), {})
    assert not face.encode_request(request, "m", notes).report.lost
    return EMBEDDINGS_FORMAT.encode_request(request, "m", notes).report


@pytest.mark.parametrize("unknown_field", UNKNOWN_FIELDS, ids=lambda unknown_field: unknown_field.id)
def test_an_unknown_field_is_reported_by_its_path(unknown_field: UnknownField) -> None:
    report = reports(NATIVE_EMBEDDING, unknown_field.body)
    assert (report.lost, next(iter(report.dropped))) == (unknown_field.count, unknown_field.path)


@pytest.mark.parametrize("unknown_field", UNKNOWN_FIELDS, ids=lambda unknown_field: unknown_field.id)
def test_an_unknown_field_of_an_item_is_reported_by_its_path(unknown_field: UnknownField) -> None:
    report = reports(NATIVE_EMBEDDINGS, {"requests": [{"content": TEXT}, unknown_field.body], "zork": None})
    assert (report.lost, next(iter(report.dropped))) == (unknown_field.count, f"requests[1].{unknown_field.path}")


def test_unsupported_options_are_reported_by_their_path_in_the_callers_spelling() -> None:
    config = {"autoTruncate": False, "mimeType": "text/plain", "documentOcr": None, "audio_track_extraction": True}
    items: list[Json] = [{"content": TEXT}, *[{"content": TEXT, "embedContentConfig": config}] * 2]
    report = reports(NATIVE_EMBEDDINGS, {"requests": items})
    names = ("mimeType", "autoTruncate", "audio_track_extraction")
    assert report.header() == ", ".join(f"requests.embedContentConfig.{name}" for name in names)
    report = reports(NATIVE_EMBEDDING, {"content": TEXT, "embed_content_config": {"auto_truncate": True}})
    assert report.header() == "embed_content_config.auto_truncate"


# --- to a provider, without a source body


def test_options_are_set_on_each_item_or_on_the_request() -> None:
    inputs = [pb.EmbeddingInput(text="a", title="t", task_type="CLUSTERING"), pb.EmbeddingInput(text="b", dimensions=4)]
    request = pb.EmbedRequest(model="m", inputs=inputs, task_type="RETRIEVAL_QUERY", dimensions=8)
    assert [msgspec.json.decode(item) for item in listed(NATIVE_EMBEDDINGS.encode_request(request, "theirs").body)] == [
        {"model": "models/theirs", "content": {"parts": [{"text": "a"}]}, "taskType": "CLUSTERING", "title": "t", "outputDimensionality": 8},
        {"model": "models/theirs", "content": {"parts": [{"text": "b"}]}, "taskType": "RETRIEVAL_QUERY", "outputDimensionality": 4},
    ]  # fmt: skip


@pytest.mark.parametrize("codec", [NATIVE_EMBEDDING, NATIVE_EMBEDDINGS], ids=lambda codec: codec.name)
def test_a_request_of_another_format_is_a_batch(codec: Codec) -> None:
    body = b'{"model":"m","input":"a","user":"u","encoding_format":"base64"}'
    upstream = sent(EMBEDDINGS_FORMAT, codec, body)
    assert upstream.path == "/models/theirs:batchEmbedContents"
    assert upstream.body == b'{"requests":[{"model":"models/theirs","content":{"parts":[{"text":"a"}]}}]}'
    assert upstream.report.header() == "user"  # `encoding_format` concerns only the caller's answer


def test_tokens_are_refused() -> None:
    request = EMBEDDINGS_FORMAT.decode_request(b'{"model":"m","input":[[1,2],[3]]}', {}).canonical
    with pytest.raises(UmgError) as caught:
        NATIVE_EMBEDDINGS.encode_request(request, "m")
    assert caught.value.reason == pb.ERROR_REASON_UNTRANSLATABLE
    assert EMBEDDINGS_FORMAT.wire_path(caught.value.metadata["field"]) == "input[0]"
