"""What callers say that models in this process cannot be told."""

from collections.abc import Mapping

from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report
from umg_grpc.wire.unary import Request, Response, UnaryFormat


def unsaid(source: pb.SourceDocument, formats: Mapping[str, UnaryFormat[Request, Response]]) -> Report:
    """A report of what only the source document holds. Who the end user is need not be reported: nobody else is told
    anything.
    """
    report = Report()
    for name in source.uncarried_fields:
        report.drop(name)
    if source.unknown_field_count and source.format in formats:
        found = formats[source.format].unknown_fields(source.body)
        report.unknown, report.first_unknown = max(found.count, source.unknown_field_count), found.first
    return report
