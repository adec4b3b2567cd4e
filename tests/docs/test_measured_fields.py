"""Page docs/fields.md, on embeddings, reranking and model lists: each field is changed, and the other side must change
exactly as the page lists beside it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import inspect

from tests.docs.flat import changed, covers, leaves, set_fields
from tests.unit.schema.test_fields import BY_FORMAT, FACES, HOMES, VALUES, Row, fields_on, names
from umg_grpc.v1 import pb
from umg_grpc.wire.core.embedding_vectors import pack
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.embeddings.schema import EmbeddingsBody
from umg_grpc.wire.model_lists import MODEL_LISTS
from umg_grpc.wire.native_embeddings.schema import BatchBody, EmbedBody
from umg_grpc.wire.rerank import RERANK_FORMATS
from umg_grpc.wire.rerank.schema import RerankBody
from umg_grpc.wire.unary_format_interface import ClientShape

SDK = ClientShape.SDK
SECTIONS: Mapping[str, type[Message]] = {
    "Embedding request": pb.EmbedRequest,
    "Embedding answer": pb.EmbedResponse,
    "Rerank request": pb.RerankRequest,
    "Rerank answer": pb.RerankResponse,
    "Model": pb.Model,
}
SHAPES = {"chat": "models", "messages": "messages_models", "native": "native_models"}
"""Columns of the model lists -> rows of `MODEL_LISTS`."""


def rows_of(section: str) -> list[Row]:
    return [row for row in HOMES if row.section == section]


def own(row: Row, wire: str) -> list[str]:
    """Return the body fields that a format's cell names."""
    return [name for name in names(row.of_formats[wire]) if not name.startswith("{")]


# --- requests: a body is changed


@dataclass(frozen=True)
class Face:
    """Encoding and decoding of one kind of request."""

    id: str
    section: str
    least: Mapping[str, Any]
    body: type[msgspec.Struct]

    def decode(self, body: Any) -> Message:
        codecs: Mapping[str, Any] = EMBEDDING_FORMATS | RERANK_FORMATS
        decoded: Message = codecs[self.id].decode_request(json.dumps(body).encode(), {}).canonical
        return decoded

    def report(self, body: Any, provider: Any) -> Report:
        codecs: Mapping[str, Any] = EMBEDDING_FORMATS | RERANK_FORMATS
        request, notes = codecs[self.id].decode_request(json.dumps(body).encode(), {})
        report: Report = provider.encode_request(request, "m", notes).report
        return report


CONTENT = {"content": {"parts": [{"text": "x"}]}}
RANKING = {"model": "m", "query": "q", "documents": ["x"]}
FACES_OF_REQUESTS = [
    Face("embeddings", "Embedding request", {"model": "m", "input": "x"}, EmbeddingsBody),
    Face("native_embedding", "Embedding request", CONTENT, EmbedBody),
    Face("native_embeddings", "Embedding request", {"requests": [CONTENT]}, BatchBody),
    Face("rerank", "Rerank request", RANKING, RerankBody),
    Face("rerank_v2", "Rerank request", RANKING, RerankBody),
]
every_face = pytest.mark.parametrize("face", FACES_OF_REQUESTS, ids=lambda face: face.id)
TWO: dict[str, tuple[Any, Any]] = {
    "documents": (["a"], ["b"]),
    "encoding_format": ("float", "base64"),
    "rank_fields": (["a", "text"], ["b", "text"]),
    "return_documents": (False, True),
    "taskType": ("CLUSTERING", "CLASSIFICATION"),
    **dict.fromkeys(("model", "input", "user", "content", "text", "title", "query"), ("a", "b")),
    **dict.fromkeys(("dimensions", "outputDimensionality", "top_n", "priority"), (1, 2)),
    **dict.fromkeys(("max_chunks_per_doc", "max_tokens_per_doc"), (1, 2)),
}
"""Two values of each field, by the last word of its path."""


