"""Validation of messages by the rules in the .proto files."""

from google.protobuf.message import Message
from protovalidate import Validator, Violation

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

MISSING = frozenset({"required", "string.min_len", "bytes.min_len", "repeated.min_items"})

_validator = Validator()


def check(message: Message) -> None:
    """Check a message by the rules in the .proto files. Raise UmgError for the first broken rule, with the canonical
    path of the field.
    """
    violations = _validator.collect_violations(message, fail_fast=True)
    if violations:
        raise _error(violations[0], message)


def _error(violation: Violation, message: Message) -> UmgError:
    proto = violation.proto
    rule_id, text = proto.rule_id, proto.message
    path = ""
    for element in proto.field.elements if proto.field is not None else ():
        path += f".{element.field_name}" if path else element.field_name
        subscript = element.subscript
        if subscript is not None:
            path += f"[{subscript.value}]"
    if not path and (named := rule_id.partition(".")[0]) in message.DESCRIPTOR.fields_by_name:
        reason = pb.ERROR_REASON_MISSING_FIELD if rule_id.endswith(".required") else pb.ERROR_REASON_INVALID_FIELD
        return UmgError(reason, text, field=named)
    reason = pb.ERROR_REASON_MISSING_FIELD if rule_id in MISSING else pb.ERROR_REASON_INVALID_FIELD
    # a rule of the whole message has no path: its id begins with a field, or its text names the fields
    return UmgError(reason, f"{path}: {text}", field=path) if path else UmgError(reason, text)
