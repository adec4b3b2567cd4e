"""Numbers, amounts and times of the console, and the ends of budgets."""

from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from http_facade.console import figure_texts, form_values
from http_facade.console.budget_charts import left_chart
from http_facade.console.budget_meters import BudgetMeter, key_meters
from http_facade.console.call_charts import (
    COLOURED_GROUPS,
    calls_chart,
    first_byte_chart,
    group_inks,
    spend_chart,
    summary_charts,
)
from http_facade.console.pages.request_pages import attempt_bars, replay_path
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

NOW = datetime(2026, 11, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "0"), (1, "0.000001"), (12_100, "0.0121"), (999_999, "0.999999"), (1_000_000, "1.00"), (1_204_100_000, "1,204.10")],
)  # fmt: skip
def test_an_amount_is_never_nothing_for_something(micros: int, text: str) -> None:
    assert figure_texts.amount_text(micros) == text


def test_shares_and_changes() -> None:
    shares = [figure_texts.share_text(*each) for each in ((0, 5), (1, 500), (42, 10_000), (31, 100), (1, 0))]
    assert shares == ["0 %", "0.20 %", "0.42 %", "31 %", "–"]
    assert [figure_texts.change_text(*each) for each in ((112, 100), (50, 100), (5, 0))] == ["+12 %", "-50 %", ""]


def test_a_rate_has_two_digits_below_ten() -> None:
    assert [figure_texts.rate_text(*each) for each in ((1, 1440), (30, 4), (12_040, 10), (0, 60))] == [
        "0.00069",
        "7.5",
        "1,204",
        "0",
    ]


def test_a_time_is_relative_in_both_directions() -> None:
    stamp = Timestamp()
    stamp.FromDatetime(datetime(2026, 11, 15, 23, 58, tzinfo=UTC))
    assert figure_texts.relative_time(stamp, NOW) == "2 min ago"
    stamp.FromDatetime(datetime(2026, 11, 19, tzinfo=UTC))
    assert figure_texts.relative_time(stamp, NOW) == "in 3 d"


def test_a_budget_that_ends_before_its_period_names_the_day() -> None:
    key = pb.Key(spent_micro_credits=75_000_000, reserved_micro_credits=5_000_000)
    key.settings.budget_micro_credits = 100_000_000
    key.settings.budget_period = pb.BUDGET_PERIOD_MONTH
    [meter] = key_meters(key, NOW)
    assert (meter.left, meter.percent, meter.state, meter.daily) == (20_000_000, 80, "warn", 5_000_000)
    assert meter.ends == datetime(2026, 11, 21, tzinfo=UTC)  # 5 credits a day
    key.spent_micro_credits = 40_000_000
    [meter] = key_meters(key, NOW)
    assert (meter.ends, meter.state) == (None, "good")


def test_a_chart_of_spend_colours_five_groups_and_adds_the_others_up() -> None:
    summary = pb.GetCallSummaryResponse(bucket=pb.USAGE_BUCKET_HOUR)
    summary.total.request_count, summary.total.micro_credits = 8, 36_000_000
    for hour in (22, 23):
        bucket = summary.buckets.add(request_count=4, failed_request_count=1, micro_credits=18_000_000)
        bucket.start_time.FromDatetime(datetime(2026, 11, 15, hour, tzinfo=UTC))
        bucket.end_time.FromDatetime(datetime(2026, 11, 15, hour, tzinfo=UTC) + timedelta(hours=1))
    for place in range(6):
        summary.groups.add(value=f"m{place}", micro_credits=[3_000_000, 2_000_000])
    spend = spend_chart(summary, [each.value for each in summary.groups])
    assert spend is not None
    assert [each.text for each in spend.columns] == [*(f"m{place}" for place in range(5)), ""]
    assert {each.ink for each in spend.columns} == {*(f"group{number}" for number in range(1, 6)), "other"}
    assert spend.columns[-1].ink == "other"
    assert spend.columns[-1].cells == ["3.00", "8.00"]
    assert first_byte_chart(summary) is None  # no call has a first byte
    table = summary_charts(
        summary, (calls_chart(summary), spend, None), "/console/requests", NOW - timedelta(minutes=1)
    )
    assert table is not None
    assert [(bucket.label, bucket.is_open, cells[:3]) for bucket, cells in table.rows] == [
        ("15 Nov 22:00", False, ("4", "1", "3.00")),
        ("15 Nov 23:00", True, ("4", "1", "2.00")),
    ]
    assert [number for number, _ in table.columns] == [0, 0, *(1,) * 6]
    assert table.end == int(NOW.timestamp())


