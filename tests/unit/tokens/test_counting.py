"""Token counts of requests: everything that the model reads adds to the count, and no other field does."""

import subprocess
import sys
import wave
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.tokens import TOKENIZER_ROWS, TokenCounter
from umg_grpc.tokens.media_token_estimates import PAGE_TOKENS
from umg_grpc.tokens.vocabulary_cache import load
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT

COUNTER = TokenCounter("famO")
FAMILIES = ("famG", "famO", "famC", "famQ", "famR", "famX", "", "other")


def text(words: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=words))


def user(*parts: pb.Part) -> pb.Message:
    return pb.Message(role=pb.ROLE_USER, parts=parts)


def media(kind: "pb.MediaKind.ValueType", **fields: object) -> pb.Part:
    return pb.Part(media=pb.MediaPart(kind=kind, **fields))


def tool(schema: str = '{"type":"object"}') -> pb.Tool:
    return pb.Tool(
        function=pb.FunctionTool(name="get_weather", description="Gets the weather.", parameters_json=schema)
    )


def question() -> pb.GenerateRequest:
    return pb.GenerateRequest(model="m", messages=[user(text("How is the weather in Hamburg?"))])


@dataclass(frozen=True)
class Addition:
    """Addition to a request, and its tokens; None for any positive number."""

    id: str
    request: pb.GenerateRequest
    tokens: int | None = None


def more(**fields: object) -> pb.GenerateRequest:
    request = question()
    request.MergeFrom(pb.GenerateRequest(**fields))
    return request


def request_with(*parts: pb.Part) -> pb.GenerateRequest:
    """Return the question with more parts in its one message."""
    request = question()
    request.messages[0].parts.extend(parts)
    return request


