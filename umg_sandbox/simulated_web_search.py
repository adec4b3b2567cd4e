"""Simulated web search of text models, with invented pages."""

import re
from dataclasses import dataclass

from umg_grpc.v1 import pb
from umg_sandbox.prompt_reader import Prompt, first_words
from umg_sandbox.schema_value_generation import json_of
from umg_sandbox.simulated_reasoning import signed
from umg_sandbox.words_from_prompt import Words, digest

TOOL_NAME = "web_search"
PAGE_COUNT = 2
DEFAULT_DOMAIN = "sandbox.example"
OWN_FORMAT = "messages"
"""Name of the format whose fields about web searches are all simulated."""


@dataclass(frozen=True)
class ResultPage:
    """Invented result page of a simulated web search."""

    url: str
    title: str
    sentence: str

    encrypted: bool
    """Whether the result has encrypted content, which callers of the messages format send back."""

    def citation(self, start: int, end: int) -> pb.Citation:
        """Return a citation of the page for the response's text from `start` to `end`, in code points."""
        web = pb.WebSource(url=self.url, encrypted_index=signed(self.url, OWN_FORMAT).data if self.encrypted else "")
        return pb.Citation(start_index=start, end_index=end, cited_text=self.sentence, title=self.title, web=web)


def find_pages(request: pb.GenerateRequest, words: Words) -> list[ResultPage]:
    """Return result pages on domains that the caller allows; none if it selects no sources. `words`: for texts."""
    if request.search.HasField("return_citations") and not request.search.return_citations:
        return []
    tool = next((tool.web_search for tool in request.tools if tool.HasField("web_search")), pb.WebSearchTool())
    domains = list(tool.allowed_domains) or [DEFAULT_DOMAIN]
    pages = list[ResultPage]()
    for index, topic in enumerate((words.topics(PAGE_COUNT) * PAGE_COUNT)[:PAGE_COUNT]):
        slug = re.sub(r"[^a-z0-9]+", "-", topic.lower()).strip("-") or "page"
        host = domains[index % len(domains)].removeprefix("https://").removeprefix("http://").rstrip("/")
        sentence = f"A simulated page tells of {topic}, which is {('first', 'second')[index]} among what was found."
        title = f"{topic.capitalize()} (simulated page)"
        pages.append(
            ResultPage(f"https://{host}/{slug}-{index + 1}", title, sentence, request.source.format == OWN_FORMAT)
        )
    return pages


def search_parts(request: pb.GenerateRequest, prompt: Prompt, pages: list[ResultPage]) -> list[pb.Part]:
    """Return the message parts with the call of the web search and its results."""
    query, own = first_words(prompt.question), request.source.format == OWN_FORMAT
    call_id = f"{'srvtoolu' if own else 'ws'}_{digest(prompt.question, str(prompt.turns)).hex()[:24]}"
    call = pb.ServerToolCall(call_id=call_id, name=TOOL_NAME, queries=[query], status="completed")
    if own:
        call.format, call.input_json = OWN_FORMAT, json_of({"query": query})
    result = pb.ServerToolResult(call_id=call_id, name=TOOL_NAME)
    for page in pages:
        encrypted = signed(page.title, OWN_FORMAT).data if own else ""
        result.results.add(url=page.url, title=page.title, encrypted_content=encrypted)
    return [pb.Part(server_tool_call=call), pb.Part(server_tool_result=result)]
