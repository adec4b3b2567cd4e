"""Decoding of the lists of their models that providers return, in one shape for each family of protocols. Unexpected
members are ignored.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import urlencode

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.key_headers import DEFAULT_KEY_HEADER, MESSAGES_KEY_HEADER, NATIVE_KEY_HEADER

Fields = Mapping[str, object]
PAGE_SIZE = 1000
MICRO = 1_000_000
MAX_MICRO_CREDITS = 10**15
"""Highest price that is taken over; a higher one is an error of the provider's list."""


@dataclass(frozen=True)
class Page:
    """Page of a provider's model list."""

    models: list[pb.Model]
    """Models by the provider's ids, with the properties that the list states."""
    next_query: str
    """Query of the next page; "" for the last one."""


@dataclass(frozen=True)
class ListedOperations:
    """Words by which providers' model lists state the operations of models."""

    words: Mapping[str, "Sequence[pb.ModelOperation.ValueType]"]
    """`type` of a model, or an element of its `supportedGenerationMethods` -> operations."""
    id_parts: Mapping[str, "pb.ModelOperation.ValueType"]
    """Part of the id of a model whose list states no type, in lower case -> operation. The first one counts."""


@dataclass(frozen=True)
class ModelList:
    """Description of a provider's model list: the request that reads a page, and the function that decodes the page."""

    path: str
    """Path below the base URL of a channel."""
    decode: Callable[[bytes, ListedOperations], Page]
    """Function that decodes the body of a page. Raises ValueError for a body that is no model list."""
    key_header: str = DEFAULT_KEY_HEADER
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Further headers of the request, for example the version of the API."""
    first_query: str = ""
    """Query of the first page; "" for none."""


def decode_openai(body: bytes, listed: ListedOperations) -> Page:
    """Decode a model list of OpenAI's shape: an object with `data`, or the bare array that some providers send. Raise
    ValueError for any other body.
    """
    decoded = msgspec.json.decode(body)
    rows = decoded.get("data") if isinstance(decoded, dict) else decoded
    return Page([_openai_model(row, name, listed) for row, name in _rows(rows, "id")], "")


def decode_anthropic(body: bytes, _: ListedOperations) -> Page:
    """Decode a page of a model list of the messages format's vendor. Raise ValueError for a body that is no model
    list.
    """
    decoded = msgspec.json.decode(body, type=dict[str, object])
    models = []
    for row, name in _rows(decoded.get("data"), "id"):
        model = pb.Model(id=name, display_name=_text(row, "display_name"))
        if (created := _text(row, "created_at")) and _is_timestamp(created):
            model.create_time.FromJsonString(created)
        models.append(model)
    last = decoded.get("last_id")
    more = decoded.get("has_more") is True and isinstance(last, str)
    return Page(models, f"?{urlencode({'limit': PAGE_SIZE, 'after_id': last})}" if more else "")


def decode_gemini(body: bytes, listed: ListedOperations) -> Page:
    """Decode a page of a model list of the native format's vendor, and remove `models/` from the ids. Raise
    ValueError for a body that is no model list.
    """
    decoded = msgspec.json.decode(body, type=dict[str, object])
    models = []
    for row, name in _rows(decoded.get("models"), "name"):
        model = pb.Model(id=name.rpartition("/")[2], display_name=_text(row, "displayName"))
        _set_limits(model, row, ("inputTokenLimit",), ("outputTokenLimit",))
        for method in _words(row.get("supportedGenerationMethods")):
            model.operations.extend(listed.words.get(method, ()))
        models.append(model)
    token = decoded.get("nextPageToken")
    more = isinstance(token, str) and token
    return Page(models, f"?{urlencode({'pageSize': PAGE_SIZE, 'pageToken': token})}" if more else "")


CONTEXT_FIELDS = ("context_length", "context_window", "max_model_len", "max_context_length", "max_input_tokens")
OUTPUT_FIELDS = ("max_completion_tokens", "max_output_tokens")
TYPE_FIELDS = ("type", "model_type")
"""Kind of a model in one word (https://docs.together.ai/reference/models, https://vercel.com/docs/ai-gateway,
https://novita.ai/docs/api-reference). Others have lists of words: `endpoints` (https://docs.cohere.com/reference/list-models),
`capabilities` (https://docs.mistral.ai/api), `architecture` (https://openrouter.ai/docs/overview/models).
"""
PRICE_FIELDS: Mapping[str, "pb.BillableUnit.ValueType"] = {
    "prompt": pb.BILLABLE_UNIT_INPUT_TOKEN,
    "completion": pb.BILLABLE_UNIT_OUTPUT_TOKEN,
    "input_cache_read": pb.BILLABLE_UNIT_CACHE_READ_TOKEN,
    "input_cache_write": pb.BILLABLE_UNIT_CACHE_WRITE_TOKEN,
    "internal_reasoning": pb.BILLABLE_UNIT_REASONING_TOKEN,
}
"""Price of one token in US dollars (https://openrouter.ai/docs/overview/models) -> unit."""
MILLION_PRICE_FIELDS: Mapping[str, "pb.BillableUnit.ValueType"] = {
    "input": pb.BILLABLE_UNIT_INPUT_TOKEN,
    "output": pb.BILLABLE_UNIT_OUTPUT_TOKEN,
}
"""Price of a million tokens in US dollars (https://docs.together.ai/reference/models) -> unit."""


def _openai_model(row: Fields, name: str, listed: ListedOperations) -> pb.Model:
    model = pb.Model(id=name, display_name=_text(row, "name") or _text(row, "display_name"))
    if (created := _count(row, "created")) is not None:
        model.create_time.FromSeconds(created)
    provider = row.get("top_provider")
    _set_limits(model, {**(provider if isinstance(provider, dict) else {}), **row}, CONTEXT_FIELDS, OUTPUT_FIELDS)
    model.operations.extend(_operations(row, name, listed))
    pricing = row.get("pricing")
    if isinstance(pricing, dict):
        model.prices.extend(_prices(pricing))
    _set_capabilities(model, row)
    return model


def _operations(row: Fields, name: str, listed: ListedOperations) -> "Sequence[pb.ModelOperation.ValueType]":
    """Return the operations of a model by the words in its list entry, otherwise by its id; () if neither shows any."""
    for words in _operation_words(row):
        if known := dict.fromkeys(operation for word in words for operation in listed.words.get(word, ())):
            return tuple(known)
    return next(((operation,) for part, operation in listed.id_parts.items() if part in name.lower()), ())


def _operation_words(row: Fields) -> Iterator[Sequence[str]]:
    """Yield the words for the operations of a model in each member of its list entry that has some."""
    for name in TYPE_FIELDS:
        yield (_text(row, name).lower(),)
    yield _words(row.get("endpoints"))
    capabilities, architecture = row.get("capabilities"), row.get("architecture")
    if isinstance(capabilities, dict):
        yield [word for word, value in capabilities.items() if value is True]
    if isinstance(architecture, dict):
        yield _words(architecture.get("output_modalities"))


def _prices(pricing: Fields) -> Iterator[pb.Price]:
    """Yield the token prices of a model. A negative price, which means that another model's price applies, is
    skipped.
    """
    in_tokens = "prompt" in pricing
    for key, unit in (PRICE_FIELDS if in_tokens else MILLION_PRICE_FIELDS).items():
        price = _number(pricing.get(key))
        if price is None:
            continue
        micro_credits = round(price * MICRO * (MICRO if in_tokens else 1))
        is_repeated = unit not in TEXT_UNITS and not micro_credits  # 0 stands for none of its own
        if 0 <= micro_credits <= MAX_MICRO_CREDITS and not is_repeated:
            yield pb.Price(unit=unit, micro_credits_per_million=micro_credits)


TEXT_UNITS = frozenset({pb.BILLABLE_UNIT_INPUT_TOKEN, pb.BILLABLE_UNIT_OUTPUT_TOKEN})


def _set_capabilities(model: pb.Model, row: Fields) -> None:
    """Set the capabilities of a model if its list entry states both modalities and supported parameters."""
    architecture, parameters = row.get("architecture"), row.get("supported_parameters")
    if not isinstance(architecture, dict) or not isinstance(parameters, list):
        return
    reasons = "reasoning" in parameters
    model.capabilities.input_modalities.extend(_words(architecture.get("input_modalities")))
    model.capabilities.output_modalities.extend(_words(architecture.get("output_modalities")))
    model.capabilities.tools = "tools" in parameters
    model.capabilities.structured_output = "structured_outputs" in parameters
    model.capabilities.reasoning = pb.REASONING_CONTROL_LEVEL if reasons else pb.REASONING_CONTROL_UNSPECIFIED


def _set_limits(model: pb.Model, row: Fields, context: tuple[str, ...], output: tuple[str, ...]) -> None:
    limits = [next((n for name in names if (n := _count(row, name)) is not None), None) for names in (context, output)]
    if limits[0] is not None and limits[0] <= MAX_COUNT:
        model.input_token_limit = limits[0]
    if limits[1] is not None and limits[1] <= MAX_COUNT:
        model.output_token_limit = limits[1]


def _rows(rows: object, name: str) -> Iterator[tuple[Fields, str]]:
    """Yield (list entry, model id) of a model list; `name`: member of the entry with the id. Entries without an id
    are skipped. Raise ValueError if `rows` is no list.
    """
    if not isinstance(rows, list):
        raise ValueError("expected a list of models")
    for row in rows:
        if isinstance(row, dict) and isinstance(value := row.get(name), str) and value:
            yield row, value


def _text(row: Fields, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _count(row: Fields, name: str) -> int | None:
    number = _number(row.get(name))
    return int(number) if number is not None and 1 <= number < 2**40 else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _words(values: object) -> list[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _is_timestamp(text: str) -> bool:
    try:
        pb.Model().create_time.FromJsonString(text)
    except ValueError:
        return False
    return True


OPENAI_LIST = ModelList("/models", decode_openai)
ANTHROPIC_LIST = ModelList(
    "/models",
    decode_anthropic,
    MESSAGES_KEY_HEADER,
    MappingProxyType({"anthropic-version": "2023-06-01"}),
    f"?{urlencode({'limit': PAGE_SIZE})}",
)
GEMINI_LIST = ModelList(
    "/models", decode_gemini, NATIVE_KEY_HEADER, first_query=f"?{urlencode({'pageSize': PAGE_SIZE})}"
)
