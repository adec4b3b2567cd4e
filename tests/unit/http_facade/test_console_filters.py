"""Filters of the console: they are the query of the address, and the flags of the command line."""

from datetime import UTC, datetime, timedelta

import pytest

from http_facade.console.address_filters import read_filters
from umg_grpc.base.errors import UmgError

NOW = datetime(2026, 11, 30, 14, 2, 31, tzinfo=UTC)


def test_a_span_begins_before_now_and_a_time_at_itself() -> None:
    minute = NOW.replace(second=0)
    assert read_filters({}, NOW).start == minute - timedelta(hours=24)
    assert read_filters({"since": "7d"}, NOW).start == minute - timedelta(days=7)
    assert read_filters({"since": "90s"}, NOW).start == NOW - timedelta(seconds=90)
    assert read_filters({"since": "month"}, NOW).start == datetime(2026, 11, 1, tzinfo=UTC)
    found = read_filters({"since": "2026-11-01", "until": "2026-11-02T03:00:00+02:00"}, NOW)
    assert (found.start, found.end) == (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 2, 1, tzinfo=UTC))
    assert (found.span, read_filters({"since": "1h"}, NOW).span) == ("", "1h")


@pytest.mark.parametrize(
    "query",
    [
        {"since": "yesterday"},
        {"until": "24"},
        {"since": "1h", "until": "2h"},
        {"since": "0001-01-01T00:00:00+14:00"},
        {"until": "9999-12-31T23:59:59-14:00"},
    ],
)
def test_a_time_that_is_none_is_named(query: dict[str, str]) -> None:
    with pytest.raises(UmgError) as caught:
        read_filters(query, NOW)
    assert caught.value.metadata["field"] in query


def test_filters_stay_in_the_address_and_a_changed_one_begins_at_the_first_page() -> None:
    found = read_filters({"key": "app", "model": "gpt-*", "failed": "1", "page": "abc", "x": " "}, NOW)
    assert found.changed(model="") == "?key=app&failed=1"
    assert found.changed(page="def") == "?key=app&model=gpt-*&failed=1&page=def"
    assert found.set_names() == ["key", "model", "failed"]
    assert found.kept() == "?key=app&model=gpt-*&failed=1"


def test_the_command_has_the_flags_of_the_filters() -> None:
    found = read_filters({"since": "7d", "key": "my app", "user": "ada", "failed": "1"}, NOW)
    assert found.command("umg requests list") == "umg requests list --since 7d --key 'my app' --end-user ada --failed"


def test_a_tag_has_a_name_and_a_value() -> None:
    assert read_filters({"tag": "team=search,env=prod"}, NOW).tags() == {"team": "search", "env": "prod"}
    with pytest.raises(UmgError, match="NAME=VALUE"):
        read_filters({"tag": "team"}, NOW).tags()
