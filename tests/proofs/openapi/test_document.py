"""OpenAPI document: valid, complete, and the same for each start."""

import re
from typing import Any

import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from http_facade.openapi.openapi_document import document, documented
from http_facade.openapi.operation_texts import DESCRIBED_OPERATIONS
from http_facade.routes import ROUTE_TABLE, Shape
from umg_grpc.v1.comments import comments

Document = dict[str, Any]


@pytest.fixture(scope="module")
def made() -> Document:
    read: Document = msgspec.json.decode(msgspec.json.encode(document()))
    return read


def test_the_document_is_valid_openapi(made: Document) -> None:
    assert [error.message for error in OpenAPIV31SpecValidator(made).iter_errors()] == []


def test_every_route_has_an_operation(made: Document) -> None:
    for row in documented(ROUTE_TABLE):
        if row.shape is not Shape.CALL_METHOD:
            assert row.method.lower() in made["paths"][row.name]
    assert DESCRIBED_OPERATIONS.keys() == set(Shape) - {Shape.UNARY}  # described by the rows of the operations


def test_every_operation_has_a_summary_and_a_description(made: Document) -> None:
    for path, operations in made["paths"].items():
        for operation in operations.values():
            assert operation["summary"], path
            assert operation.get("description") != "", path


def test_ids_of_operations_are_unique_and_are_names(made: Document) -> None:
    ids = [operation["operationId"] for operations in made["paths"].values() for operation in operations.values()]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z]\w*", name) for name in ids)


def test_every_component_is_used_and_every_used_one_is_there(made: Document) -> None:
    used = set(re.findall(rb'"#/components/([\w./]+)"', msgspec.json.encode(made)))
    there = {f"{kind}/{name}".encode() for kind in ("schemas", "responses") for name in made["components"][kind]}
    assert used == there


def test_the_build_writes_the_comments_of_the_schema() -> None:
    assert comments()["umg.v1.GenerationService.Generate"].startswith("Generate")
