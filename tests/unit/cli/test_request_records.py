"""Tables of the command `umg requests show`."""

from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.cli.request_record_tables import ATTEMPT_COLUMNS, attempt_row, charged_text
from umg_grpc.v1 import pb


def test_an_attempt_states_why_it_was_sent_in_another_format() -> None:
    choice = "responses (the model has no functions while it reasons in chat)"
    attempt = pb.RequestAttempt(channel="main", upstream_model="gpt-5.6-sol", protocol_choice=choice)
    titles = [column.title for column in ATTEMPT_COLUMNS]
    row = dict(zip(titles, attempt_row(Timestamp(), attempt), strict=True))
    assert (row["channel"], row["outcome"], row["protocol"]) == ("main", "ok", choice)


def test_the_prices_of_a_call_are_shown_with_their_conditions() -> None:
    prices = [
        pb.Price(unit=pb.BILLABLE_UNIT_INPUT_TOKEN, micro_credits_per_million=2_500_000),
        pb.Price(unit=pb.BILLABLE_UNIT_CACHE_READ_TOKEN, micro_credits_per_million=250_000),
        pb.Price(unit=pb.BILLABLE_UNIT_IMAGE, micro_credits_per_million=40_000_000_000, size="2k", quality="high"),
    ]
    conditions = ["above 272000 input tokens", "flex tier"]
    assert charged_text(pb.RequestRecord(prices=prices, price_conditions=conditions)) == (
        "input 2.5, cache read 0.25, image 2k high 0.04 (above 272000 input tokens; flex tier)"
    )
    assert charged_text(pb.RequestRecord(prices=prices[:1])) == "input 2.5"