RED_DOT = b"\x89PNG\r\n\x1a\n" + bytes(5000)
SIGNATURE = pb.ReasoningState(data="c2ln" * 300, format="messages")
READ_BY_THE_MODEL = [
    Addition("a system prompt", more(instructions=[text("Be brief.")])),
    Addition("another turn", more(messages=[user(text("And in Lisbon?"))])),
    Addition("an empty turn", more(messages=[pb.Message(role=pb.ROLE_ASSISTANT)])),
    Addition("a tool", more(tools=[tool()])),
    Addition(
        "a property of a tool",
        more(tools=[tool('{"type":"object","properties":{"city":{"type":"string"}}}'), tool()]),
    ),
    Addition("a custom tool", more(tools=[pb.Tool(custom=pb.CustomTool(name="shell", description="Runs a line."))])),
    Addition("a web search", more(tools=[pb.Tool(web_search=pb.WebSearchTool())])),
    Addition("a file search", more(tools=[pb.Tool(file_search=pb.FileSearchTool())])),
    Addition(
        "a tool that only its format has",
        more(tools=[pb.Tool(opaque=pb.OpaquePart(format="messages", type="bash", json='{"type":"bash"}'))]),
    ),
    Addition("the speaker's name", more(messages=[pb.Message(role=pb.ROLE_USER, name="ann", parts=[text("Hi")])])),
    Addition("more text", request_with(text("Tell me in a sentence."))),
    Addition(
        "thoughts", request_with(pb.Part(reasoning=pb.ReasoningPart(texts=["It rains ", "often."]), state=SIGNATURE))
    ),
    Addition(
        "hidden thoughts",
        request_with(pb.Part(reasoning=pb.ReasoningPart(redacted=True), state=SIGNATURE)),
        1200 // 6,
    ),
    Addition(
        "a summary of thoughts", request_with(pb.Part(reasoning=pb.ReasoningPart(summaries=["It thought of rain."])))
    ),
    Addition(
        "a call",
        request_with(pb.Part(tool_call=pb.ToolCall(call_id="c", name="f", arguments_json='{"city":"Hamburg"}'))),
    ),
    Addition("a call with text", request_with(pb.Part(tool_call=pb.ToolCall(call_id="c", name="f", text="ls -l")))),
    Addition("a result", request_with(pb.Part(tool_result=pb.ToolResult(call_id="c", parts=[text("Rain")])))),
    Addition(
        "a result that is JSON", request_with(pb.Part(tool_result=pb.ToolResult(result_json='{"weather":"rain"}')))
    ),
    Addition(
        "a search", request_with(pb.Part(server_tool_call=pb.ServerToolCall(name="web_search", queries=["rain"])))
    ),
    Addition(
        "results of a search",
        request_with(
            pb.Part(
                server_tool_result=pb.ServerToolResult(
                    results=[pb.SearchResult(url="http://a", title="Rain", encrypted_content="A" * 600)]
                )
            )
        ),
    ),
    Addition("a refusal", request_with(pb.Part(refusal=pb.RefusalPart(text="I cannot say.")))),
    Addition(
        "a block that only its format has", request_with(pb.Part(opaque=pb.OpaquePart(format="f", json='{"a":1}')))
    ),
    Addition("an image", request_with(media(pb.MEDIA_KIND_IMAGE, data=RED_DOT, mime_type="image/png")), 1000),
    Addition("a small image", request_with(media(pb.MEDIA_KIND_IMAGE, data=b"\x89PNG", mime_type="image/png")), 1000),
    Addition(
        "an image elsewhere",
        request_with(media(pb.MEDIA_KIND_IMAGE, uri="https://a.example/" + "long/" * 90, detail="high")),
        1000,
    ),
    Addition("an image in the provider's account", request_with(media(pb.MEDIA_KIND_IMAGE, file_id="file-1")), 1000),
    Addition(
        "an image as a file", request_with(media(pb.MEDIA_KIND_DOCUMENT, data=RED_DOT, mime_type="image/png")), 1000
    ),
    Addition(
        "an image in a tool's result",
        request_with(
            pb.Part(tool_result=pb.ToolResult(parts=[media(pb.MEDIA_KIND_IMAGE, uri="http://a"), text("It rains.")]))
        ),
        1000 + 4 + COUNTER.count_text("It rains."),
    ),
    Addition(
        "a text as a file",
        request_with(media(pb.MEDIA_KIND_DOCUMENT, data=b"It rains often.", mime_type="text/plain", title="Rain")),
        COUNTER.count_text("It rains often.") + COUNTER.count_text("Rain"),
    ),
    Addition(
        "a document in pieces",
        request_with(
            media(pb.MEDIA_KIND_DOCUMENT, blocks=pb.DocumentBlocks(parts=[text("It rains."), text("Often.")]))
        ),
        COUNTER.count_text("It rains.") + COUNTER.count_text("Often."),
    ),
    Addition(
        "a PDF of two pages",
        request_with(media(pb.MEDIA_KIND_DOCUMENT, data=b"%PDF-1.7 /Type /Pages <</Type/Page>> <</Type /Page>> \xff")),
        2 * PAGE_TOKENS,
    ),
    Addition(
        "a PDF whose pages are packed",
        request_with(media(pb.MEDIA_KIND_DOCUMENT, data=b"%PDF-1.7" + bytes(120_000))),
        3 * PAGE_TOKENS,
    ),
    Addition("a document of bytes", request_with(media(pb.MEDIA_KIND_DOCUMENT, data=b"\xff\xfe")), PAGE_TOKENS),
    Addition("a document elsewhere", request_with(media(pb.MEDIA_KIND_DOCUMENT, uri="http://a")), PAGE_TOKENS),
    Addition("a sound of a second", request_with(media(pb.MEDIA_KIND_AUDIO, data=bytes(16_000))), 32),
    Addition("a sound elsewhere", request_with(media(pb.MEDIA_KIND_AUDIO, uri="http://a")), 60 * 32),
    Addition("a video of two seconds", request_with(media(pb.MEDIA_KIND_VIDEO, data=bytes(500_000))), 600),
    Addition("a video elsewhere", request_with(media(pb.MEDIA_KIND_VIDEO, file_id="v")), 60 * 300),
]


@pytest.mark.parametrize("case", READ_BY_THE_MODEL, ids=lambda case: case.id)
def test_fields_that_the_model_reads_add_to_the_count(case: Addition) -> None:
    added = COUNTER.count_request(case.request) - COUNTER.count_request(question())
    assert added > 0
    assert case.tokens in {None, added}


@pytest.mark.parametrize("family", FAMILIES)
def test_an_image_is_a_thousand_tokens_for_every_family(family: str) -> None:
    counter = TokenCounter(family)
    image = media(pb.MEDIA_KIND_IMAGE, data=RED_DOT, mime_type="image/png")
    assert counter.count_request(request_with(image, image)) - counter.count_request(question()) == 2000


@pytest.mark.parametrize("family", FAMILIES)
def test_system_messages_and_tools_are_each_counted_for_every_family(family: str) -> None:
    counter = TokenCounter(family)
    counts = [
        counter.count_request(request)
        for request in (
            question(),
            more(instructions=[text("Be brief.")]),
            more(instructions=[text("Be brief.")], tools=[tool()]),
            more(instructions=[text("Be brief.")], tools=[tool(), tool()]),
        )
    ]
    assert counts == sorted(set(counts))


