"""Web search, and sources of the response."""

import json

import pytest

from tests.unit.umg_sandbox.sandbox_calls import count, deltas, function, generate, make_request, stream, text, user
from umg_grpc.v1 import pb

SEARCH = pb.Tool(web_search=pb.WebSearchTool(max_uses=1))


def cited(request: pb.GenerateRequest) -> list[pb.Citation]:
    return [citation for part in generate(request).parts for citation in part.text.citations]


def test_a_search_has_its_results_and_the_text_cites_them() -> None:
    answer = generate(make_request("News about Mars and Venus?", tools=[SEARCH]))
    assert answer.kinds == ["server_tool_call", "server_tool_result", "text"]
    call, result = answer.parts[0].server_tool_call, answer.parts[1].server_tool_result
    assert (call.name, list(call.queries)) == ("web_search", ["News about Mars and Venus?"])
    assert (result.call_id, result.name) == (call.call_id, "web_search")
    citations = answer.parts[2].text.citations
    assert [citation.web.url for citation in citations] == [page.url for page in result.results]
    for citation in citations:
        assert citation.web.url.startswith("https://sandbox.example/")
        assert answer.text[citation.start_index : citation.end_index] == citation.cited_text
        assert citation.title
    assert answer.usage.web_search_requests == 1
    assert (answer.calls, answer.finish) == ([], "STOP")


def test_a_search_for_messages_has_the_encrypted_fields_of_the_format() -> None:
    answer = generate(make_request("Mars", tools=[SEARCH], source="messages"))
    call, result = answer.parts[0].server_tool_call, answer.parts[1].server_tool_result
    assert (call.format, json.loads(call.input_json)) == ("messages", {"query": "Mars"})
    assert call.call_id.startswith("srvtoolu_")
    assert all(page.encrypted_content for page in result.results)
    assert all(citation.web.encrypted_index for citation in answer.parts[2].text.citations)
    assert "encrypted" not in str(generate(make_request("Mars", tools=[SEARCH], source="chat")).response)


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [pb.Tool(web_search=pb.WebSearchTool(declared_type="vendorgSearch"))]},
        {"search": pb.SearchOptions()},
        {"search": pb.SearchOptions(mode=pb.SEARCH_MODE_ON)},
        {"search": pb.SearchOptions(mode=pb.SEARCH_MODE_AUTO)},
        {"tools": [SEARCH], "tool_choice": pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_REQUIRED, names=["web_search"])},
        {"tools": [SEARCH], "tool_choice": pb.ToolChoice(opaque=pb.OpaquePart(format="responses", type="web_search_preview", json="{}"))},
        {"tools": [SEARCH, function("other")]},
    ],
    ids=str,
)  # fmt: skip
def test_search_is_on(fields: dict[str, object]) -> None:
    assert len(cited(make_request("Mars", **fields))) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"search": pb.SearchOptions(mode=pb.SEARCH_MODE_OFF)},
        {"search": pb.SearchOptions(mode=pb.SEARCH_MODE_OFF), "tools": [SEARCH]},
        {"tools": [SEARCH], "tool_choice": pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_NONE)},
    ],
    ids=str,
)
def test_search_is_off(fields: dict[str, object]) -> None:
    answer = generate(make_request("Mars", **fields))
    assert (cited(make_request("Mars", **fields)), answer.usage.web_search_requests) == ([], 0)
    assert "https://" not in str(answer.response)


def test_an_answer_has_no_sources_if_the_request_disables_them() -> None:
    answer = generate(make_request("Mars", search=pb.SearchOptions(mode=pb.SEARCH_MODE_ON, return_citations=False)))
    assert answer.usage.web_search_requests == 1
    assert "https://" not in str(answer.response)


def test_a_tool_call_takes_precedence_over_the_search() -> None:
    answer = generate(make_request("use find_it", tools=[SEARCH, function("find_it")]))
    assert (answer.kinds, answer.usage.web_search_requests) == (["tool_call"], 0)


def test_only_allowed_domains_are_cited() -> None:
    tool = pb.Tool(web_search=pb.WebSearchTool(allowed_domains=["a.test", "https://b.test/"]))
    hosts = [citation.web.url.split("/")[2] for citation in cited(make_request("Mars", tools=[tool]))]
    assert hosts == ["a.test", "b.test"]


def test_citations_of_text_beyond_the_token_limit_are_left_out() -> None:
    request = make_request("Mars", tools=[SEARCH])
    unlimited = generate(request)
    first = unlimited.parts[2].text.citations[0]
    request.max_output_tokens = count(unlimited.text[: first.start_index + 20])
    answer = generate(request)
    [only] = answer.parts[2].text.citations
    assert only.end_index == len(answer.text) < first.end_index


def test_an_answer_in_json_is_cited_as_a_whole() -> None:
    answer = generate(make_request("Mars", tools=[SEARCH], response_format=pb.ResponseFormat(json=pb.JsonFormat())))
    assert {(each.start_index, each.end_index) for each in answer.parts[-1].text.citations} == {(0, len(answer.text))}


def test_a_stream_has_a_citation_where_its_cited_text_ends() -> None:
    streamed_text, ends = "", []
    messages = stream(make_request("Mars 😀", tools=[SEARCH])).messages
    for message in messages:
        for event in message.events:
            streamed_text += event.text_delta
            if event.HasField("citation"):
                ends.append((event.citation.end_index, len(streamed_text)))
    assert len(ends) == len(deltas(messages, "citation")) == 2
    assert all(end == at for end, at in ends)


def test_a_search_in_files_is_accepted_and_reported() -> None:
    tool = pb.Tool(file_search=pb.FileSearchTool(vector_store_ids=["vs_1"]))
    answer = generate(make_request("Mars", tools=[tool]))
    assert (answer.kinds, answer.dropped) == (["text"], "file_search")


def document(**fields: object) -> pb.Part:
    return pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, citable=True, **fields))


def test_documents_with_citations_enabled_are_cited() -> None:
    blocks = pb.DocumentBlocks(parts=[text("One fish"), text("two fish")])
    request = make_request(
        user(document(data=b"Grass is green.", mime_type="text/plain"), document(blocks=blocks), "So?")
    )
    answer = generate(request)
    first, second = answer.parts[0].text.citations
    assert (first.cited_text, first.document.document_index, first.document.unit) == ("Grass is green.", 0, pb.DOCUMENT_UNIT_CHARACTER)  # fmt: skip
    assert (first.document.start, first.document.end) == (0, len("Grass is green."))
    assert answer.text[first.start_index : first.end_index] == "Grass is green."
    assert (second.document.document_index, second.document.unit) == (1, pb.DOCUMENT_UNIT_BLOCK)
    assert (second.document.start, second.document.end) == (0, 1)


def test_documents_without_citations_enabled_are_not_cited() -> None:
    part = pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, data=b"Grass", mime_type="text/plain"))
    assert cited(make_request(user(part, "So?"))) == []
