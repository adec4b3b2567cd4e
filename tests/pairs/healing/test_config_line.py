"""The line of the log about a learned restriction is a valid config."""

from umg_grpc.config.channel_quirks import QuirksEntry
from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.service.resilience.learned_quirks import LearnedQuirk
from umg_grpc.wire.errors.rejection_reading import Wording


def test_a_refusal_beside_reasoning_is_stated_by_a_key_of_the_config() -> None:
    quirks = Quirks(rejects_beside_reasoning=frozenset({"top_p", "temperature"}))
    learned = LearnedQuirk(
        channel="main", model="m", protocol="chat", member="temperature", quirks=quirks, learn_time=0
    )
    assert learned.line() == 'quirks: {"rejects_beside_reasoning":["temperature","top_p"]}'
    assert learned.stated().keys() <= set(QuirksEntry.__struct_fields__)


def test_each_restriction_that_a_wording_states_is_a_key_of_the_config() -> None:
    stated = [row.quirks for row in read_rows("refusal_wordings", Wording) if row.quirks is not None]
    learned = [
        LearnedQuirk(channel="main", model="m", protocol="chat", member="", quirks=quirks, learn_time=0)
        for quirks in stated
    ]
    assert learned
    assert {name for each in learned for name in each.stated()} <= set(QuirksEntry.__struct_fields__)