def put(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy of the body with the value at the path, in the first element of each list."""
    made = json.loads(json.dumps(body))
    owner = made
    *way, last = path.split(".")
    for step in way:
        name, listed = step.removesuffix("[]"), step.endswith("[]")
        owner = owner.setdefault(name, [{}] if listed else {})
        owner = owner[0] if listed else owner
    owner[last] = value
    return dict(made)


@every_face
def test_a_field_of_a_body_is_decoded_into_its_canonical_field(face: Face) -> None:
    for row in rows_of(face.section):
        homes = {fields_on(name)[-1].full_name for name in names(row.cells[0])}
        for name in own(row, face.id):
            one, other = (
                dict(set_fields(face.decode(put(dict(face.least), name, value)))) for value in TWO[name.split(".")[-1]]
            )
            found = {key.split()[1] for key in one.keys() | other.keys() if one.get(key) != other.get(key)}
            assert found == homes, name


@pytest.mark.parametrize(("name", "field"), [("taskType", "task_type"), ("outputDimensionality", "dimensions")])
def test_different_items_have_their_own_options(name: str, field: str) -> None:
    [row] = [row for row in rows_of("Embedding request") if names(row.cells[0]) == [f"EmbedRequest.inputs.{field}"]]
    assert row.of_formats["native_embeddings"] == "the same, where they differ"
    one, other = TWO[name]
    decoded = FACES_OF_REQUESTS[2].decode({"requests": [{**CONTENT, name: one}, {**CONTENT, name: other}]})
    assert isinstance(decoded, pb.EmbedRequest)
    assert [getattr(item, field) for item in decoded.inputs] == [one, other]
    assert not decoded.HasField(field)  # type: ignore[arg-type]  # its stub lists the names


def test_other_kinds_of_input_than_text_are_decoded() -> None:
    tokens = FACES_OF_REQUESTS[0].decode({"model": "m", "input": [[1, 2], [3]]})
    assert isinstance(tokens, pb.EmbedRequest)
    assert [list(item.tokens.ids) for item in tokens.inputs] == [[1, 2], [3]]
    for face in FACES_OF_REQUESTS[3:]:
        ranked = face.decode({**RANKING, "documents": ["a", {"text": "b", "n": 1}]})
        assert isinstance(ranked, pb.RerankRequest)
        assert [document.WhichOneof("content") for document in ranked.documents] == ["text", "object_json"]


def known(kind: inspect.Type, path: str = "") -> Iterator[str]:
    """Yield the paths of the leaves of a struct's type."""
    match kind:
        case inspect.StructType(fields=fields):
            for field in fields:
                yield from known(field.type, f"{path}.{field.encode_name}".lstrip("."))
        case inspect.ListType(item_type=item) if isinstance(item, inspect.StructType):
            yield from known(item, f"{path}[]")
        case inspect.UnionType(types=types):
            for each in types:
                yield from known(each, path)
        case inspect.Metadata(type=inner):
            yield from known(inner, path)
        case inspect.NoneType():
            pass
        case _:
            yield path


@every_face
def test_every_field_that_a_body_may_have_is_on_the_page(face: Face) -> None:
    carried = {name for row in rows_of(face.section) for name in own(row, face.id)}
    documented = carried | {name for row in alone(face.id) for name in names(row.cells[1])}
    fields = set(known(inspect.type_info(face.body)))
    assert {path for path in fields if not any(covers(name, path) for name in documented)} == set()
    assert {name for name in documented if not any(covers(name, path) for path in fields)} == set()


def alone(face: str) -> list[Row]:
    section = "Only in the source document"
    return [row for row in BY_FORMAT if row.section == section and row.cells[0] == face]


OTHER: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "embeddings": ("native_embeddings", EMBEDDING_FORMATS),
    "native_embedding": ("embeddings", EMBEDDING_FORMATS),
    "native_embeddings": ("embeddings", EMBEDDING_FORMATS),
    "rerank": ("rerank_v2", RERANK_FORMATS),
    "rerank_v2": ("rerank", RERANK_FORMATS),
}
"""Face -> a provider format other than its own."""


@every_face
def test_a_field_without_canonical_form_is_reported_or_ignored_as_documented(face: Face) -> None:
    other, codecs = OTHER[face.id]
    provider = codecs[other]
    for row in alone(face.id):
        for name in names(row.cells[1]):
            value: Any = {"mode": "enabled"} if name == "relevant_spans" else True
            value = "user" if name.endswith("role") else value
            body = put(dict(face.least), name, value)
            report = face.report(body, provider)
            reported = [name.replace("[]", "[0]")] if "Reported" in row.cells[2] else []
            assert list(report.dropped) == reported, name
    report = face.report({**face.least, "zork": 1}, provider)
    assert report.header() == "zork"


