"""Tables of the words and members by which providers describe video and image tasks."""

import re
from collections import Counter

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.task_response_members import TaskMember, paths_of
from umg_grpc.knowledge.task_state_words import ALL_PROTOCOLS, TaskWord, meaning_of, own_meaning
from umg_grpc.wire.video import VIDEO_PROTOCOLS

WORDS, MEMBERS = read_rows("task_words", TaskWord), read_rows("task_members", TaskMember)
DATE = re.compile(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]")
PROTOCOLS = {*VIDEO_PROTOCOLS, ALL_PROTOCOLS, "dashscope_images"}


def test_rows_have_a_source_a_date_and_known_protocols() -> None:
    rows: list[TaskWord | TaskMember] = [*WORDS, *MEMBERS]
    for row in rows:
        assert row.source
        assert DATE.fullmatch(row.as_of)
        assert set(row.protocols) <= PROTOCOLS


def test_a_word_has_one_meaning_in_a_protocol() -> None:
    counts = Counter((row.word, protocol) for row in WORDS for protocol in row.protocols)
    assert counts.most_common(1)[0][1] == 1


def test_a_word_is_found_in_any_case_and_with_spaces_and_hyphens() -> None:
    assert all(row.word == row.word.lower() and not set(" -") & set(row.word) for row in WORDS)
    assert meaning_of(" In-Progress ", "vidD") == meaning_of("IN PROGRESS", "vidD") == "running"


def test_a_word_of_the_maker_takes_precedence_over_the_same_word_of_others() -> None:
    assert (own_meaning("UNKNOWN", "vidC"), meaning_of("UNKNOWN", "vidC")) == ("expired", "expired")
    assert (own_meaning("UNKNOWN", "vidA"), meaning_of("UNKNOWN", "vidA")) == (None, "queued")


def test_every_path_of_a_role_is_there_once() -> None:
    counts = Counter((row.role, row.path) for row in MEMBERS)
    assert counts.most_common(1)[0][1] == 1
    assert ("videos", "[]", "url", "[]") in paths_of("file", "vidA")
    assert paths_of("request_id", "vidA") == (("request_id",),)
    assert paths_of("request_id", "vidC") == ()