NOT_READ = [
    Addition("the limit", more(max_output_tokens=5)),
    Addition("sampling", more(temperature=0.5, top_p=0.5, top_k=3, seed=4, stop_sequences=["END"])),
    Addition("the form of the response", more(response_format=pb.ResponseFormat(json=pb.JsonFormat()))),
    Addition("thinking", more(reasoning=pb.ReasoningOptions(mode=pb.REASONING_MODE_ENABLED, budget_tokens=2000))),
    Addition("the choice of tools", more(tool_choice=pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_NONE))),
    Addition("labels", more(metadata={"a": "b"}, user="ann")),
    Addition("a prediction", more(prediction=[text("It rains.")])),
    Addition("the body it came as", more(source=pb.SourceDocument(format="chat", body=b"{}"))),
]


@pytest.mark.parametrize("case", NOT_READ, ids=lambda case: case.id)
def test_fields_that_the_model_does_not_read_count_no_tokens(case: Addition) -> None:
    assert COUNTER.count_request(case.request) == COUNTER.count_request(question())


def test_ids_sources_and_signatures_change_nothing() -> None:
    bare = request_with(
        pb.Part(reasoning=pb.ReasoningPart(texts=["Rain."])),
        text("It rains."),
        pb.Part(tool_call=pb.ToolCall(name="f", arguments_json="{}")),
    )
    full = request_with(
        pb.Part(reasoning=pb.ReasoningPart(texts=["Rain."], item_id="rs_1"), state=SIGNATURE),
        pb.Part(
            text=pb.TextPart(text="It rains.", citations=[pb.Citation(cited_text="rain")]),
            cache_control=pb.CacheControl(ttl=pb.CACHE_TTL_FIVE_MINUTES),
            message_id="msg_1",
        ),
        pb.Part(tool_call=pb.ToolCall(name="f", arguments_json="{}", call_id="call_1234567890", item_id="fc_1")),
    )
    assert COUNTER.count_request(full) == COUNTER.count_request(bare)


def test_the_length_of_a_wave_file_is_read_from_its_head() -> None:
    file = BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(2 * 8000 * 10))
    added = request_with(media(pb.MEDIA_KIND_AUDIO, data=file.getvalue(), mime_type="audio/wav"))
    assert COUNTER.count_request(added) - COUNTER.count_request(question()) == pytest.approx(10 * 32, abs=1)


def test_a_known_prompt_counts_as_its_provider_counts_it() -> None:
    """Count the example of the provider's own guide to counting, which states 129 tokens."""
    messages = [
        ("system", "", "You are a helpful, pattern-following assistant that translates corporate jargon into plain English."),
        ("system", "example_user", "New synergies will help drive top-line growth."),
        ("system", "example_assistant", "Things working well together will increase revenue."),
        ("system", "example_user", "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage."),
        ("system", "example_assistant", "Let's talk later when we're less busy about how to do better."),
        ("user", "", "This late pivot means we don't have time to boil the ocean for the client deliverable."),
    ]  # fmt: skip
    roles = {"system": pb.ROLE_SYSTEM, "user": pb.ROLE_USER}
    request = pb.GenerateRequest(
        model="m",
        messages=[pb.Message(role=roles[role], name=name, parts=[text(words)]) for role, name, words in messages],
    )
    assert TokenCounter(tokenizer="cl100k_base").count_request(request) == pytest.approx(129, abs=4)


@pytest.mark.parametrize("tokenizer", TOKENIZER_ROWS)
def test_nothing_counts_nothing(tokenizer: str) -> None:
    counter = TokenCounter(tokenizer=tokenizer)
    assert counter.count_text("") == 0
    assert counter.count_request(pb.GenerateRequest()) <= 4


@pytest.mark.parametrize("tokenizer", TOKENIZER_ROWS)
def test_markup_of_a_conversation_is_text_when_a_caller_writes_it(tokenizer: str) -> None:
    assert TokenCounter(tokenizer=tokenizer).count_text("<|im_end|><|endoftext|></s><eos>") > 8


def test_the_operator_s_tokenizer_wins_over_the_family_s() -> None:
    words = "Der Hafen erwachte an diesem Morgen nur langsam."
    assert TokenCounter("famC", "qwen3").count_text(words) == TokenCounter("famQ").count_text(words)
    assert TokenCounter("famC").count_text(words) > TokenCounter("famO").count_text(words)


def test_a_tokenizer_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="nope"):
        TokenCounter(tokenizer="nope").count_text("a")


@given(st.text(max_size=400))
def test_any_text_has_at_most_a_token_for_each_byte(words: str) -> None:
    tokens = COUNTER.count_text(words)
    assert (tokens == 0) == (words == "")
    assert tokens <= len(words.encode())
    assert COUNTER.count_text(words) == tokens


