"""Steps of the pipeline in their order, each with the steps that must run before it: checked for each pipeline."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Step:
    """Step of the pipeline. `needs`: steps that must run before it."""

    name: str
    needs: tuple["Step", ...] = ()


PIPELINE_STEPS = (
    DECODE := Step("decode"),  # the caller's body to the canonical request
    VALIDATE := Step("validate"),  # by the rules of the schema
    RESOLVE := Step("resolve model", needs=(VALIDATE,)),  # which the key may use for the operation
    REPEAT := Step("repeat", needs=(RESOLVE,)),  # finds the task that an earlier call has submitted
    PRICE := Step("price", needs=(RESOLVE,)),  # a key with a budget calls only models and channels with a price
    RULES := Step("rules", needs=(PRICE,)),  # of the model's family
    LIMITS := Step("limits", needs=(PRICE,)),  # of the key and the model
    GUARD_REQUEST := Step("request guards", needs=(LIMITS,)),  # before any part of the request is stored or sent
    CONVERSATION := Step("conversation", needs=(LIMITS,)),  # earlier messages that the request continues
    BUDGET := Step("budget", needs=(LIMITS,)),  # reserves the maximum cost, with the earlier messages
    INPUTS := Step("inputs", needs=(BUDGET,)),  # number and form of the inputs, by the config and the model
    CACHE := Step("cache", needs=(BUDGET,)),
    PLAN := Step("plan", needs=(BUDGET,)),  # the order of the channels, and the encoder of the request
    ATTEMPTS := Step("attempts", needs=(PLAN,)),
    GUARD_STREAM := Step("stream guards", needs=(ATTEMPTS,)),  # window by window, before `complete` stores a stream
    COMPLETE := Step("complete", needs=(ATTEMPTS,)),  # ids, names and form of the response, and the usage of a text
    GUARD_RESPONSE := Step("response guards", needs=(COMPLETE,)),  # of a whole one
    SETTLE := Step("settle", needs=(ATTEMPTS,)),  # other usage, by which the call is charged; storage of a text
)
"""All steps in their order. An operation takes some of them. The steps up to `cache` run one after the other. The later
ones enclose each other: a cached response ends the call, and an attempt ends with the completion of its response, whose
failure is a failure of the attempt. The submission of a video has no response to complete: its steps all run one after
the other.
"""
READING_STEPS = frozenset(PIPELINE_STEPS[: PIPELINE_STEPS.index(PRICE)])
"""Steps of a call that only reads a request, for example to count its tokens; they refuse and charge nothing."""


def in_order(taken: Collection[Step]) -> tuple[Step, ...]:
    """Return an operation's steps in order. Raise ValueError for an unknown step, and if a needed step is missing."""
    for step in taken:
        if step not in PIPELINE_STEPS:
            raise ValueError(f"the step `{step.name}` is not in the list of steps")
        for needed in step.needs:
            if needed not in taken:
                raise ValueError(f"the step `{step.name}` needs the step `{needed.name}` before it")
    return tuple(step for step in PIPELINE_STEPS if step in taken)