# --- answers and models: a message is changed


def encoded(message: Message, wire: str) -> dict[str, Any]:
    if isinstance(message, pb.Model):
        return dict(leaves(json.loads(MODEL_LISTS[SHAPES[wire]].encode_model(message))))
    codecs: Mapping[str, Any] = EMBEDDING_FORMATS | RERANK_FORMATS
    request = pb.EmbedRequest() if isinstance(message, pb.EmbedResponse) else pb.RerankRequest()
    return dict(leaves(json.loads(codecs[wire].encode_response(message, request, SDK))))


def values(field: FieldDescriptor) -> Sequence[Any]:
    """Return some values of a field: all of an enum, for a list one element each."""
    kinds: dict[int, Sequence[Any]] = {
        FieldDescriptor.CPPTYPE_STRING: ("a", "image", "file"),
        FieldDescriptor.CPPTYPE_BOOL: (False, True),
        FieldDescriptor.CPPTYPE_DOUBLE: (0.25, 0.5),
    }
    if field.enum_type is not None:
        return [value.number for value in field.enum_type.values]
    if field.name == "values":
        return (pack([1, 0]), pack([0, 1]))
    if field.message_type is Timestamp.DESCRIPTOR:
        return (Timestamp(seconds=86400), Timestamp(seconds=2 * 86400))
    if field.message_type is not None:  # of a document
        return (pb.RerankDocument(text="a"), pb.RerankDocument(text="b"))
    return kinds.get(field.cpp_type, (1, 2))


def fill(message: Message, path: Sequence[FieldDescriptor], value: Any) -> None:
    """Set the field at the path, in one element of each list on the way."""
    owner: Any = message
    for field in path[:-1]:
        owner = getattr(owner, field.name)
        if field.is_repeated:
            owner = owner[0] if owner else owner.add()
    last = path[-1]
    if last.is_repeated:
        owner.ClearField(last.name)
        getattr(owner, last.name).append(value)
    elif last.message_type is not None:
        getattr(owner, last.name).CopyFrom(value)
    else:
        setattr(owner, last.name, value)


def homes_of(section: str) -> list[str]:
    return [home for row in rows_of(section) for home in names(row.cells[0]) if not home.endswith(".source")]


def whole(section: str) -> Message:
    message = SECTIONS[section]()
    for home in homes_of(section):
        path = fields_on(home)
        fill(message, path, values(path[-1])[0])
    return message


MEASURED = [
    (row, wire)
    for section in ("Embedding answer", "Rerank answer", "Model")
    for row in rows_of(section)
    if ".source`" not in row.cells[0]
    for wire in row.of_formats
]


@pytest.mark.parametrize(("row", "wire"), MEASURED, ids=[f"{row.id}, {wire}" for row, wire in MEASURED])
def test_a_canonical_field_is_encoded_as_documented(row: Row, wire: str) -> None:
    found = set[str]()
    for home in names(row.cells[0]):
        path, before = fields_on(home), whole(row.section)
        for value in values(path[-1]):
            after = whole(row.section)
            fill(after, path, value)
            found |= changed(encoded(before, wire), encoded(after, wire))
    documented = own(row, wire)
    assert {path for path in found if not any(covers(name, path) for name in documented)} == set()
    assert {name for name in documented if not any(covers(name, path) for path in found)} == set()


@pytest.mark.parametrize(("section", "wire"), sorted({(row.section, wire) for row, wire in MEASURED}))
def test_every_encoded_field_is_documented(section: str, wire: str) -> None:
    anew = [row for row in BY_FORMAT if row.section == "Written anew" and row.cells[0] == wire]
    documented = {name for row in anew for name in names(row.cells[1])}
    documented |= {name for row in rows_of(section) for name in own(row, wire)}
    bodies = [encoded(whole(section), wire)]
    if section != "Embedding answer":
        bodies.append(encoded(SECTIONS[section](), wire))
    written = {
        re.sub(r"\[\d+\]", "[]", path) for body in bodies for path, value in body.items() if value not in (None, [])
    }
    assert {path for path in written if not any(covers(name, path) for name in documented)} == set()


