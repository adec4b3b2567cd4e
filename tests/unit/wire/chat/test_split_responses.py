"""Answers that are split over several choices: every member with a list, an object with lists, or text is joined."""

from collections.abc import Callable

import msgspec
import pytest

from umg_grpc.knowledge.reasoning_state_members import REASONING_CARRIERS
from umg_grpc.wire.chat.split_choice_joining import joined_body, joined_chunk

LISTS = ("tool_calls", "annotations", "images", *(row.member for row in REASONING_CARRIERS if row.merge != "replace"))
TEXTS = ("content", "refusal", "reasoning_content", "reasoning", "reasoning_text")
KEPT = [row.member for row in REASONING_CARRIERS if row.merge == "replace" and row.place == "message"]


def joined(member: str, join: Callable[[bytes], bytes], content: str, *values: object) -> object:
    """Return the member, a dotted path, of a response with a choice for each of `values`."""
    name, _, inner = member.partition(".")
    choices = [{content: {name: {inner: value} if inner else value}} for value in values]
    [choice] = msgspec.json.decode(join(msgspec.json.encode({"choices": choices})))["choices"]
    found = choice[content][name]
    return found[inner] if inner else found


@pytest.mark.parametrize(("join", "content"), [(joined_body, "message"), (joined_chunk, "delta")])
def test_lists_and_texts_of_all_choices_are_kept_in_their_order(join: Callable[[bytes], bytes], content: str) -> None:
    for member in LISTS:
        assert joined(member, join, content, [{"a": 1}], [{"b": 2}, 3], None) == [{"a": 1}, {"b": 2}, 3], member
    for member in TEXTS:
        assert joined(member, join, content, "one ", None, "two") == "one two", member


@pytest.mark.parametrize(("join", "content"), [(joined_body, "message"), (joined_chunk, "delta")])
def test_a_state_that_comes_as_a_whole_is_that_of_the_first_choice(
    join: Callable[[bytes], bytes], content: str
) -> None:
    for member in KEPT:
        assert joined(member, join, content, None, "sealed", "other") == "sealed", member


def test_objects_of_several_choices_have_the_members_of_all() -> None:
    first, second = {"a": [1], "b": "x", "n": None}, {"a": [2], "b": "y", "n": 1, "c": {}}
    assert joined("provider_specific_fields", joined_body, "message", first, second) == {
        "a": [1, 2],
        "b": "x",
        "n": 1,
        "c": {},
    }
