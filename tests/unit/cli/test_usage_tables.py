"""Parts of the tables of `umg usage`: bars, and the time without calls between them."""

from itertools import pairwise

import pytest

from umg_grpc.cli.text_tables import BAR_WIDTH, bars
from umg_grpc.cli.usage_command_actions import UNIT_NAMES, UsageTotal, _figures, _with_gaps, print_usage


def test_the_longest_bar_is_that_of_the_largest_value() -> None:
    found = bars([0, 1, 50, 99, 100])
    assert (found[0], found[-1]) == ("", "█" * BAR_WIDTH)
    assert found[2] == "█" * (BAR_WIDTH // 2)
    assert all(len(shorter) <= len(longer) for shorter, longer in pairwise(found))
    assert bars([]) == []
    assert bars([0, 0]) == ["", ""]


@pytest.mark.parametrize(
    ("name", "times", "expected"),
    [
        ("day", ["2026-02-27", "2026-03-02"], ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]),
        (
            "hour",
            ["2026-02-28T23:00Z", "2026-03-01T01:00Z"],
            ["2026-02-28T23:00Z", "2026-03-01T00:00Z", "2026-03-01T01:00Z"],
        ),
        ("minute", ["2026-02-28T23:59Z", "2026-03-01T00:00Z"], ["2026-02-28T23:59Z", "2026-03-01T00:00Z"]),
        ("month", ["2025-11", "2026-02"], ["2025-11", "2025-12", "2026-01", "2026-02"]),
        ("minute", ["2026-01-01T00:00Z", "2026-03-01T00:00Z"], ["2026-01-01T00:00Z", "2026-03-01T00:00Z"]),
        ("model", ["a", "c"], ["a", "c"]),
        ("day", [], []),
    ],
)
def test_buckets_without_calls_are_filled(name: str, times: list[str], expected: list[str]) -> None:
    rows = [UsageTotal({name: time}, 3, 0, {}, 7) for time in times]
    found = _with_gaps(name, rows)
    assert [row.group[name] for row in found] == expected
    assert [row.requests for row in found] == [3 if row.group[name] in times else 0 for row in found]


def test_a_unit_beyond_tokens_has_a_column_if_a_row_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    none = dict.fromkeys(UNIT_NAMES.values(), 0)
    rows = [
        UsageTotal({"model": "voice"}, 2, 0, none | {"characters": 1500}, 7),
        UsageTotal({"model": "ear"}, 1, 0, none | {"audio_seconds": 12}, 7),
    ]
    print_usage(["model"], rows, {}, has_bars=False)
    head, voice, ear, total = (line.split() for line in capsys.readouterr().out.splitlines() if "─" not in line)
    assert head[-4:] == ["characters", "audio", "seconds", "credits"]
    assert (voice[-3:-1], ear[-3:-1], total[-3:-1]) == (["1500", "0"], ["0", "12"], ["1500", "12"])


def test_the_share_of_cached_tokens_is_that_of_all_input_tokens() -> None:
    counts = dict.fromkeys(UNIT_NAMES.values(), 0) | {
        "input_tokens": 300,
        "cache_read_tokens": 600,
        "cache_write_tokens": 100,
    }
    none = UsageTotal({}, 1, 1, dict.fromkeys(UNIT_NAMES.values(), 0), 0)
    assert _figures([UsageTotal({}, 1, 0, counts, 0), none])[2:5] == ["1000", "600", "60.0%"]
    assert _figures([none])[2:5] == ["0", "0", "-"]
