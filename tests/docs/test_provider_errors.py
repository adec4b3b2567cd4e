"""Page docs/provider-errors.md: it is generated from the tables, and callers get the errors that it states."""

import msgspec
import pytest

from scripts.reference.provider_errors import PAGE, caller_of, render
from umg_grpc.base.errors import Failure
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.errors.error_classification import ErrorRow, error_rows
from umg_grpc.wire.errors.http_status import HTTP_STATUS, http_status

PLAIN = [
    (row, status)
    for row in error_rows()
    for status in row.statuses
    if not (row.sign or row.protocols or row.waits or row.page)
]
"""Rows that an error without words and codes satisfies."""


def test_the_page_equals_the_tables() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make errors` and look at the difference"


@pytest.mark.parametrize("protocol", TEXT_FORMATS)
@pytest.mark.parametrize(("row", "status"), PLAIN, ids=[f"{status}: {row.meaning}" for row, status in PLAIN])
def test_callers_get_the_error_of_the_page(row: ErrorRow, status: int, protocol: str) -> None:
    error = TEXT_FORMATS[protocol].decode_error(status, {}, msgspec.json.encode({"error": {"message": "no"}}))
    decided = next(each for each in error_rows() if each.reason == error.name and status in each.statuses)
    for face, codec in TEXT_FORMATS.items():
        own = http_status(error, face)
        stated = msgspec.json.decode(codec.encode_error(error, own))["error"]
        words = stated.get("status") or stated.get("code") or stated["type"]
        assert f"{own} `{words}`" == caller_of(decided, face, status)


@pytest.mark.parametrize("row", error_rows(), ids=lambda row: f"{row.statuses}: {row.meaning}")
def test_every_row_has_a_status_for_callers_vendors_and_a_source(row: ErrorRow) -> None:
    assert row.vendors
    assert row.source
    assert pb.ErrorReason.Value(f"ERROR_REASON_{row.reason}") in HTTP_STATUS
    patterns = (row.codes, row.words, row.own_words, row.overflow, row.waits, row.page, row.named is True)
    assert bool(row.sign) == any(patterns)


def test_errors_of_the_operators_money_are_not_repeated_at_the_same_channel() -> None:
    unpaid = [row for row in error_rows() if row.reason in ("UPSTREAM_UNPAID", "UPSTREAM_QUOTA_EXHAUSTED")]
    assert {row.failure for row in unpaid} == {Failure.DOWN}
    assert 402 in {status for row in unpaid for status in row.statuses}
