"""Upper bounds of the cost of a call before it is made."""

from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.knowledge.price_calculation import OUTPUT_TOKEN, Rate, price_list, quantities_of
from umg_grpc.service.pipeline.maximum_call_cost import CostBound, cost_bound
from umg_grpc.service.pipeline.rate_limit_token_estimates import UNKNOWN_OUTPUT_TOKENS
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest

MILLION = 1_000_000


def prices(**credits_: int) -> list[pb.Price]:
    """Return prices in micro-credits a unit, by the names of the units."""
    return [
        pb.Price(
            unit=pb.BillableUnit.Value(f"BILLABLE_UNIT_{name.upper()}"), micro_credits_per_million=amount * MILLION
        )
        for name, amount in credits_.items()
    ]


def text(value: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=value))


def user(*parts: pb.Part) -> pb.Message:
    return pb.Message(role=pb.ROLE_USER, parts=parts)


def media(**fields: object) -> pb.Part:
    return pb.Part(media=pb.MediaPart(**fields))  # type: ignore[arg-type]  # of any field


def bound_of(call: pb.GenerateRequest, model: pb.Model | None = None, **credits_: int) -> CostBound:
    return cost_bound(DecodedRequest(call, NO_NOTES), model or pb.Model(), price_list(prices(**credits_)))


@dataclass(frozen=True)
class Case:
    id: str
    request: pb.GenerateRequest
    least: int
    most: int
    credits_: dict[str, int] = field(default_factory=lambda: {"output_token": 1})
    model: pb.Model = field(default_factory=lambda: pb.Model(output_token_limit=8000))


