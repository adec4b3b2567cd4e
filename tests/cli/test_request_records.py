"""Tables of the command `umg requests show`."""

from umg_grpc.cli.request_records import ATTEMPTS, attempt_row
from umg_grpc.v1 import pb


def test_an_attempt_states_why_it_was_sent_in_another_format() -> None:
    choice = "responses (the model has no functions while it reasons in chat)"
    attempt = pb.RequestAttempt(channel="main", upstream_model="gpt-5.6-sol", protocol_choice=choice)
    row = dict(zip(ATTEMPTS, attempt_row(pb.RequestRecord(), attempt), strict=True))
    assert (row["channel"], row["outcome"], row["protocol"]) == ("main", "ok", choice)
