"""Numbers, amounts and times of the console, and the ends of budgets."""

from datetime import UTC, datetime

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from http_facade.console import figure_texts, form_values
from http_facade.console.budget_meters import key_meters
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
    assert (meter.left, meter.percent, meter.state) == (20_000_000, 80, "warn")
    assert meter.ends == datetime(2026, 11, 21, tzinfo=UTC)  # 5 credits a day
    key.spent_micro_credits = 40_000_000
    [meter] = key_meters(key, NOW)
    assert (meter.ends, meter.state) == (None, "good")


def test_amounts_of_forms_are_exact() -> None:
    assert form_values.micro_credits({"budget": " 1,234.567891 "}, "budget") == 1_234_567_891
    assert form_values.micro_credits({"budget": ""}, "budget") is None
    for given in ("x", "-1", "nan", "1e30", "0.0000001"):
        with pytest.raises(UmgError, match="`budget` must be"):
            form_values.micro_credits({"budget": given}, "budget")
    with pytest.raises(UmgError, match="whole number"):
        form_values.number({"rpm": "1.5"}, "rpm")