ONE_HOUR = pb.CacheControl(ttl=pb.CACHE_TTL_ONE_HOUR)
SEARCH_TOOL = pb.Tool(web_search=pb.WebSearchTool(max_uses=3))
INPUTS = {"input_token": 1, "cache_write_token": 2, "long_cache_write_token": 3, "audio_input_token": 7}
HELLO = [user(text("hello"))]
SIZE = pb.GenerateRequest(messages=HELLO).ByteSize() + 10
"""Tokens of the greeting: its bytes, and the mark of its turn."""
CASES = [
    Case("no maximum", pb.GenerateRequest(messages=HELLO), 1000, 8000),
    Case("no maximum of a small model", pb.GenerateRequest(messages=HELLO), 300, 300, model=pb.Model(output_token_limit=300)),
    Case("no maximum of an unknown model", pb.GenerateRequest(messages=HELLO), 1000, UNKNOWN_OUTPUT_TOKENS, model=pb.Model()),
    Case("a maximum", pb.GenerateRequest(max_output_tokens=700), 700, 700),
    Case("a maximum above that of the model", pb.GenerateRequest(max_output_tokens=9000), 8000, 8000),
    Case("a maximum that a translation raises", pb.GenerateRequest(max_output_tokens=1), 16, 16),
    Case("several candidates", pb.GenerateRequest(max_output_tokens=700, candidate_count=3), 2100, 2100),
    Case("reasoning by an effort", pb.GenerateRequest(max_output_tokens=700, reasoning=pb.ReasoningOptions(effort="high")), 1725, 1725),
    Case("reasoning by a budget", pb.GenerateRequest(max_output_tokens=700, reasoning=pb.ReasoningOptions(budget_tokens=4000)), 4700, 4700),
    Case("dear reasoning", pb.GenerateRequest(max_output_tokens=100), 900, 900, {"output_token": 1, "reasoning_token": 9}),
    Case("audio of the response", pb.GenerateRequest(max_output_tokens=100), 900, 900, {"output_token": 1, "audio_output_token": 9}),
    Case("a text, as a cache write", pb.GenerateRequest(messages=HELLO), 2 * SIZE, 2 * SIZE, INPUTS),
    Case("a text within the model's maximum", pb.GenerateRequest(messages=HELLO), 8, 8, INPUTS, pb.Model(input_token_limit=4)),
    Case("a prompt that is kept for an hour", pb.GenerateRequest(cache_control=ONE_HOUR), 3 * 4, 3 * 4, INPUTS, pb.Model(input_token_limit=4)),
    Case("a tool that is kept for an hour", pb.GenerateRequest(tools=[pb.Tool(cache_control=ONE_HOUR)]), 12, 12, INPUTS, pb.Model(input_token_limit=4)),
    Case("audio", pb.GenerateRequest(messages=[user(media(kind=pb.MEDIA_KIND_AUDIO, data=b"x"))]), 28, 28, INPUTS, pb.Model(input_token_limit=4)),
    Case("a web search without a number", pb.GenerateRequest(search=pb.SearchOptions()), 10, 10, {"search": 1}),
    Case("web searches with a maximum", pb.GenerateRequest(tools=[SEARCH_TOOL]), 3, 3, {"search": 1}),
    Case("a call", pb.GenerateRequest(messages=HELLO), 5, 5, {"request": 5}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_call_costs_at_most(case: Case) -> None:
    bound = bound_of(case.request, case.model, **case.credits_)
    assert (bound.least, bound.most) == (case.least, case.most)


@dataclass(frozen=True)
class Input:
    id: str
    part: pb.Part
    tokens: int


BIG = b"\0" * 30_000
MEDIA = [
    Input("an image", media(kind=pb.MEDIA_KIND_IMAGE, data=BIG), 5000),
    Input("an image by its address", media(kind=pb.MEDIA_KIND_IMAGE, uri="https://a"), 5000),
    Input("a document", media(kind=pb.MEDIA_KIND_DOCUMENT, data=BIG), 30_000),
    Input("a small document", media(kind=pb.MEDIA_KIND_DOCUMENT, data=b"x"), 5000),
    Input("a document by its id", media(kind=pb.MEDIA_KIND_DOCUMENT, file_id="f"), 20_000),
    Input("an image in a tool result", pb.Part(tool_result=pb.ToolResult(parts=[media(kind=pb.MEDIA_KIND_IMAGE, data=BIG)])), 5000),
]  # fmt: skip


@pytest.mark.parametrize("case", MEDIA, ids=lambda case: case.id)
def test_media_count_without_their_bytes(case: Input) -> None:
    least = bound_of(pb.GenerateRequest(messages=[user(case.part)]), input_token=1).least
    assert case.tokens < least < case.tokens + 100


counts = st.integers(0, 2**20)


@given(st.text(), counts, counts, counts, counts, st.integers(1, 2**20), st.integers(0, 50))
def test_usage_within_the_bytes_and_the_maximum_costs_no_more(
    prompt: str, read: int, written: int, reasoning: int, output: int, maximum: int, price: int
) -> None:
    table = {"input_token": 3, "cache_write_token": 4, "output_token": 5, "reasoning_token": price, "request": 1}
    request = pb.GenerateRequest(messages=[user(text(prompt))], max_output_tokens=maximum)
    usage = pb.Usage(
        input_tokens=len(prompt.encode()),
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=min(output, maximum),
        reasoning_tokens=reasoning,
    )
    model = pb.Model(output_token_limit=2**20)
    assert price_list(prices(**table)).cost(quantities_of(usage)) <= bound_of(request, model, **table).most


@given(st.integers(0, 10**15), st.integers(1, 10**9), st.integers(1, 10**6), st.integers(0, 10**12))
def test_the_tokens_that_an_amount_pays_for_cost_no_more(fixed: int, price: int, most: int, more: int) -> None:
    bound = CostBound(fixed, price, min(most, 1000), most)
    amount = bound.least + more
    tokens = bound.affordable_tokens(amount)
    if tokens is None:
        assert amount >= bound.most
    else:
        assert bound.least_tokens <= tokens < most
        assert bound._replace(most_tokens=tokens).most <= amount < bound._replace(most_tokens=tokens + 1).most


def test_an_answer_that_must_not_be_limited_reserves_the_maximum_of_its_model() -> None:
    decoded = DecodedRequest(pb.GenerateRequest(messages=HELLO), NO_NOTES)
    bound = cost_bound(decoded, pb.Model(output_token_limit=8000), price_list(prices(output_token=1)), strict=True)
    assert (bound.least, bound.most) == (8000, 8000)


def test_a_rerank_query_counts_for_each_document() -> None:
    documents = [pb.RerankDocument(text="d")] * 50
    request = pb.RerankRequest(model="m", query="q" * 1000, documents=documents)
    bound = cost_bound(DecodedRequest(request, NO_NOTES), pb.Model(), price_list(prices(input_token=1)))
    assert bound.least == bound.most == request.ByteSize() + 50_000


@pytest.mark.parametrize(
    ("documents", "text", "searches"), [(1, "d", 1), (90, "d", 1), (101, "d", 2), (1, "d" * 25_000, 2)]
)
def test_a_search_unit_of_reranking_is_for_a_hundred_documents(documents: int, text: str, searches: int) -> None:
    request = pb.RerankRequest(model="m", query="q", documents=[pb.RerankDocument(text=text)] * documents)
    bound = cost_bound(DecodedRequest(request, NO_NOTES), pb.Model(), price_list(prices(search=1)))
    assert bound.most == searches


LIMITS = {"chat": ("max_tokens",), "responses": ("max_output_tokens",), "messages": ("max_tokens",), "native": ("generationConfig", "maxOutputTokens")}  # fmt: skip
reasoning = st.one_of(
    st.none(),
    st.builds(pb.ReasoningOptions, effort=st.sampled_from(["minimal", "low", "medium", "high", "xhigh"])),
    st.builds(pb.ReasoningOptions, budget_tokens=st.integers(-1, 60_000)),
    st.builds(pb.ReasoningOptions, mode=st.just(pb.REASONING_MODE_ENABLED)),
)


@given(st.sampled_from(sorted(LIMITS)), st.integers(1, 70_000), reasoning, st.sampled_from(["", "chat"]))
def test_no_format_sends_a_larger_maximum_than_the_bound(
    name: str, maximum: int, options: pb.ReasoningOptions | None, source: str
) -> None:
    request = pb.GenerateRequest(messages=HELLO, max_output_tokens=maximum, reasoning=options)
    if source and source != name:
        request.source.format = source
    bound = bound_of(request, pb.Model(), output_token=1)
    assert _sent_limit(name, request, NO_QUIRKS) <= bound.most_tokens
    limited = pb.GenerateRequest()
    limited.CopyFrom(request)
    limited.max_output_tokens = limit = max(1000, maximum)
    assert _sent_limit(name, limited, Quirks().limited(limit)) <= limit


def _sent_limit(name: str, request: pb.GenerateRequest, quirks: Quirks) -> int:
    body = msgspec.json.decode(TEXT_FORMATS[name].encode_request(request, "m", False, quirks).body)
    for member in LIMITS[name]:
        body = body[member]
    assert isinstance(body, int)
    return body


@dataclass(frozen=True)
class RatedCase:
    id: str
    call: pb.GenerateRequest
    expected: int
    """Micro-credits of a token of the response."""


RATED = [
    RatedCase("a short prompt", pb.GenerateRequest(messages=[user(text("Hi"))]), 10),
    RatedCase("a prompt that may be long", pb.GenerateRequest(messages=[user(text("x" * 200))]), 15),
    RatedCase("the flex tier, which is not certain", pb.GenerateRequest(service_tier="flex"), 10),
    RatedCase("the priority tier", pb.GenerateRequest(service_tier="priority"), 20),
    RatedCase("a tier that the provider chooses", pb.GenerateRequest(service_tier="auto"), 20),
    RatedCase(
        "a fast answer",
        pb.GenerateRequest(source=pb.SourceDocument(format="messages", body=b'{"speed":"fast"}')),
        60,
    ),
]


@pytest.mark.parametrize("case", RATED, ids=lambda case: case.id)
def test_a_call_is_bounded_by_the_highest_rate_that_it_may_have(case: RatedCase) -> None:
    rates = [
        Rate({OUTPUT_TOKEN: 15 * MILLION}, above_tokens=100),
        Rate(percent=50, tier="flex"),
        Rate(percent=200, tier="priority"),
        Rate(percent=600, tier="fast"),
    ]
    listed = price_list(prices(input_token=2, output_token=10), rates)
    assert cost_bound(DecodedRequest(case.call, NO_NOTES), pb.Model(), listed).token_price == case.expected * MILLION
