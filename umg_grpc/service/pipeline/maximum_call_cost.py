"""Maximum cost of a call, computed before it is sent to a provider, and reserved from the budget of the caller's key.

The tokens of the input are bounded by its bytes: the vocabularies of models have no token of less than a byte. The
tokens of the response are bounded by the maximum that the provider is sent.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from umg_grpc.knowledge.conditional_price_rates import Terms, highest_prices
from umg_grpc.knowledge.families.image_model_rules import family_row
from umg_grpc.knowledge.price_calculation import (
    AUDIO_INPUT,
    AUDIO_OUTPUT,
    CACHE_READ,
    CACHE_WRITE,
    IMAGE_INPUT,
    IMAGE_OUTPUT,
    INPUT_TOKEN,
    LONG_CACHE_WRITE,
    OUTPUT_TOKEN,
    PRICED_UNITS,
    REASONING_TOKEN,
    REQUEST_UNIT,
    SEARCH_UNIT,
    Prices,
    Unit,
)
from umg_grpc.operations import UNARY_BY_REQUEST
from umg_grpc.operations.canonical_message_unions import CanonicalRequest
from umg_grpc.service.pipeline.image_call_costs import max_cost
from umg_grpc.service.pipeline.rate_limit_token_estimates import (
    DEFAULT_OUTPUT_TOKENS,
    UNKNOWN_OUTPUT_TOKENS,
    text_bytes,
    unary_bytes,
)
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.prompt_cache_marks import lasts_an_hour
from umg_grpc.wire.facts_beside_request import DecodedRequest
from umg_grpc.wire.model_quirks import requests_search

RequestT = TypeVar("RequestT", bound=CanonicalRequest)

MEDIUM_TOKENS = 5000
"""Maximum tokens of an image, rounded up from 4784 of the largest one in the messages format. Other media are counted
as at least this number, and at most one token for each byte of their data.
"""
UNREAD_TOKENS = 20_000
"""Tokens of content that only the provider reads, for each kind of it: the pages of a web search, a document by its
address, a stored prompt. A guess, since no bound is known.
"""
TOOL_TOKENS = 1000
"""Tokens of the prompt about tools that a provider adds to a request with tools."""
TURN_TOKENS = 10
"""Tokens that a provider adds to mark a message, beyond the bytes of the request."""
ASSUMED_SEARCHES = 10
"""Number of web searches for which a response is assumed to be charged if the request sets no maximum."""
MIN_OUTPUT_TOKENS = 16
"""Smallest output limit that every provider accepts; a smaller one is raised to it in translation."""
MIN_REASONING_TOKENS = 1025
"""Tokens by which a translated output limit may be raised for reasoning, if the request has no larger budget."""
FAST_TIER = "fast"
"""Class of service in the rates of fast answers."""
SPEED_MEMBER = b'"speed"'
INPUT_UNITS = (INPUT_TOKEN, CACHE_READ, CACHE_WRITE)
OUTPUT_UNITS = (OUTPUT_TOKEN, REASONING_TOKEN, AUDIO_OUTPUT, IMAGE_OUTPUT)


class CostBound(NamedTuple):
    """Maximum cost of a call by the maximum length of its response. Prices are in millionths of a micro-credit."""

    fixed: int
    """Price of everything but the response."""
    token_price: int
    """Price of one token in each of the requested candidates of the response."""
    least_tokens: int
    """Smallest output limit with which the call is admitted if the budget does not pay for more."""
    most_tokens: int
    """Output limit without regard to the budget."""
    lowers_maximum: bool = False
    """Whether the request's output limit exceeds the model's, which the provider might accept nevertheless."""

    @property
    def least(self) -> int:
        """Least micro-credits for which the call is made; with less left in the budget it is refused."""
        return -(-(self.fixed + self.token_price * self.least_tokens) // PRICED_UNITS)

    @property
    def most(self) -> int:
        """Micro-credits that pay for the call with the longest possible answer."""
        return -(-(self.fixed + self.token_price * self.most_tokens) // PRICED_UNITS)

    def affordable_tokens(self, micro_credits: int) -> int | None:
        """Return the output limit for which `micro_credits` pay; None if the response need not be limited."""
        if micro_credits >= self.most:
            return self.most_tokens if self.lowers_maximum else None
        return (micro_credits * PRICED_UNITS - self.fixed) // self.token_price


def cost_bound(
    decoded: DecodedRequest[RequestT],
    model: pb.Model,
    prices: Prices,
    *,
    strict: bool = False,
    now: float | None = None,
) -> CostBound:
    """Return the maximum cost of a request, which must contain all messages of its conversation. `strict`: the response
    must not be shortened to fit a budget. `now`: Unix time, by which rates of some hours apply.
    """
    request, now = decoded.canonical, time.time() if now is None else now
    if isinstance(request, pb.GenerateRequest):
        own_messages = "messages" not in decoded.notes.edited
        return _generation_bound(request, model, prices, own_messages=own_messages, strict=strict, now=now)
    prices = _highest(prices, MAX_COUNT, "", now)
    if isinstance(request, pb.GenerateImageRequest):
        return CostBound(max_cost(request, family_row(model.id, model.family), prices), 0, 0, 0)
    quantities = UNARY_BY_REQUEST[type(request)].most_quantities(request, unary_bytes(request))
    fixed = sum(count * prices.highest(unit) for unit, count in quantities.items())
    return CostBound(fixed, 0, 0, 0)


def highest_bound(
    decoded: DecodedRequest[RequestT],
    model: pb.Model,
    price_lists: Sequence[Prices],
    *,
    strict: bool,
    now: float | None,
) -> CostBound:
    """Return the maximum cost of a request at any of the channels with these price lists, as `cost_bound` does."""
    first, *others = (cost_bound(decoded, model, prices, strict=strict, now=now) for prices in price_lists)
    for other in others:
        fixed, token_price = max(first.fixed, other.fixed), max(first.token_price, other.token_price)
        first = first._replace(fixed=fixed, token_price=token_price)
    return first


def _generation_bound(
    request: pb.GenerateRequest, model: pb.Model, prices: Prices, *, own_messages: bool, strict: bool, now: float
) -> CostBound:
    """Return the maximum cost of a text request. `own_messages`: its messages are only those of the caller's body,
    whose size bounds their tokens. `strict`: as in `cost_bound`.
    """
    found = _scan(request)
    size = text_bytes(request, found.media) if own_messages else _canonical_bytes(request, found.media)
    searches = _searches(request)
    tokens = _input_tokens(request, model, found, size, searches)
    prices = _highest(prices, tokens, FAST_TIER if _may_be_fast(request) else request.service_tier, now)
    fixed = (
        tokens * prices.highest(*_input_units(found))
        + searches * prices.highest(SEARCH_UNIT)
        + prices.highest(REQUEST_UNIT)
    )
    token_price = prices.highest(*OUTPUT_UNITS) * max(1, request.candidate_count)
    most = model.output_token_limit or UNKNOWN_OUTPUT_TOKENS
    lowers_maximum = request.max_output_tokens > most
    if request.HasField("max_output_tokens"):
        most = least = min(most, max(request.max_output_tokens, MIN_OUTPUT_TOKENS) + _added_reasoning(request))
    else:
        least = most if strict else min(most, DEFAULT_OUTPUT_TOKENS)
    return CostBound(fixed, token_price, least, most, lowers_maximum)


def _highest(prices: Prices, tokens: int, tier: str, now: float) -> Prices:
    return prices if prices.rates is None else highest_prices(prices, Terms(tokens, tier, seconds=now))


def _may_be_fast(request: pb.GenerateRequest) -> bool:
    return request.source.format == "messages" and SPEED_MEMBER in request.source.body


class _Content(NamedTuple):
    """Properties of a request's content that determine the kinds and the number of its input tokens."""

    media: list[pb.MediaPart]
    is_opaque: bool
    """Whether the request has message parts of an unknown kind."""
    is_cached_long: bool
    """Whether a part of the prompt is to be cached for an hour or longer, which has its own price."""


