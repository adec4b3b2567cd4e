"""Log probabilities of tokens in a provider's response, as the chat and the responses format have them."""

from msgspec import Struct

from umg_grpc.v1 import pb


class Logprob(Struct):
    """Element of `logprobs`: one token with its log probability, its bytes and its alternatives."""

    token: str | None = None
    logprob: float | None = None
    bytes: list[int] | None = None
    top_logprobs: "list[Logprob] | None" = None


def decode_logprob(entry: Logprob) -> pb.TokenLogprob:
    """Return one token's log probability (0 if the provider left it out), bytes and alternatives as a message."""
    decoded = pb.TokenLogprob(token=entry.token or "", logprob=0 if entry.logprob is None else entry.logprob)
    if entry.bytes is not None:
        decoded.raw_bytes = bytes(entry.bytes)
    decoded.alternatives.extend(decode_logprob(other) for other in entry.top_logprobs or ())
    return decoded
