"""JSON of administration: the messages of `umg.v1.AdminService` with their own field names."""

from umg_grpc.v1 import pb

_PREFIX = "KEY_OPERATION_"

OPERATION_NAMES = {value: name.removeprefix(_PREFIX).lower() for name, value in pb.KeyOperation.items() if value != 0}
"""Operation of a key -> name in JSON, on the command line and in the database."""
OPERATION_VALUES = {name: value for value, name in OPERATION_NAMES.items()}
