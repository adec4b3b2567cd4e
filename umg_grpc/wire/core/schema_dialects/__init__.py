"""JSON schemas in the dialects of vendors. Schemas are never changed in place. A keyword that the vendor rejects is
rewritten, or becomes a sentence of the description and is reported.
"""

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import SchemaDialect
from umg_grpc.wire.core.json_decoding import JsonObject, invalid
from umg_grpc.wire.core.native_schema_conversion import json_schema
from umg_grpc.wire.core.schema_dialects.keyword_changes import TooDeepError, for_gemini, for_moonshot
from umg_grpc.wire.core.schema_dialects.subset_rules import CLAUDE_SUBSET, OPENAI_SUBSET
from umg_grpc.wire.core.schema_dialects.vendor_subsets import SubsetEncoder, UnrepresentableError
from umg_grpc.wire.dropped_fields_report import Report

DIALECT_SUBSETS = {"claude": CLAUDE_SUBSET, "openai": OPENAI_SUBSET}


def fit_schema(
    schema_json: str, dialect: SchemaDialect | None, report: Report, at: str, *, native: bool, strict: bool
) -> object | None:
    """Return a schema in the form that the vendor accepts; the caller's text if nothing changes, None if there is none.

    `native`: whether it is in the dialect of the native format. `strict`: whether the vendor is to enforce it; OpenAI
    has no rules for other schemas. `report`: collects the constraints that only the description has. Raise
    UmgError(INVALID_FIELD) for a text that is not one JSON value.
    """
    written = json_schema(schema_json, native, at)
    if dialect in (None, "json_object", "none") or (dialect == "openai" and not strict):
        return written
    schema = _decoded(written, at) if isinstance(written, Raw) else written
    if not isinstance(schema, dict):
        return None
    try:
        fitted = _fitted(schema, dialect, report, at)
    except TooDeepError:
        return written
    return written if fitted == schema else fitted


def _fitted(schema: JsonObject, dialect: SchemaDialect, report: Report, at: str) -> JsonObject | None:
    if dialect == "gemini":
        return for_gemini(schema)
    if dialect == "moonshot":
        return for_moonshot(schema)
    encoder = SubsetEncoder(schema, DIALECT_SUBSETS[dialect])
    try:
        fitted = encoder.encode()
    except UnrepresentableError:
        return None
    for keyword in encoder.lost:
        report.drop(f"{at}.{keyword}")
    return fitted


def _decoded(written: Raw, at: str) -> object:
    try:
        return msgspec.json.decode(written)
    except (ValueError, RecursionError):
        raise invalid(at, "the schema is nested too deeply, or has too large numbers; simplify it") from None
