"""Web search, and sources of the answer."""

import json

import pytest

from tests.upstream.sandbox.asking import ask, count, deltas, function, hear, stream, text, user
from umg_grpc.v1 import pb

SEARCH = pb.Tool(web_search=pb.WebSearchTool(max_uses=1))


def cited(request: pb.GenerateRequest) -> list[pb.Citation]:
    return [citation for part in hear(request).parts for citation in part.text.citations]


def test_a_search_comes_with_its_results_and_is_cited_where_it_is_told() -> None:
    heard = hear(ask("News about Mars and Venus?", tools=[SEARCH]))
    assert heard.kinds == ["server_tool_call", "server_tool_result", "text"]
    call, found = heard.parts[0].server_tool_call, heard.parts[1].server_tool_result
    assert (call.name, list(call.queries)) == ("web_search", ["News about Mars and Venus?"])
    assert (found.call_id, found.name) == (call.call_id, "web_search")
    citations = heard.parts[2].text.citations
    assert [citation.web.url for citation in citations] == [page.url for page in found.results]
    for citation in citations:
        assert citation.web.url.startswith("https://sandbox.example/")
        assert heard.text[citation.start_index : citation.end_index] == citation.cited_text
        assert citation.title
    assert heard.usage.web_search_requests == 1
    assert (heard.calls, heard.finish) == ([], "STOP")


def test_a_search_for_messages_has_all_that_the_format_returns_with_the_conversation() -> None:
    heard = hear(ask("Mars", tools=[SEARCH], source="messages"))
    call, found = heard.parts[0].server_tool_call, heard.parts[1].server_tool_result
    assert (call.format, json.loads(call.input_json)) == ("messages", {"query": "Mars"})
    assert call.call_id.startswith("srvtoolu_")
    assert all(page.encrypted_content for page in found.results)
    assert all(citation.web.encrypted_index for citation in heard.parts[2].text.citations)
    assert "encrypted" not in str(hear(ask("Mars", tools=[SEARCH], source="chat")).response)


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
    assert len(cited(ask("Mars", **fields))) == 2


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
    heard = hear(ask("Mars", **fields))
    assert (cited(ask("Mars", **fields)), heard.usage.web_search_requests) == ([], 0)
    assert "https://" not in str(heard.response)


def test_no_sources_are_told_to_who_wants_none() -> None:
    heard = hear(ask("Mars", search=pb.SearchOptions(mode=pb.SEARCH_MODE_ON, return_citations=False)))
    assert heard.usage.web_search_requests == 1
    assert "https://" not in str(heard.response)


def test_a_tool_that_is_called_comes_before_the_search() -> None:
    heard = hear(ask("use find_it", tools=[SEARCH, function("find_it")]))
    assert (heard.kinds, heard.usage.web_search_requests) == (["tool_call"], 0)


def test_only_allowed_domains_are_cited() -> None:
    tool = pb.Tool(web_search=pb.WebSearchTool(allowed_domains=["a.test", "https://b.test/"]))
    hosts = [citation.web.url.split("/")[2] for citation in cited(ask("Mars", tools=[tool]))]
    assert hosts == ["a.test", "b.test"]


def test_sources_of_what_the_limit_cut_are_left_out() -> None:
    request = ask("Mars", tools=[SEARCH])
    whole = hear(request)
    first = whole.parts[2].text.citations[0]
    request.max_output_tokens = count(whole.text[: first.start_index + 20])
    heard = hear(request)
    [only] = heard.parts[2].text.citations
    assert only.end_index == len(heard.text) < first.end_index


def test_an_answer_in_json_is_cited_as_a_whole() -> None:
    heard = hear(ask("Mars", tools=[SEARCH], response_format=pb.ResponseFormat(json=pb.JsonFormat())))
    assert {(each.start_index, each.end_index) for each in heard.parts[-1].text.citations} == {(0, len(heard.text))}


def test_a_stream_tells_a_source_where_its_words_end() -> None:
    told, ends = "", []
    messages = stream(ask("Mars 😀", tools=[SEARCH])).messages
    for message in messages:
        for event in message.events:
            told += event.text_delta
            if event.HasField("citation"):
                ends.append((event.citation.end_index, len(told)))
    assert len(ends) == len(deltas(messages, "citation")) == 2
    assert all(end == at for end, at in ends)


def test_a_search_in_files_is_accepted_and_reported() -> None:
    tool = pb.Tool(file_search=pb.FileSearchTool(vector_store_ids=["vs_1"]))
    heard = hear(ask("Mars", tools=[tool]))
    assert (heard.kinds, heard.dropped) == (["text"], "file_search")


def document(**fields: object) -> pb.Part:
    return pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, citable=True, **fields))


def test_documents_that_may_be_cited_are_cited() -> None:
    blocks = pb.DocumentBlocks(parts=[text("One fish"), text("two fish")])
    request = ask(user(document(data=b"Grass is green.", mime_type="text/plain"), document(blocks=blocks), "So?"))
    heard = hear(request)
    first, second = heard.parts[0].text.citations
    assert (first.cited_text, first.document.document_index, first.document.unit) == ("Grass is green.", 0, pb.DOCUMENT_UNIT_CHARACTER)  # fmt: skip
    assert (first.document.start, first.document.end) == (0, len("Grass is green."))
    assert heard.text[first.start_index : first.end_index] == "Grass is green."
    assert (second.document.document_index, second.document.unit) == (1, pb.DOCUMENT_UNIT_BLOCK)
    assert (second.document.start, second.document.end) == (0, 1)


def test_documents_that_may_not_be_cited_are_not() -> None:
    part = pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, data=b"Grass", mime_type="text/plain"))
    assert cited(ask(user(part, "So?"))) == []
