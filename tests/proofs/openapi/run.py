"""Run of schemathesis on all operations of the OpenAPI document, against a gateway."""

import copy
import re
import struct
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy  # noqa: F401  # before a thread of the gateway imports it: hypothesis would use it half-loaded
import requests
import schemathesis
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
STREAM, JSON_STREAM = "application/connect+proto", "application/connect+json"
"""Media types of streams. schemathesis takes the second for JSON, and so has no envelopes in it."""
ENVELOPE = struct.Struct(">BI")
SECONDS = 30
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
ANSWERS = re.compile(r"(?:admin|text|media|retrieval)\..*|\w+\.(?:Created|Task|Page|Models?)|umg\.v1\.\w+(?<!Request)")
"""Components of answers, which have models of any calls."""

Document = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    operation: str
    text: str


def prepared(document: Document, models: Mapping[str, str]) -> Document:
    """Return the document with ids of served models in its requests, by a word of the path or the component, and with
    the messages of methods in place of their envelopes.
    """
    document = copy.deepcopy(document)
    for name, schema in document["components"]["schemas"].items():
        model = schema.get("properties", {}).get("model", {})
        is_answer = ANSWERS.fullmatch(name)
        if model.get("type") == "string" and not is_answer:
            model["enum"] = _named(models, name)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] == "model":
                    parameter["schema"] = {"type": "string", "enum": _named(models, path)}
            for described in (operation.get("requestBody", {}), operation["responses"]["200"]):
                if STREAM in (content := described.get("content", {})):
                    del content[JSON_STREAM]
                    item = content[STREAM]["schema"]["x-message-schema"]
                    is_response = described is operation["responses"]["200"]
                    content[STREAM]["schema"] = {"type": "array", "items": item} if is_response else item
    return document


def _named(models: Mapping[str, str], name: str) -> list[str]:
    found = [model for word, model in models.items() if word in name.lower()]
    return found or list(models.values())


def fuzz(
    document: Document, url: str, headers: Mapping[str, str], examples: int, start: int, *, in_turn: bool = False
) -> Iterator[Finding]:
    """Call every operation with `examples` valid and as many invalid requests, and yield the failed checks. `start`:
    seed of the requests; `in_turn`: call each second operation with valid requests alone, the others with invalid ones.
    """
    schemathesis.serializer(STREAM)(_envelope)
    schemathesis.deserializer(STREAM)(_messages)
    with requests.Session() as session, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.headers.update(headers)
        for place, found in enumerate(schemathesis.openapi.from_dict(document).get_all_operations()):
            operation = found.ok()
            for mode in MODES[place % 2 :: 2] if in_turn else MODES:
                yield from _fuzz(operation, mode, url, session, examples, start)


def _fuzz(
    operation: APIOperation[Any, Any, Any, Any],
    mode: GenerationMode,
    url: str,
    session: requests.Session,
    examples: int,
    start: int,
) -> Iterator[Finding]:
    failed: dict[str, Finding] = {}

    @seed(start)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def call(case: Case) -> None:
        response = case.call(base_url=url, session=session, timeout=SECONDS)
        try:
            case.validate_response(response, checks=CHECKS)
        except FailureGroup as group:
            for failure in group.exceptions:
                text = f"{failure}\n{response.status_code} {response.content[:500]!r}\n{case.as_curl_command()[:1000]}"
                failed.setdefault(str(failure)[:80], Finding(operation.label, text))

    with suppress(Unsatisfiable):  # of an operation that has nothing that could be invalid
        call()
    yield from failed.values()


def _method(path: str) -> MethodDescriptor:
    service, name = path.strip("/").split("/")
    return Default().FindServiceByName(service).methods_by_name[name]


def _envelope(context: schemathesis.SerializationContext, value: object) -> bytes:
    """Return a message in its envelope; a value that is no message as its JSON."""
    message = GetMessageClass(_method(context.case.operation.path).input_type)()
    try:
        encoded = json_format.ParseDict(value, message).SerializeToString()
    except (json_format.ParseError, AttributeError, TypeError):
        encoded = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return ENVELOPE.pack(0, len(encoded)) + encoded


def _messages(context: schemathesis.DeserializationContext, answer: schemathesis.Response) -> list[object]:
    """Return the messages of a response in envelopes, without its end."""
    kind, messages, body = GetMessageClass(_method(context.operation.path).output_type), list[object](), answer.content
    while body:
        flags, length = ENVELOPE.unpack_from(body)
        message, body = body[ENVELOPE.size : ENVELOPE.size + length], body[ENVELOPE.size + length :]
        if not flags:
            messages.append(json_format.MessageToDict(kind.FromString(message)))
    return messages
