"""Windows of guarded texts: no beginning of a secret leaves, however a stream is cut, and the text is that of a whole
response.
"""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umg_grpc.access.caller_identity import Caller
from umg_grpc.config import parse
from umg_grpc.config.config_values import GuardRow
from umg_grpc.config.guard_section import MAX_WORDS
from umg_grpc.knowledge.sensitive_text_patterns import DIGIT_SEPARATORS, GUARDED_PATTERNS, GuardedPattern
from umg_grpc.service.guardrails.guard_driver import GuardRun
from umg_grpc.service.guardrails.guard_interface import Guard
from umg_grpc.service.guardrails.guard_selection import GuardPlan
from umg_grpc.service.guardrails.pattern_guard import PatternGuard
from umg_grpc.service.guardrails.streamed_text_windows import GuardedText
from umg_grpc.service.pipeline.call_state import Arrival, Call
from umg_grpc.v1 import pb

SECRETS = {
    "aws_access_key": "AKIA" + "IOSFODNN7EXAMPLE",
    "github_token": "ghp_" + "a1B2" * 9,
    "card_number": "4111 1111 1111 1111",
    "email": "jo.doe@mail.example.org",
    "slack_token": "xoxb-" + "1234567890-" * 2 + "abcdef",
    "private_key": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\nAbC/+=\n-----END RSA " + "PRIVATE KEY-----",
    "jwt": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".abcdefghijklmnop",
}
SECRET = SECRETS["aws_access_key"]
SHORTEST = 8
"""Length of the beginnings of secrets that may not leave; shorter ones are parts of other texts."""
FILLER = ("the ", "é", "\n", "AK", "AKIA", "4111 ", "-----BEGIN ", "-", "x@", "ey", "0", " ")
WORDS = st.lists(st.sampled_from([*FILLER, *(f" {secret} " for secret in SECRETS.values())]), max_size=8)
CUTS = st.lists(st.integers(1, 9), min_size=1, max_size=12)


class HidingGuard(Guard):
    """Guard that hides one secret, as a service of an operator would."""

    async def check(self, request: pb.CheckRequest) -> pb.CheckResponse:
        [each] = request.texts
        hidden = pb.TextReplacement(path=each.path, text=each.text.replace(SECRET, "[hidden]"))
        return pb.CheckResponse(replace=pb.GuardReplace(texts=[hidden]))


def run(*guards: Guard) -> GuardRun:
    """Return the guards of a response."""
    plan = GuardPlan(pb.MODEL_OPERATION_GENERATE, (), guards, "", False, lambda *_: None)
    call = Call(Arrival("/m", {}, trusted=True, request_id="req_1"))
    call.known_caller = Caller("key_1", "test", (), None, None)
    return GuardRun(plan, call, "m", "response")


def patterns() -> PatternGuard:
    return PatternGuard(GuardRow(name="patterns", kind="patterns", patterns=GUARDED_PATTERNS))


def words(phrase: str) -> PatternGuard:
    [row] = parse(
        "channels: [{name: a, protocols: [sandbox], models: [m]}]\n"
        f"guards: [{{name: words, kind: patterns, words: ['{phrase}']}}]\n",
        "umg.yaml",
        {},
    ).guards
    return PatternGuard(row)


def pieces(text: str, sizes: Sequence[int]) -> list[str]:
    """Return a text in pieces of these sizes, which are used in turn."""
    cut, at = list[str](), 0
    while at < len(text):
        size = sizes[len(cut) % len(sizes)]
        cut.append(text[at : at + size])
        at += size
    return cut


def passed(guards: GuardRun, cut: Sequence[str]) -> list[str]:
    """Return the text that passes at each piece and at the end."""

    async def feed() -> list[str]:
        text = GuardedText(guards, "text")
        return [*[await text.feed(piece) for piece in cut], await text.close()]

    return asyncio.run(feed())


@settings(max_examples=150, deadline=None)
@given(words=WORDS, sizes=CUTS)
def test_no_beginning_of_a_secret_leaves_however_a_stream_is_cut(words: list[str], sizes: list[int]) -> None:
    text = "".join(words)
    whole = passed(run(patterns()), [text])
    cut = passed(run(patterns()), pieces(text, sizes))
    assert "".join(cut) == "".join(whole)
    sent = "".join(cut)
    assert not [name for name, secret in SECRETS.items() if f" {secret[: max(SHORTEST, len(secret) // 2)]}" in sent]


@settings(max_examples=100, deadline=None)
@given(words=WORDS, sizes=CUTS, window=st.integers(1, 30))
def test_a_text_that_is_held_back_is_checked_with_the_next_window(
    words: list[str], sizes: list[int], window: int
) -> None:
    text = "".join(words)
    row = GuardRow(name="remote", kind="grpc", window=window, hold_back=len(SECRET))
    sent = passed(run(HidingGuard(row)), pieces(text, sizes))
    assert "".join(sent) == text.replace(SECRET, "[hidden]")


