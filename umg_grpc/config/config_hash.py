"""Hash of a config, by which an operator sees whether all replicas have the same one."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from hashlib import sha256

import msgspec
from google.protobuf.message import Message

from umg_grpc.config.config_values import Config

HASH_DIGITS = 12


def config_hash(config: Config) -> str:
    """Return a hash of all settings without secrets, the same in each process for the same settings."""
    found = sha256()
    for part in _parts(config):
        found.update(part.encode() + b"\0")
    return found.hexdigest()[:HASH_DIGITS]


def _parts(value: object) -> Iterator[str]:
    """Yield the names and values of a setting. Fields that `repr` hides are secrets and are omitted."""
    if is_dataclass(value):
        for field in fields(value):
            if field.repr:
                yield field.name
                yield from _parts(getattr(value, field.name))
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield name
            yield from _parts(getattr(value, name))
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield str(key)
            yield from _parts(value[key])
    elif isinstance(value, AbstractSet):
        yield from sorted(map(str, value))
    elif isinstance(value, (tuple, list)):
        yield str(len(value))
        for each in value:
            yield from _parts(each)
    elif isinstance(value, Message):
        yield value.SerializeToString(deterministic=True).hex()
    else:
        yield repr(value)
