"""Prompt caching: text document, messages rule 4 and Limits."""

from dataclasses import dataclass

from tests.unit.umg_sandbox.sandbox_calls import (
    SandboxAnswer,
    assistant,
    function,
    generate,
    make_request,
    sandbox,
    text,
    user,
)
from umg_grpc.v1 import pb
from umg_sandbox import SandboxText

LONG = "word " * 1000  # 1250 tokens
LONGER = "text " * 2000  # 2500 tokens


def marked(words: str, ttl: "pb.CacheTtl.ValueType" = pb.CACHE_TTL_UNSPECIFIED) -> pb.Part:
    part = text(words)
    part.cache_control.ttl = ttl
    part.cache_control.SetInParent()
    return part


@dataclass
class Clock:
    now: float = 0

    def __call__(self) -> float:
        return self.now


def used(answer: SandboxAnswer) -> tuple[int, int, int]:
    """Return the tokens read, written for five minutes, written for an hour."""
    usage = answer.usage
    assert usage.input_tokens >= usage.cache_read_tokens + usage.cache_write_tokens + usage.long_cache_write_tokens
    return usage.cache_read_tokens, usage.cache_write_tokens, usage.long_cache_write_tokens


def twice(
    request: pb.GenerateRequest, upstream: SandboxText, model: str = "famC-sonnet-4-5"
) -> list[tuple[int, int, int]]:
    return [used(generate(request, model, upstream)) for _ in range(2)]


def test_a_marked_prompt_is_written_and_then_read() -> None:
    assert twice(make_request(user(marked(LONG), "Hi")), sandbox()) == [(0, 1250, 0), (1250, 0, 0)]


def test_a_prompt_without_a_cache_mark_is_not_cached() -> None:
    assert twice(make_request(LONG), sandbox()) == [(0, 0, 0)] * 2


def test_a_prompt_below_the_minimum_length_is_not_cached() -> None:
    assert twice(make_request(user(marked("word" * 1023))), sandbox()) == [(0, 0, 0)] * 2
    assert twice(make_request(user(marked("word" * 1024))), sandbox()) == [(0, 1024, 0), (1024, 0, 0)]


def test_small_models_have_a_larger_minimum_length() -> None:
    for model in ("famO-5-mini", "famG-2.5-flash"):
        assert twice(make_request(user(marked(LONG))), sandbox(), model) == [(0, 0, 0)] * 2
        assert twice(make_request(user(marked(LONGER))), sandbox(), model) == [(0, 2500, 0), (2500, 0, 0)]


def test_a_persistent_mark_is_written_for_an_hour() -> None:
    assert twice(make_request(user(marked(LONG, pb.CACHE_TTL_ONE_HOUR))), sandbox()) == [(0, 0, 1250), (1250, 0, 0)]


def test_each_marked_prefix_is_cached_for_the_lifetime_of_its_own_mark() -> None:
    request = make_request(
        user(marked(LONG, pb.CACHE_TTL_FIVE_MINUTES)), instructions=[marked(LONGER, pb.CACHE_TTL_ONE_HOUR)]
    )
    assert twice(request, sandbox()) == [(0, 1250, 2500), (3750, 0, 0)]


def test_the_mark_of_a_request_caches_the_whole_prompt() -> None:
    request = make_request(LONG, cache_control=pb.CacheControl())
    assert twice(request, sandbox()) == [(0, 1250, 0), (1250, 0, 0)]


def test_tools_are_the_first_part_of_the_prompt_and_may_be_marked() -> None:
    tool = function("look", '{"type":"object","description":"' + LONG + '"}')
    tool.cache_control.SetInParent()
    upstream = sandbox()
    read, written, _ = used(generate(make_request("Hi", tools=[tool]), upstream=upstream))
    assert (read, written > 1250) == (0, True)
    assert used(generate(make_request("Other", tools=[tool]), upstream=upstream)) == (written, 0, 0)


