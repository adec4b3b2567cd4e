"""Decoding of providers' model lists. Each family of protocols has one shape. Unexpected members are ignored."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import urlencode

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.provider_key_headers import DEFAULT_KEY_HEADER, MESSAGES_KEY_HEADER, NATIVE_KEY_HEADER
from umg_grpc.wire.model_list_entries import Fields, ListedOperations, add_facts, count_of

PAGE_SIZE = 1000


@dataclass(frozen=True)
class ModelListPage:
    """Page of a provider's model list."""

    models: list[pb.Model]  # with the provider's ids, and the properties that the list states
    next_query: str  # query of the next page; "" for the last one


@dataclass(frozen=True)
class ProviderModelList:
    """Description of a provider's model list: the request that reads a page, and the function that decodes the page."""

    path: str  # below the base URL of a channel
    decode: Callable[[bytes, ListedOperations], ModelListPage]
    """Function that decodes the body of a page. Raises ValueError for a body that is no model list."""
    key_header: str = DEFAULT_KEY_HEADER
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Further headers of the request, for example the version of the API."""
    first_query: str = ""  # query of the first page; "" if there is none


def decode_openai(body: bytes, listed: ListedOperations) -> ModelListPage:
    """Decode OpenAI's model list: `data`, or the bare array that some providers send. Raise ValueError for others."""
    decoded = msgspec.json.decode(body)
    rows = decoded.get("data") if isinstance(decoded, dict) else decoded
    models = []
    for row, name in _rows(rows, "id"):
        model = pb.Model(id=name, display_name=_text(row, "name") or _text(row, "display_name"))
        if (created := count_of(row.get("created"))) is not None:
            model.create_time.FromSeconds(created)
        if add_facts(model, row, listed):
            models.append(model)
    return ModelListPage(models, "")


def decode_anthropic(body: bytes, listed: ListedOperations) -> ModelListPage:
    """Decode a page of Anthropic's model list. Raise ValueError for a body that is no model list."""
    decoded = msgspec.json.decode(body, type=dict[str, object])
    models = []
    for row, name in _rows(decoded.get("data"), "id"):
        model = pb.Model(id=name, display_name=_text(row, "display_name"))
        if (created := _text(row, "created_at")) and _is_timestamp(created):
            model.create_time.FromJsonString(created)
        if add_facts(model, row, listed):
            models.append(model)
    last = decoded.get("last_id")
    more = decoded.get("has_more") is True and isinstance(last, str)
    return ModelListPage(models, f"?{urlencode({'limit': PAGE_SIZE, 'after_id': last})}" if more else "")


def decode_gemini(body: bytes, listed: ListedOperations) -> ModelListPage:
    """Decode a page of Gemini's model list; `models/` is removed from ids. Raise ValueError for any other body."""
    decoded = msgspec.json.decode(body, type=dict[str, object])
    models = []
    for row, name in _rows(decoded.get("models"), "name"):
        model = pb.Model(id=name.rpartition("/")[2], display_name=_text(row, "displayName"))
        if add_facts(model, row, listed):
            models.append(model)
    token = decoded.get("nextPageToken")
    more = isinstance(token, str) and token
    return ModelListPage(models, f"?{urlencode({'pageSize': PAGE_SIZE, 'pageToken': token})}" if more else "")


def _rows(rows: object, name: str) -> Iterator[tuple[Fields, str]]:
    if not isinstance(rows, list):
        raise ValueError("expected a list of models")
    for row in rows:
        if isinstance(row, dict) and isinstance(value := row.get(name), str) and value:
            yield row, value


def _text(row: Fields, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _is_timestamp(text: str) -> bool:
    try:
        pb.Model().create_time.FromJsonString(text)
    except ValueError:
        return False
    return True


OPENAI_LIST = ProviderModelList("/models", decode_openai)
ANTHROPIC_LIST = ProviderModelList(
    "/models",
    decode_anthropic,
    MESSAGES_KEY_HEADER,
    MappingProxyType({"anthropic-version": "2023-06-01"}),
    f"?{urlencode({'limit': PAGE_SIZE})}",
)
GEMINI_LIST = ProviderModelList(
    "/models", decode_gemini, NATIVE_KEY_HEADER, first_query=f"?{urlencode({'pageSize': PAGE_SIZE})}"
)
