"""Header of dropped fields: the header of a gateway behind this one is part of the own one."""

from dataclasses import dataclass, field

import pytest

from umg_grpc.wire.dropped_fields_report import Report


@dataclass(frozen=True)
class Stated:
    id: str
    header: str
    expected: str
    own: dict[str, str | None] = field(default_factory=dict)
    """Changes of this gateway itself."""


CASES = [
    Stated("names, values and counts", "seed, temperature=1, strict x9", "seed, temperature=1, strict x9"),
    Stated("a value of several words", "stop=by the gateway", "stop=by the gateway"),
    Stated("a change of both", "seed, top_k", "top_k=64, seed", {"top_k": "64"}),
    Stated("the number of entries that did not fit", "seed, +2", "seed"),
    Stated("other text", "a name with spaces, \x00, é, x=\r\nset-cookie: a", ""),
    Stated("nothing", "", ""),
    Stated("more than a header has", ", ".join(f"field_{number}" for number in range(400)), "field_0"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_header_of_a_gateway_behind_is_part_of_the_own_one(case: Stated) -> None:
    report = Report()
    for name, instead in case.own.items():
        report.drop(name, instead)
    report.add_header(case.header)
    written = report.header()
    assert written == case.expected or (len(case.header) > 1024 and written.startswith(case.expected))
    assert len(written) <= 1024