def test_a_growing_conversation_reads_its_own_cache_entries() -> None:
    upstream = sandbox()
    first = user(marked(LONG))
    assert used(generate(make_request(first), upstream=upstream)) == (0, 1250, 0)
    history = [user(LONG), assistant("Yes"), user(marked(LONG + "2"))]  # the mark has moved to a later message
    assert used(generate(make_request(*history), upstream=upstream)) == (1250, 1 + 1251, 0)
    assert used(generate(make_request(*history), upstream=upstream)) == (2502, 0, 0)


def test_a_prompt_with_another_beginning_is_not_read_from_the_cache() -> None:
    upstream = sandbox()
    generate(make_request(user(marked(LONG))), upstream=upstream)
    request = make_request(user(marked(LONG)), instructions=[text("abcd")])
    assert used(generate(request, upstream=upstream)) == (0, 1251, 0)


def test_a_prompt_is_cached_for_five_minutes_after_its_last_read() -> None:
    clock = Clock()
    upstream, request = sandbox(clock=clock), make_request(user(marked(LONG)))
    for now, expected in [(0, (0, 1250, 0)), (299, (1250, 0, 0)), (590, (1250, 0, 0)), (890, (0, 1250, 0))]:
        clock.now = now
        assert used(generate(request, upstream=upstream)) == expected


def test_a_persistent_prompt_is_cached_for_an_hour() -> None:
    clock = Clock()
    upstream, request = sandbox(clock=clock), make_request(user(marked(LONG, pb.CACHE_TTL_ONE_HOUR)))
    for now, expected in [(0, (0, 0, 1250)), (3599, (1250, 0, 0)), (7199, (0, 0, 1250))]:
        clock.now = now
        assert used(generate(request, upstream=upstream)) == expected


def test_a_caller_does_not_read_the_cached_prompts_of_another() -> None:
    callers = iter(["ann", "bob", "ann"])
    upstream = sandbox(owner=lambda: next(callers))
    request = make_request(user(marked(LONG)))
    uses = [used(generate(request, upstream=upstream)) for _ in range(3)]
    assert uses == [(0, 1250, 0), (0, 1250, 0), (1250, 0, 0)]


def test_a_model_does_not_read_the_cached_prompts_of_another() -> None:
    upstream, request = sandbox(), make_request(user(marked(LONG)))
    assert [used(generate(request, model, upstream)) for model in ("famO-5", "famR-1")] == [(0, 1250, 0)] * 2


def test_the_least_recently_used_prompts_are_evicted_first() -> None:
    upstream = sandbox(cached_prompts=2)
    first, second, third = (make_request(user(marked(LONG + end))) for end in ("", "2", "3"))
    for request in (first, second, first, third):
        generate(request, upstream=upstream)
    assert used(generate(first, upstream=upstream))[0] > 0
    assert used(generate(second, upstream=upstream))[0] == 0


def test_a_prompt_cache_key_caches_prompts_without_marks() -> None:
    upstream = sandbox()
    assert used(generate(make_request(LONG, prompt_cache_key="k"), upstream=upstream)) == (0, 1250, 0)
    request = make_request(LONG, assistant("Yes"), user("More"), prompt_cache_key="k")
    assert used(generate(request, upstream=upstream)) == (1250, 2, 0)
    assert used(generate(make_request(LONG, prompt_cache_key="other"), upstream=upstream)) == (0, 1250, 0)


def test_any_cached_content_is_accepted_and_counted() -> None:
    usage = generate(make_request("abcd", cached_content="cachedContents/x")).usage
    assert (usage.cache_read_tokens, usage.input_tokens) == (2048, 2049)


def test_the_prompt_of_a_failed_call_is_not_cached() -> None:
    upstream = sandbox()
    call = upstream.prepare(make_request(user(marked(LONG), "[[fail]]")), "famO-5", stream=False)
    assert call.draft.response.candidates
    assert used(generate(make_request(user(marked(LONG))), upstream=upstream)) == (0, 1250, 0)
