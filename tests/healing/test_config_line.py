"""The line of the log about a learned restriction is a valid config."""

from umg_grpc.config.channels import QuirksEntry
from umg_grpc.knowledge.quirks import Quirks
from umg_grpc.service.resilience.learned_quirks import LearnedQuirk


def test_a_refusal_beside_reasoning_is_stated_by_a_key_of_the_config() -> None:
    quirks = Quirks(rejects_beside_reasoning=frozenset({"top_p", "temperature"}))
    learned = LearnedQuirk(
        channel="main", model="m", protocol="chat", member="temperature", quirks=quirks, learn_time=0
    )
    assert learned.line() == 'quirks: {"rejects_beside_reasoning":["temperature","top_p"]}'
    assert learned.stated().keys() <= set(QuirksEntry.__struct_fields__)