def _scan(request: pb.GenerateRequest) -> _Content:
    """Return the properties that determine a request's cost, in one pass: it may have thousands of parts."""
    media, is_opaque = list[pb.MediaPart](), False
    marked: list[pb.Part | pb.Tool] = [*request.instructions, *request.tools]
    for message in request.messages:
        for part in message.parts:
            match part.WhichOneof("kind"):
                case "media":
                    media.append(part.media)
                case "tool_result":
                    media += [inner.media for inner in part.tool_result.parts if inner.HasField("media")]
                case "opaque":
                    is_opaque = True
                case "text" | "reasoning" | "tool_call" | "server_tool_call" | "server_tool_result" | "refusal":
                    pass  # of these only the size counts
                case "compaction" | None:
                    pass  # replaced by the text of its summary; a kind newer than this build
            if part.HasField("cache_control"):
                marked.append(part)
    is_cached_long = bool(request.prompt_cache_options_json) or any(
        lasts_an_hour(mark.cache_control) for mark in (request, *marked)
    )
    return _Content(media, is_opaque, is_cached_long)


def _canonical_bytes(request: pb.GenerateRequest, media: Iterable[pb.MediaPart]) -> int:
    return request.ByteSize() - len(request.source.body) - sum(len(medium.data) for medium in media)


def _input_tokens(request: pb.GenerateRequest, model: pb.Model, found: _Content, size: int, searches: int) -> int:
    """Return the maximum number of input tokens of a request. `size`: bytes of its texts."""
    unread = (
        searches > 0,
        any(tool.HasField("file_search") or tool.HasField("opaque") for tool in request.tools),
        request.HasField("continuation"),  # of which only the provider has the conversation
        request.HasField("prompt_template"),
        request.cached_content != "",
    )
    tokens = size + TURN_TOKENS * len(request.messages) + UNREAD_TOKENS * sum(unread)
    tokens += sum(_medium_tokens(medium) for medium in found.media)
    if request.tools:
        tokens += TOOL_TOKENS
    return min(tokens, model.input_token_limit or MAX_COUNT)


def _medium_tokens(medium: pb.MediaPart) -> int:
    if medium.kind == pb.MEDIA_KIND_IMAGE:
        return MEDIUM_TOKENS
    if medium.uri or medium.file_id:
        return UNREAD_TOKENS
    return max(MEDIUM_TOKENS, len(medium.data))


def _searches(request: pb.GenerateRequest) -> int:
    if not requests_search(request):
        return 0
    uses = [tool.web_search.max_uses for tool in request.tools if tool.web_search.max_uses]
    return min([*uses, request.max_tool_calls or ASSUMED_SEARCHES])


def _input_units(found: _Content) -> Iterator[Unit]:
    """Yield the priced units of input tokens (text, image, audio, cached) that a request with this content may have."""
    yield from INPUT_UNITS
    if found.is_cached_long:
        yield LONG_CACHE_WRITE
    if found.media or found.is_opaque:
        yield IMAGE_INPUT
    if found.is_opaque or any(medium.kind != pb.MEDIA_KIND_IMAGE for medium in found.media):
        yield AUDIO_INPUT


def _added_reasoning(request: pb.GenerateRequest) -> int:
    """Return the tokens by which an output limit may be exceeded: some formats do not count reasoning as output."""
    if not request.HasField("reasoning"):
        return 0
    return max(MIN_REASONING_TOKENS, request.reasoning.budget_tokens)