def test_each_pattern_finds_its_secret_and_masks_it_by_its_name() -> None:
    for name, secret in SECRETS.items():
        assert "".join(passed(run(patterns()), [f"it is {secret} here"])) == f"it is [{name.upper()}] here"


def test_a_plain_text_leaves_at_once() -> None:
    assert passed(run(patterns()), ["Hello ", "to the ", "world, "]) == ["Hello ", "to the ", "world, ", ""]


def test_guards_check_a_text_one_after_the_other() -> None:
    row = GuardRow(name="remote", kind="grpc", window=1, hold_back=len(SECRET))
    sent = passed(run(HidingGuard(row), patterns()), pieces(f"an {SECRET} and jo@mail.example.org", [3]))
    assert "".join(sent) == "an [hidden] and [EMAIL]"


@settings(max_examples=60, deadline=None)
@given(blanks=st.text("  \n\t\xa0", min_size=1, max_size=20), sizes=CUTS)
def test_a_phrase_is_found_with_any_white_space_between_its_words(blanks: str, sizes: list[int]) -> None:
    text = f"Of PROJECT{blanks}falcon and project{blanks}x, proj"
    sent = passed(run(words("Project Falcon")), pieces(text, sizes))
    assert "".join(sent) == f"Of [WORD] and project{blanks}x, proj"
    assert not [piece for piece in sent if "PROJ" in piece]


def test_a_refusal_names_the_kinds_of_the_found_texts() -> None:
    check = pb.CheckRequest(texts=[pb.GuardedText(path="a", text=f"project falcon, {SECRET}, E-1")])
    patterns = [
        *GUARDED_PATTERNS,
        *words("Project Falcon").row.patterns,
        GuardedPattern(name="EMPLOYEE", pattern="E-[0-9]", most=3),
    ]
    guard = PatternGuard(GuardRow(name="g", kind="patterns", patterns=tuple(patterns), action="refuse"))
    refusal = asyncio.run(guard.check(check)).refuse
    expected = "a word that is not allowed and a secret (`aws_access_key`) and a text of the pattern `EMPLOYEE`"
    assert (refusal.reason, refusal.category) == (f"it contains {expected}", "word")


@pytest.mark.parametrize("phrase", ["a\u2013b", "C++", "\u2019s", "{x}", "a_b", "na\u00efve \u65e5\u672c"])
def test_words_may_have_any_characters(phrase: str) -> None:
    assert "".join(passed(run(words(phrase)), [f"x {phrase} y"])) == "x [WORD] y"


def test_many_words_are_found_in_linear_time() -> None:
    guard = words("', '".join(f"word{number} phrase" for number in range(MAX_WORDS)))
    text = "some word7 and " * 2000
    assert "".join(passed(run(guard), [f"{text}word8 phrase"])) == f"{text}[WORD]"


ESCAPES = {
    r'{"a": "\ud83d\ude00 KEY"}': '{"a":"\U0001f600 [AWS_ACCESS_KEY]"}',
    r'{"a": "\ud83d\ude00"}': r'{"a": "\ud83d\ude00"}',
    r'{"a": "\ud83d KEY"}': r'{"a": "\ud83d [AWS_ACCESS_KEY]"}',
    r'{"\u0041KIAIOSFODNN7EXAMPLE": 1}': '{"[AWS_ACCESS_KEY]":1}',
}
"""JSON text -> the masked one."""


@pytest.mark.parametrize("text", ESCAPES)
def test_escapes_of_a_json_text_are_resolved(text: str) -> None:
    check = pb.CheckRequest(texts=[pb.GuardedText(path="a", text=text.replace("KEY", SECRET), is_json=True)])
    replaced = asyncio.run(patterns().check(check)).replace.texts
    assert (replaced[0].text if replaced else text) == ESCAPES[text]


@pytest.mark.parametrize("separator", [*DIGIT_SEPARATORS, ""])
@pytest.mark.parametrize("size", [1, 50])
def test_groups_of_a_card_number_are_divided_by_any_blank_or_hyphen(separator: str, size: int) -> None:
    number = separator.join(["4111", "1111", "1111", "1111"])
    assert "".join(passed(run(patterns()), pieces(f"it is {number} here", [size]))) == "it is [CARD_NUMBER] here"


@pytest.mark.parametrize("size", [1, 50])
def test_a_secret_behind_an_escaped_line_end_is_found(size: int) -> None:
    text = rf'{{"log": "user: jo@example.org\n{SECRET}\t{SECRET}"}}'
    masked = r'{"log": "user: [EMAIL]\n[AWS_ACCESS_KEY]\t[AWS_ACCESS_KEY]"}'
    assert "".join(passed(run(patterns()), pieces(text, [size]))) == masked
