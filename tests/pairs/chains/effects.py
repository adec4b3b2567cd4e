"""Effects of answers for callers, and the request of all calls."""

from tests.pairs.chains.habits import Effect
from tests.support.callers.format_free_answers import canonical_answer
from tests.support.callers.requests import Request
from umg_grpc.v1 import pb

REQUEST = Request("Hi", tools=("get_weather", "get_time"))
NO_HEALING = "    heal: false\n"
"""Config line of a channel whose refusals are not repeated without a parameter."""


def seen(response: pb.GenerateResponse, effect: Effect) -> Effect:
    """Return the effect of a response, without the usage if `effect` has none."""
    answer = canonical_answer(response)
    usage = (answer.usage[0], answer.usage[2]) if effect.usage is not None else None
    return Effect(answer.text, answer.reasoning, list(answer.calls), answer.finish, usage)
