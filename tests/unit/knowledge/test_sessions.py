"""Sessions: found in headers and bodies as clients send them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from umg_grpc.knowledge.agent_sessions import MAX_CHARACTERS, SESSION_HEADER_ROWS, Session, end_user_of, session_of


@dataclass(frozen=True)
class Case:
    id: str
    session: Session | None
    headers: Mapping[str, str] = field(default_factory=dict)
    prompt_cache_key: str = ""
    user: str = ""


CLAUDE = '{"device_id":"d","account_uuid":"","session_id":"0199a1b2"}'
OLDER = "user_0f0f_account_1-2_session_0199a1b2-c3d4"
CASES = [
    Case("Claude Code", Session("s"), {"x-claude-code-session-id": "s"}, user=CLAUDE),
    Case("its sub-agent", Session("s", "a"), {"x-claude-code-session-id": "s", "x-claude-code-agent-id": "a"}),
    Case("Claude Code behind a proxy without its headers", Session("0199a1b2"), user=CLAUDE),
    Case("an older version of it", Session("0199a1b2-c3d4"), user=OLDER),
    Case("Codex", Session("s"), {"session-id": "s", "thread-id": "t"}, prompt_cache_key="t"),
    Case("Codex, by its key alone", Session("t"), prompt_cache_key="t"),
    Case("OpenCode", Session("s"), {"x-session-affinity": "s", "x-session-id": "s"}),
    Case("Pi", Session("s"), {"session_id": "s", "x-client-request-id": "s"}),
    Case("the first header of the table", Session("a"), {"x-session-id": "b", "x-session-affinity": "a"}),
    Case("an agent without a session", None, {"x-claude-code-agent-id": "a"}),
    Case("an id of each request", None, {"x-client-request-id": "r"}),
    Case("an end user", None, user="user-1"),
    Case("JSON of another kind", None, user='{"session_id":1}'),
    Case("JSON that is cut off", None, user='{"session_id":"'),
    Case("blanks", None, {"x-session-id": " "}),
    Case("a text that is too long", None, {"x-session-id": "s" * (MAX_CHARACTERS + 1)}),
    Case("a header that is too long beside a key", Session("t"), {"session-id": "s" * 999}, prompt_cache_key="t"),
    Case("no client", None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_session_of_a_request_is_found_as_its_client_names_it(case: Case) -> None:
    found = session_of(case.headers, prompt_cache_key=case.prompt_cache_key, user=case.user)
    assert found == case.session


def test_each_header_has_a_lower_case_name_and_a_source() -> None:
    assert all(
        row.header == row.header.lower() and row.client and row.source and row.as_of for row in SESSION_HEADER_ROWS
    )
    assert len({row.header for row in SESSION_HEADER_ROWS}) == len(SESSION_HEADER_ROWS)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("ada@example.com", "ada@example.com"),
        (OLDER, "user_0f0f_account_1-2"),
        (CLAUDE, "d"),
        ('{"device_id":"d","account_uuid":"a","session_id":"s"}', "a"),
        ('{"session_id":"s"}', '{"session_id":"s"}'),
        ("{not JSON", "{not JSON"),
        ("", ""),
    ],
)
def test_an_end_user_is_the_id_without_the_session_of_an_agent(user: str, expected: str) -> None:
    assert end_user_of(user) == expected
