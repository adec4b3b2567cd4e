"""Adjustment of an encoded request to the dialect of its vendor, for operations with one response."""

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.vendor_member_dialects import MemberDialect, PurposeMember
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.text_format_interface import UpstreamRequest

JSON_NULL = Raw(b"null")
CONVERTED_MEMBERS = frozenset({"encoding_format"})
"""Members whose removal loses nothing: the response is converted to the form that the caller selected."""


def fit_members(encoded: UpstreamRequest, request: object, dialect: MemberDialect) -> UpstreamRequest:
    """Return a request with the path and members that the vendor accepts; report others. `request`: the canonical one.
    Raise UmgError(UNTRANSLATABLE) for a vector length that the model does not have.
    """
    fields = msgspec.json.decode(encoded.body, type=dict[str, Raw])
    fitted = dict[str, Raw]()
    for name, value in fields.items():
        if name == "dimensions" and dialect.only_dimensions:
            _require_only_length(value, dialect.only_dimensions)
        elif not _is_left_out(name, value, dialect):
            fitted[dialect.renames.get(name, name)] = value
        elif name not in CONVERTED_MEMBERS:
            encoded.report.drop(name)
    for name, text in dialect.adds.items():
        if fitted.get(name, JSON_NULL) == JSON_NULL:
            fitted[name] = Raw(msgspec.json.encode(text))
    if dialect.task is not None and isinstance(request, pb.EmbedRequest):
        _add_task(fitted, request, dialect.task, encoded.report)
    if dialect.path:
        encoded = msgspec.structs.replace(encoded, path=dialect.path)
    return encoded if fitted == fields else msgspec.structs.replace(encoded, body=msgspec.json.encode(fitted))


def _require_only_length(value: Raw, length: int) -> None:
    if bytes(value) != b"%d" % length:
        problem = f"this model makes vectors of {length} numbers only; leave it out or choose another model"
        raise untranslatable("dimensions", problem)


def _is_left_out(name: str, value: Raw, dialect: MemberDialect) -> bool:
    refused = dialect.leaves_out.get(name)
    return refused is not None and (not refused or msgspec.json.decode(value) in refused)


def _add_task(fitted: dict[str, Raw], request: pb.EmbedRequest, task: PurposeMember, report: Report) -> None:
    kinds = {item.task_type or request.task_type for item in request.inputs}
    value = task.values.get(kinds.pop()) if len(kinds) == 1 else None
    if value is None or task.name in fitted:
        return
    fitted[task.name] = Raw(msgspec.json.encode(value))
    for name in ("task_type", *(f"inputs[{index}].task_type" for index in range(len(request.inputs)))):
        report.forget(name)
