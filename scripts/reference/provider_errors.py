"""Page docs/provider-errors.md: statuses, codes and words of providers, and the errors of callers in each format.

`python -m scripts.reference.provider_errors` writes the page from the tables of `umg_grpc/knowledge/data` and the
codecs.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from scripts.reference.markdown import code, table
from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.errors.error_body_reading import Place
from umg_grpc.wire.errors.error_classification import ErrorRow, StatedCode, error_rows, overflow_wordings
from umg_grpc.wire.errors.http_status import http_status

PAGE = Path(__file__).parents[2] / "docs" / "provider-errors.md"
PARTS = {"inner": "another error", "text": "message", "code": "code", "type": "type", "hint": "further code"}
INTRODUCTION = """\
# Errors of providers and of their callers

`make errors` generates this page from the tables of the gateway and from its codecs, and
`tests/docs/test_provider_errors.py` fails when the page differs from them. It has the status and the words of a
provider's error, and the status and the words of its caller in each format.
[Kinds of failures](operations.md#kinds-of-failures) describes the attempts in between: the caller gets an error only if
no channel of the model answers.

An error of the request keeps its meaning and the provider's words, without keys, hosts and ids of the operator's
account: the client can shorten the conversation, leave out pictures, or give up. An error that only the operator can
correct is no error of the caller's key: 401 and 403 of a provider become 502, 402 is reported as credit of the
operator. 404 for a model that only a pattern of the channel matches becomes 404 with `model_not_found`.
"""
STATUSES = """\
## Statuses and codes

The first row that an error satisfies decides. *Failure* is the consequence for further attempts. Rows for a format
apply to its providers only.
"""
LONG = """\
## Requests that are too long

Callers of chat and responses get 400 with `context_length_exceeded`, by which clients compact; callers of messages
`invalid_request_error` and callers of native `INVALID_ARGUMENT`, each with 400 and the provider's words. The wordings
are searched in errors with the statuses 400, 413, 422 and 500, and in errors of streams without a code. Rows marked
*no* look like one, and are refusals of another kind.
"""
CODES = """\
## Codes of errors inside responses with status 200

Errors in streams, and responses with status 200 that state an error, are treated as the status of their code; without a
known code as 500.
"""
PLACES = """\
## Places of the cause

The places are read in this order, also inside of each other: `metadata.raw` of OpenRouter has the whole error of the
provider behind it as a text. Of a page of HTML only the title is passed on.
"""


def render() -> str:
    """Return the page."""
    wordings = [
        [
            "yes" if row.overflow else "no",
            row.vendors,
            row.example if row.pattern else f"code {code(row.codes)}",
            row.source,
        ]
        for row in overflow_wordings()
    ]
    codes = [[code(row.code), str(row.status), row.vendors, row.source] for row in read_rows("error_codes", StatedCode)]
    places = [[code(row.path), PARTS[row.part], row.vendors, row.source] for row in read_rows("error_places", Place)]
    sections = (
        INTRODUCTION,
        STATUSES,
        _table(
            ("provider", "meaning", "recognized by", "vendors", "failure", *TEXT_FORMATS, "source"),
            map(_row, error_rows()),
        ),
        LONG,
        _table(("too long", "vendors", "message", "source"), wordings),
        CODES,
        _table(("code", "as status", "vendors", "source"), codes),
        PLACES,
        _table(("member", "part", "vendors", "source"), places),
    )
    return "\n".join(sections).rstrip() + "\n"


def _table(head: Iterable[str], rows: Iterable[list[str]]) -> str:
    return table(tuple(head), [[cell.replace("|", "\\|") for cell in row] for row in rows]) + "\n"


def _row(row: ErrorRow) -> list[str]:
    statuses = ", ".join(map(str, row.statuses)) or "any other"
    if row.protocols:
        statuses += f" ({', '.join(row.protocols)})"
    callers = [_caller(row, face) for face in TEXT_FORMATS]
    return [statuses, row.meaning, row.sign, row.vendors, row.failure.value, *callers, row.source]


def _caller(row: ErrorRow, face: str) -> str:
    return ", ".join(dict.fromkeys(caller_of(row, face, status) for status in row.statuses or (500,)))


def caller_of(row: ErrorRow, face: str, status: int) -> str:
    """Return the status and the words that callers of a format get for the error of a row."""
    error = UmgError(pb.ErrorReason.Value(f"ERROR_REASON_{row.reason}"), "x", upstream_status=str(status))
    own = http_status(error, face)
    stated = msgspec.json.decode(TEXT_FORMATS[face].encode_error(error, own))["error"]
    words = stated.get("status") or stated.get("code") or stated["type"]
    return f"{own} {code(words)}"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")
