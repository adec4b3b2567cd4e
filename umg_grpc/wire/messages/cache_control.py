"""Prompt cache marks (`cache_control`) of blocks and tools, in both directions."""

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, invalid
from umg_grpc.wire.messages import schema

TTL_VALUES = {"5m": pb.CACHE_TTL_FIVE_MINUTES, "1h": pb.CACHE_TTL_ONE_HOUR}
TTL_NAMES = {value: name for name, value in TTL_VALUES.items()}


def decode_cache(mark: schema.CacheControl, target: pb.CacheControl, at: str) -> None:
    """Decode `cache_control`. Raise UmgError(INVALID_FIELD) for a lifetime (`ttl`) that contradicts the type."""
    if mark.type == "persistent" and mark.ttl == "5m":
        raise invalid(f"{at}.ttl", "`persistent` is kept for an hour; leave the ttl out")
    target.SetInParent()
    if mark.type == "persistent" or mark.ttl:
        target.ttl = TTL_VALUES[mark.ttl or "1h"]


def decode_mark(part: pb.Part, block: schema.Marked, at: str) -> None:
    """Decode a block's mark, if any. Raise UmgError(INVALID_FIELD) for a lifetime that contradicts the type."""
    if block.cache_control is not None:
        decode_cache(block.cache_control, part.cache_control, f"{at}.cache_control")


def encode_cache(mark: pb.CacheControl) -> JsonObject:
    """Return the value of `cache_control` for a canonical prompt cache mark."""
    return {"type": "ephemeral", "ttl": TTL_NAMES[mark.ttl]} if mark.ttl else {"type": "ephemeral"}