@pytest.mark.parametrize("face", [face for face in FACES if face in EMBEDDING_FORMATS])
def test_vectors_of_a_provider_are_passed_through(face: str) -> None:
    passed = pb.EmbedResponse(source=pb.SourceDocument(format=face, body=b"{}"))
    assert EMBEDDING_FORMATS[face].encode_response(passed, pb.EmbedRequest(), SDK) == b"{}"


# --- model lists


@pytest.mark.parametrize("wire", SHAPES)
def test_the_query_parameters_of_a_list_are_decoded_as_documented(wire: str) -> None:
    decode = MODEL_LISTS[SHAPES[wire]].decode_query
    paging_rows = {row.cells[0]: row for row in rows_of("Model lists") if "Request.p" in row.cells[0]}
    assert len(paging_rows) == 2
    for row in paging_rows.values():
        [home] = names(row.cells[0])
        for name in own(row, wire):
            assert set(changed(dict(set_fields(decode({name: "1"}))), dict(set_fields(decode({name: "2"}))))) == {
                f"/{fields_on(home)[-1].name}[] {fields_on(home)[-1].full_name}"
            }
    sizes = rows_of("Model lists")[0].of_formats[wire]
    [default] = re.findall(r"else (\d+)", sizes) or [""]
    assert str(decode({}).page_size or "") == default


@pytest.mark.parametrize("wire", SHAPES)
def test_a_list_has_its_models_and_the_documented_paging_fields(wire: str) -> None:
    encode, model = MODEL_LISTS[SHAPES[wire]].encode_list, pb.Model(id="m")
    rows = {names(row.cells[0])[0]: row for row in rows_of("Model lists")}
    documented = {"models": own(rows["ListModelsResponse.models"], wire)}
    documented["next_page_token"] = own(rows["ListModelsResponse.next_page_token"], wire)

    def body(**fields: Any) -> dict[str, Any]:
        return dict(json.loads(encode(pb.ListModelsResponse(**fields), pb.ListModelsRequest())))

    least = body()
    for field, value in (("models", [model]), ("next_page_token", "t")):
        found = {name for name, encoded_value in body(**{field: value}).items() if encoded_value != least.get(name)}
        assert found == set(documented[field]), field


@pytest.mark.parametrize("row", [row for row in VALUES if row.section == "Model"], ids=lambda row: row.id)
def test_a_value_is_encoded_as_documented(row: Row) -> None:
    messages, native = row.of_formats["messages"], row.of_formats["native"]
    for name in names(row.cells[0]):
        match name.split("_")[:2]:
            case ["MODEL", "OPERATION"]:
                model = pb.Model(operations=[pb.ModelOperation.Value(name)], capabilities=pb.ModelCapabilities())
                thinking = encoded(model, "messages")["capabilities.thinking.types.disabled.supported"]
                encoded_value = json.loads(MODEL_LISTS["native_models"].encode_model(model))
                assert thinking == (messages == "true")
                assert encoded_value["supportedGenerationMethods"] == [
                    action for action in native.split(", ") if action != "-"
                ]
            case ["REASONING", "CONTROL"]:
                model = pb.Model(capabilities=pb.ModelCapabilities(reasoning=pb.ReasoningControl.Value(name)))
                kinds = [
                    encoded(model, "messages")[f"capabilities.{kind}.supported"] for kind in ("thinking", "effort")
                ]
                assert [word == "true" for word in re.findall("true|false", messages)] == kinds
                assert encoded(model, "native")["thinking"] == (native == "true")
            case ["MODEL", "LIFECYCLE"]:
                model = pb.Model(lifecycle=pb.ModelLifecycle.Value(name))
                assert encoded(model, "messages")["lifecycle"] == messages.split(",", maxsplit=1)[0]
            case kind:
                assert kind == ["BILLABLE", "UNIT"]


def test_an_unset_field_of_a_model_has_the_documented_value() -> None:
    model = pb.Model(id="m")
    chat, messages, native = (encoded(model, wire) for wire in SHAPES)
    assert (chat["created"], messages["created_at"][:4]) == (0, "1970")
    assert {messages["display_name"], native["displayName"], native["version"]} == {"m"}
    assert (native["description"], messages["lifecycle"], messages["capabilities"]) == ("", "active", None)