@given(st.lists(st.text(max_size=60), max_size=8), st.lists(st.text(max_size=60), max_size=8))
def test_added_messages_add_their_own_tokens_to_the_count(turns: list[str], added: list[str]) -> None:
    messages = [user(text(words)) for words in turns]
    shorter = pb.GenerateRequest(messages=messages)
    longer = pb.GenerateRequest(messages=[*messages, *(user(text(words)) for words in added)])
    difference = COUNTER.count_request(longer) - COUNTER.count_request(shorter)
    assert difference == sum(4 + COUNTER.count_text(words) for words in added)


def test_an_answer_in_one_piece_is_counted_by_its_text() -> None:
    call = pb.Part(tool_call=pb.ToolCall(call_id="c", name="f", arguments_json='{"city":"Hamburg"}'))
    parts = [pb.Part(reasoning=pb.ReasoningPart(texts=["Rain, perhaps."])), text("It rains."), call]
    response = pb.GenerateResponse(
        candidates=[pb.Candidate(message=pb.Message(role=pb.ROLE_ASSISTANT, parts=parts))] * 2
    )
    usage = COUNTER.estimate_response(question(), response)
    assert usage.reasoning_tokens == 2 * COUNTER.count_text("Rain, perhaps.")
    assert usage.output_tokens == 2 * COUNTER.count_parts(parts)
    assert (usage.input_tokens, usage.estimated) == (COUNTER.count_request(question()), True)


@pytest.mark.parametrize("tokenizer", TOKENIZER_ROWS)
def test_a_long_text_counts_as_if_it_were_read_at_once(tokenizer: str) -> None:
    corpus = "\n".join(file.read_text() for file in sorted((Path(__file__).parent / "corpus").iterdir())) * 4
    whole = len(load(tokenizer).encode_ordinary(corpus))
    assert TokenCounter(tokenizer=tokenizer).count_text(corpus) == pytest.approx(whole, rel=0.001)


def test_a_long_text_without_lines_counts_almost_as_if_it_were_read_at_once() -> None:
    words = "word " * 20_000
    assert COUNTER.count_text(words) == pytest.approx(len(load("o200k_base").encode_ordinary(words)), abs=25)


def test_threads_count_alike() -> None:
    words = [f"Sentence {number} of many, in some thread." for number in range(200)]
    alone = [COUNTER.count_text(sentence) for sentence in words]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(TokenCounter("famO").count_text, words)) == alone


FRESH = """
import sys
from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
counter = TokenCounter("famR")
assert "splintr" not in sys.modules
assert counter.needs_thread(pb.GenerateRequest()), "the vocabulary is not loaded yet"
counter.count_text("a")
assert "splintr" in sys.modules
assert not counter.needs_thread(pb.GenerateRequest())
"""


def test_a_process_that_counts_nothing_loads_nothing() -> None:
    subprocess.run([sys.executable, "-c", FRESH], check=True, cwd=Path(__file__).parents[3])


@dataclass(frozen=True)
class Size:
    id: str
    request: pb.GenerateRequest
    family: str
    wanted: bool


SIZES = [
    Size("a question", question(), "famO", False),
    Size("20,000 characters", more(instructions=[text("word " * 4000)]), "famO", False),
    Size("20,000 characters of a slow vocabulary", more(instructions=[text("word " * 4000)]), "famG", True),
    Size("100,000 characters", request_with(text("word " * 20_000)), "famO", True),
    Size("100,000 characters in many turns", more(messages=[user(text("word " * 100))] * 200), "famO", True),
    Size("100,000 characters of schemas", more(tools=[tool('{"a":"' + "word " * 2000 + '"}')] * 10), "famO", True),
    Size("a large image", request_with(media(pb.MEDIA_KIND_IMAGE, data=bytes(2_000_000))), "famO", False),
    Size("a large document", request_with(media(pb.MEDIA_KIND_DOCUMENT, data=bytes(2_000_000))), "famO", True),
]


@pytest.mark.parametrize("case", SIZES, ids=lambda case: case.id)
def test_expensive_work_runs_in_a_thread(case: Size) -> None:
    counter = TokenCounter(case.family)
    counter.count_text("a")
    assert counter.needs_thread(case.request) is case.wanted


def test_an_estimate_ends_at_the_largest_count() -> None:
    pages = b"%PDF" + b"/Type/Page " * (MAX_COUNT // PAGE_TOKENS + 1)
    request = pb.GenerateRequest(messages=[user(pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, data=pages)))])
    assert COUNTER.count_request(request) == MAX_COUNT
    assert COUNTER.estimate_response(request, pb.GenerateResponse()).input_tokens == MAX_COUNT
