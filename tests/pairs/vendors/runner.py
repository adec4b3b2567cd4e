"""Outcomes of calls: the fate of a feature between the caller of a face and the vendor of a model."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, get_args

from tests.pairs.vendors import gateway, sources
from tests.pairs.vendors.features import (
    ANY,
    BASES,
    EMBEDDING_BASES,
    EMBEDDING_FACES,
    EMBEDDING_FEATURES,
    FACES,
    LONG,
    TEXT_FEATURES,
    Feature,
    Way,
)
from tests.pairs.vendors.gateway import Model, Sent
from tests.pairs.vendors.judge import refusal
from tests.pairs.vendors.refusal import Json, Refusal, VendorCall

Outcome = Literal["kept", "moved", "left out", "refused", "unchanged", "REFUSED BY VENDOR", "LOST IN SILENCE"]
"""`unchanged`: the vendor refuses a body that is sent as its caller wrote it, in the vendor's own format or to a model
that no source has.
"""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
STREAMED = ("stream", "agent")
OWN_FORMATS = {
    "openai": ("chat", "responses"),
    "azure": ("chat", "responses"),
    "anthropic": ("messages",),
    "bedrock-anthropic": ("messages",),
    "gemini": ("native",),
    "vertex": ("native",),
}
"""Vendor -> formats that are its own, so that a body of its caller is sent as it came unless a row is certain."""
OTHER_PROTOCOL = ("openai.chat-tools", "openai.responses-only")
"""Refusals of a protocol by a vendor that has another protocol for the same request."""
OFF = ("effort-none", "thinking-off")
EXAMPLES = {"user": "somebody-1", "user_id": "somebody-1", "safety_identifier": "somebody-1", "thinkingBudget": 1024}
ALL_BASES = {**BASES, **EMBEDDING_BASES}
BUDGET_LIMIT = 20_000


@dataclass(frozen=True)
class Result:
    """Outcome of one call. `wrong`: why it is not right, "" if it is."""

    model: Model
    face: str
    feature: str
    outcome: Outcome
    wrong: str = ""
    protocol: str = ""
    dropped: str = ""
    sent: str = ""
    message: str = ""

    @property
    def id(self) -> str:
        return f"{self.model.vendor}:{self.model.id}|{self.face}|{self.feature}"


def run(model: Model, face: str, feature: Feature, body: Json | None = None) -> Result:
    """Return the outcome of a feature. `body`: the caller's body, if it is not the feature's own."""
    request = ALL_BASES[face] | feature.requests.get(face, {}) if body is None else body
    try:
        if face in EMBEDDING_FACES:
            sent = gateway.embed(model, face, request)
        else:
            sent = gateway.send(model, face, request, stream=feature.id in STREAMED)
    except gateway.UmgError as error:
        message, at = error.message, error.metadata.get("field", "")
        wrong = "" if feature.meaning and not _has(model, feature) else "refused, the vendor can do it"
        if feature.meaning and not at:
            wrong = "refused without the name of a field"
        if not feature.meaning:
            wrong = "refused, though it could be left out"
        return Result(model, face, feature.id, "refused", wrong, message=f"{at}: {message}")
    result = judged(model, face, feature, sent)
    for part in feature.parts.get(face, ()) if result.outcome != "REFUSED BY VENDOR" else ():
        found = judged(model, face, part, sent)
        if found.outcome == "LOST IN SILENCE":
            return replace(found, feature=f"{feature.id}.{part.id}")
    return result


def judged(model: Model, face: str, feature: Feature, sent: Sent) -> Result:
    """Return the outcome of a feature of a request that was sent to the vendor of a model."""
    dropped = ", ".join(name if value is None else f"{name}={value}" for name, value in sent.dropped.items())
    parts = (sent.protocol, dropped, sent.body.decode())
    refused = refusal(model.vendor, model.own_id, sent.protocol, sent.body, sent.headers)
    if refused is not None:
        message = f"{refused.id} at {refused.field}: {refused.message}"
        is_own = face == sent.protocol and (model.is_unknown or face in OWN_FORMATS.get(model.vendor, ()))
        if is_own and refused.id not in OTHER_PROTOCOL:
            return Result(model, face, feature.id, "unchanged", "", *parts, message)
        return Result(model, face, feature.id, "REFUSED BY VENDOR", refused.id, *parts, message)
    body = json.loads(sent.body)
    nothing_lost = feature.harmless or (feature.id in OFF and not _reasons(model))
    named = [name for name in sent.dropped if any(part in name for part in feature.names)]
    if nothing_lost or _keeps(model, feature, sent.protocol, body) or (feature.id == "stop" and sent.stops):
        outcome: Outcome = "moved" if any(sent.dropped[name] for name in named) else "kept"
        return Result(model, face, feature.id, outcome, "", *parts)
    if not named and model.is_unknown and face == sent.protocol:
        return Result(model, face, feature.id, "unchanged", "", *parts)
    if not named:
        wrong = "lost, the vendor can do it" if _has(model, feature) else "left out without a word"
        return Result(model, face, feature.id, "LOST IN SILENCE", wrong, *parts)
    outcome = "moved" if any(sent.dropped[name] for name in named) else "left out"
    wrong = "lost, the vendor can do it (named)" if _has(model, feature) else ""
    return Result(model, face, feature.id, outcome, wrong, *parts)


def _keeps(model: Model, feature: Feature, protocol: str, body: Json) -> bool:
    ways = [way for way in feature.ways.get(protocol, ()) if _has_effect(model, feature, protocol, way)]
    return any(_contains(body, way.fragment, way.last) and way.text in "\n".join(_texts(body)) for way in ways)


def _has(model: Model, feature: Feature) -> bool:
    return _capability(model, feature.id, EMBEDDING_FEATURES.get(feature.id) is feature)


@cache
def _capability(model: Model, feature_id: str, embeds: bool) -> bool:
    feature = (EMBEDDING_FEATURES if embeds else TEXT_FEATURES)[feature_id]
    return any(
        _accepts(model, feature, protocol, way) is None
        for protocol in gateway.protocols(model.vendor)
        for way in feature.ways.get(protocol, ())
        if way.demanded and _is_known(model, feature, protocol, way)
    )


def _accepts(model: Model, feature: Feature, protocol: str, way: Way) -> Refusal | None:
    """Return the refusal of a body that expresses the feature in this way; None if the vendor serves it."""
    request = feature.requests.get(protocol, {})
    body: Json = ALL_BASES[protocol] | {name: value for name, value in request.items() if name != "generationConfig"}
    if protocol == "native" and way.text:
        body |= request
    others = {name for each in feature.ways.get(protocol, ()) for name in each.fragment} - {"messages", "input"}
    if not way.text or way.fragment:
        body = {name: value for name, value in body.items() if name not in others or name in ("tools", "contents")}
        body = body | {name: _example(value, request.get(name), name) for name, value in way.fragment.items()}
    if way.last:
        ((name, (turn,)),) = way.fragment.items()
        body[name] = [*body[name][:-1], body[name][-1] | turn]
    if protocol == "messages" and "thinking" in body:
        body["max_tokens"] = BUDGET_LIMIT
    if protocol != "native":
        body = {"model": model.own_id, **body}
    return refusal(model.vendor, model.own_id, protocol, json.dumps(body).encode(), {})


def _example(value: Any, request: Any, name: str) -> Any:
    """Return a value of a way, with the caller's own value in each open place."""
    if value is ANY:
        return request if request is not None and name not in EXAMPLES else EXAMPLES.get(name, BUDGET_LIMIT // 10)
    if isinstance(value, Mapping):
        inner = request if isinstance(request, Mapping) else {}
        made = {key: _example(each, inner.get(key), key) for key, each in value.items()}
        return (dict(inner) if set(inner) > set(value) else {}) | made
    if isinstance(value, list) and isinstance(request, list) and request:
        return request
    return value


def _has_effect(model: Model, feature: Feature, protocol: str, way: Way) -> bool:
    """Return whether the vendor acts on a way to express a feature."""
    if model.vendor in way.not_at or (way.vendors is not None and model.vendor not in way.vendors):
        return False
    fact = sources.fact(model.vendor, model.own_id)
    if feature.id in OFF:
        return _switches_off(fact, way, protocol)
    if feature.id.startswith("effort-") and "reasoning_effort" in way.fragment and fact.efforts is not None:
        return fact.ignores or way.fragment["reasoning_effort"] in (fact.taken or fact.efforts)
    return True


def _is_known(model: Model, feature: Feature, protocol: str, way: Way) -> bool:
    """Return whether the sources have the vendor act on a way to express a feature, so that the feature must be kept."""
    call = VendorCall(model.vendor, model.own_id, protocol, {})
    flags = call.flags
    if feature.id in (*call.fact.no_effect, *call.fact.no_effect_in.get(protocol, ())):
        return False
    match feature.id:
        case "temperature" | "top_p" | "top_k" if protocol == "native":
            return flags.get("supports_sampling_params") is not False
        case "long-max":
            return int(flags.get("max_output_tokens") or 0) >= LONG
        case "image":
            return not flags or bool(flags.get("supports_vision"))
        case "pdf":
            return bool(flags.get("supports_pdf_input"))
        case _ if "reasoning_effort" in way.fragment:
            return way.fragment["reasoning_effort"] in call.efforts
        case _:
            return _has_effect(model, feature, protocol, way)


def _reasons(model: Model) -> bool:
    flags, fact = sources.flags(model.vendor, model.own_id), sources.fact(model.vendor, model.own_id)
    return not flags or bool(flags.get("supports_reasoning")) or fact.default in ("on", "always")


def _switches_off(fact: sources.Fact, way: Way, protocol: str) -> bool:
    if protocol != "chat" and fact.default == "always":
        return False
    if protocol != "chat" or not fact.vendor:
        return True
    if fact.default == "off" and not fact.efforts:
        return True
    if "reasoning_effort" in way.fragment:
        return "none" in (fact.efforts or ())
    return bool(way.fragment) and fact.switch in way.fragment


def _contains(value: Any, fragment: Any, last: bool = False) -> bool:
    """Return whether JSON has all members of a fragment; of arrays, one item, or the last one, for each of its items."""
    if fragment is ANY:
        return value is not None
    if isinstance(fragment, Mapping):
        return isinstance(value, dict) and all(
            key in value and _contains(value[key], each, last) for key, each in fragment.items()
        )
    if isinstance(fragment, list):
        if not isinstance(value, list) or not value:
            return False
        items = value[-1:] if last else value
        return all(any(_contains(item, each) for item in items) for each in fragment)
    return bool(value == fragment)


def _texts(value: Any) -> Iterator[str]:
    """Yield all strings of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def models() -> list[Model]:
    """Return the text models of the matrix."""
    return list(sources.rows("models", Model))


def embedding_models() -> list[Model]:
    """Return the embedding models of the matrix."""
    return list(sources.rows("embedding_models", Model))


def embedding_matrix(chosen: list[Model]) -> Iterator[Result]:
    """Yield the outcomes of all features of embeddings at models."""
    for model in chosen:
        for face in EMBEDDING_FACES:
            for feature in EMBEDDING_FEATURES.values():
                if face in feature.requests:
                    yield run(model, face, feature)


def matrix(chosen: list[Model], faces: tuple[str, ...] = FACES, features: tuple[str, ...] = ()) -> Iterator[Result]:
    """Yield the outcomes of all features of models and faces. `features`: their ids; empty for all."""
    return (run(*cell) for cell in cells(chosen, faces, features))


def cells(
    chosen: list[Model], faces: tuple[str, ...] = FACES, features: tuple[str, ...] = ()
) -> Iterator[tuple[Model, str, Feature]]:
    """Yield the model, face and feature of each cell of the matrix."""
    for model in chosen:
        for face in faces:
            for feature in TEXT_FEATURES.values():
                if face in feature.requests and (not features or feature.id in features):
                    yield model, face, feature