def test_groups_of_a_page_have_different_colours_in_any_order() -> None:
    models = [f"model-{number}" for number in range(60)]
    alone = {model: group_inks([model])[model] for model in models}
    assert len(set(alone.values())) == COLOURED_GROUPS
    for first in range(0, 60, COLOURED_GROUPS):
        shown = models[first : first + COLOURED_GROUPS]
        inks = group_inks(shown)
        assert len(set(inks.values())) == COLOURED_GROUPS
        assert group_inks(shown[::-1]) == inks  # by rank they change in each span
        for model in shown:  # it has its own colour, or another group has it whose own it is, too
            assert [each for each in shown if inks[each] == alone[model] == alone[each]]


def test_a_chart_of_a_budget_has_its_rest_and_its_end() -> None:
    noon = datetime(2026, 11, 16, 12, tzinfo=UTC)
    meter = BudgetMeter("day", is_soft=False, limit=48_000_000, spent=24_000_000, reserved=1_000_000, ends=None)
    soft = BudgetMeter("day", is_soft=True, limit=40_000_000, spent=24_000_000, reserved=0, ends=None)
    table = left_chart(meter, soft, [2_000_000] * 12 + [0] * 12, noon)
    assert [column.ink for _, column in table.columns] == ["left", "projected", "soft", "hard"]
    rows = [(bucket.is_open, *cells) for bucket, cells in table.rows]
    assert rows[0] == (False, "46.00", "–", "8.00", "0")
    assert rows[12] == (True, "23.00", "23.00", "8.00", "0")
    assert rows[13][1:3] == ("–", "19.00")  # 2 credits an hour
    assert (len(rows), rows[-1][1:3]) == (24, ("–", "0"))


def test_amounts_of_forms_are_exact() -> None:
    assert form_values.micro_credits({"budget": " 1,234.567891 "}, "budget") == 1_234_567_891
    assert form_values.micro_credits({"budget": ""}, "budget") is None
    for given in ("x", "-1", "nan", "1e30", "0.0000001", "12,5", "1,2345", "1,000,5"):
        with pytest.raises(UmgError, match="`budget` must be"):
            form_values.micro_credits({"budget": given}, "budget")
    with pytest.raises(UmgError, match="whole number"):
        form_values.number({"rpm": "1.5"}, "rpm")
    assert form_values.number({"rpm": "1,000"}, "rpm") == 1000
    for given in ("1,5", "2147483648", "-99999999999"):
        with pytest.raises(UmgError, match="`rpm` must be a whole number"):
            form_values.number({"rpm": given}, "rpm")


def test_a_replay_opens_the_kind_and_the_model_of_the_call() -> None:
    embedded = pb.RequestRecord(operation=pb.MODEL_OPERATION_EMBED, model="b", requested_model="a/b&c")
    assert replay_path(embedded) == "/playground?kind=embed&model=a%2Fb%26c"
    assert replay_path(pb.RequestRecord(operation=pb.MODEL_OPERATION_SPEAK, model="b")) == ""


def test_attempts_at_the_same_time_have_rows_of_their_own() -> None:
    times = [(0, 10), (5, 30), (12, 20), (20, 25), (40, 50)]
    record = pb.RequestRecord(start_time=Timestamp(), duration=Duration(nanos=50_000))
    for begin, end in times:
        made = record.attempts.add(channel=str(begin))
        made.start_time.FromMicroseconds(begin)
        made.duration.FromMicroseconds(end - begin)
    bars = attempt_bars(record, "/channels/{}".format)
    assert [bar.row for bar in bars] == [0, 1, 0, 0, 0]
    assert bars[-1].channel_path == "/channels/40"
