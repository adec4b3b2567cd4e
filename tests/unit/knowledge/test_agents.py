"""Agents: found in headers as programs send them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from umg_grpc.knowledge.agent_detection import AGENT_NAMES, AGENT_ROWS, CACHED_VALUES, MAX_CHARACTERS, _row_of, agent_of

NAME = re.compile(r"[a-z][a-z0-9-]{1,23}")
DATE = re.compile(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]")


@dataclass(frozen=True)
class Case:
    """Request of a program, and its name in usage."""

    id: str
    agent: str
    headers: Mapping[str, str]


STAINLESS = {"x-stainless-lang": "js", "x-stainless-package-version": "5.11.0"}
CASES = [
    Case(
        "Claude Code",
        "claude-code",
        {"user-agent": "claude-cli/2.1.332 (external, sdk-cli)", "x-app": "cli", "x-claude-code-session-id": "s"},
    ),
    Case(
        "Claude Code behind a proxy",
        "claude-code",
        {"user-agent": "node", "x-app": "cli", "x-claude-code-session-id": "s"},
    ),
    Case(
        "Codex",
        "codex",
        {
            "user-agent": "codex_exec/0.171.0 (Debian 12.0.0; x86_64) dumb (codex_exec; 0.171.0)",
            "originator": "codex_exec",
        },
    ),
    Case("Codex in an editor", "codex", {"user-agent": "codex_vscode/0.98.0"}),
    Case("Codex behind a proxy", "codex", {"originator": "codex_cli_rs"}),
    Case(
        "Gemini CLI",
        "gemini-cli",
        {
            "user-agent": "GeminiCLI-tui/0.61.0/famG-2.5-flash (linux; x64; terminal)",
            "x-goog-api-client": "google-genai-sdk/1.30.0 gl-node/v24.19.0",
        },
    ),
    Case("OpenCode", "opencode", {"user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14"}),
    Case("Qwen Code", "qwen-code", {"user-agent": "QwenCode/0.24.4 (linux; x64)", **STAINLESS}),
    Case(
        "Qwen Code in the format messages",
        "qwen-code",
        {"user-agent": "claude-cli/0.24.4 (external, cli)", "x-app": "cli", **STAINLESS},
    ),
    Case("Aider, by a library", "openai-sdk", {"user-agent": "OpenAI/Python 2.20.0", "x-stainless-lang": "python"}),
    Case("Aider, by another library", "litellm", {"user-agent": "litellm/1.81.10"}),
    Case(
        "Cline, by a library that it names in another header",
        "cline",
        {"user-agent": "OpenAI/JS 6.26.0", "x-title": "Cline", "http-referer": "https://cline.bot"},
    ),
    Case("Roo Code", "roo-code", {"user-agent": "RooCode/3.40.1", "x-title": "Roo Code"}),
    Case("Crush", "crush", {"user-agent": "Charm Crush/0.48.0"}),
    Case("an SDK", "openai-sdk", {"user-agent": "AsyncOpenAI/Python 3.57.0"}),
    Case("an SDK of Anthropic", "anthropic-sdk", {"user-agent": "Anthropic/Python 0.128.0"}),
    Case("an SDK of Google", "google-genai-sdk", {"user-agent": "google-genai-sdk/3.6.1+chat gl-python/3.11.7"}),
    Case("the AI SDK", "ai-sdk", {"user-agent": "ai/5.0.26 ai-sdk/provider-utils/3.0.1 runtime/node.js/22"}),
    Case("gRPC in Python", "grpc", {"user-agent": "grpc-python-asyncio/1.85.1 grpc-c/52.0.0 (linux; chttp2)"}),
    Case("gRPC in Rust", "grpc", {"user-agent": "tonic/0.14.9"}),
    Case("Connect", "connect", {"user-agent": "connect-es/2.1.2"}),
    Case("Continue, whose library has a shortened name", "", {"user-agent": "ls/JS 5.23.2", **STAINLESS}),
    Case("a program with a title of its own", "", {"user-agent": "curl/8.4.0", "x-title": "My program"}),
    Case("a name within another", "", {"user-agent": "not-claude-cli/2.1.332"}),
    Case(
        "a program that is named by its operator",
        "aider",
        {"user-agent": "OpenAI/Python 2.20.0", "x-umg-agent": "aider"},
    ),
    Case(
        "a name that is not in the table", "openai-sdk", {"user-agent": "OpenAI/Python 2.20.0", "x-umg-agent": "mine"}
    ),
    Case("a header whose value does not name the program", "", {"x-umg-agent": "mine"}),
    Case("another gateway", "umg-gateway", {"user-agent": "unified-model-gateway"}),
    Case("an empty header", "", {"user-agent": "", "x-claude-code-session-id": ""}),
    Case("no header", "", {}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_agent_of_a_request_is_found_as_it_names_itself(case: Case) -> None:
    assert agent_of(case.headers) == case.agent


def test_callers_cannot_make_further_names_or_fill_the_memory() -> None:
    found = {agent_of({"user-agent": f"{number} " * 5000, "x-title": str(number)}) for number in range(CACHED_VALUES)}
    assert found == {""}
    assert _row_of.cache_info().currsize <= CACHED_VALUES


def test_each_row_has_a_short_name_a_beginning_in_lower_case_a_source_and_a_date() -> None:
    for row in AGENT_ROWS:
        assert NAME.fullmatch(row.agent), row
        assert row.client, row
        assert row.source, row
        assert DATE.fullmatch(row.as_of), row
        assert (row.header, row.begins) == (row.header.lower(), row.begins.lower()), row
        assert len(row.begins) <= MAX_CHARACTERS, row
    assert len(AGENT_NAMES) < 50


def test_no_row_is_hidden_by_an_earlier_one() -> None:
    for place, row in enumerate(AGENT_ROWS):
        earlier = [
            each for each in AGENT_ROWS[:place] if each.header == row.header and row.begins.startswith(each.begins)
        ]
        assert not earlier, row
