"""Features without a trace in the request that is sent, which is equal to that without the feature: each is named.

The test only compares bodies, so that no wrong expectation of the matrix hides a loss.
"""

import json

import pytest

from tests.pairs.vendors.features import BASES, FACES, TEXT_FEATURES, Feature
from tests.pairs.vendors.gateway import Model, Sent, UmgError, send
from tests.pairs.vendors.runner import STREAMED, models

TOOLS = "tools"
NO_LOSS = {"plain", "stream", "store"}
"""Features without a trace in a body: a stream is requested by the path in native, `store: false` is the absence."""
OFF = {"effort-none", "thinking-off", "thinking-adaptive"}
"""Features that change nothing at a model that does not reason, or always does so as it decides."""


def sent_for(model: Model, face: str, feature: Feature | None) -> Sent | None:
    """Return the request to the vendor; None if the gateway refuses it."""
    body = BASES[face] | (feature.requests[face] if feature is not None else {})
    try:
        return send(model, face, body, stream=feature is not None and feature.id in STREAMED)
    except UmgError:
        return None


@pytest.mark.parametrize("model", models(), ids=lambda model: f"{model.vendor}:{model.id}")
def test_a_feature_without_a_trace_in_the_body_is_named(model: Model) -> None:
    lost = list[str]()
    for face in FACES:
        plain = [sent_for(model, face, each) for each in (None, TEXT_FEATURES[TOOLS])]
        bodies = [json.loads(each.body) for each in plain if each is not None]
        for feature in TEXT_FEATURES.values():
            if face not in feature.requests or feature.id in {TOOLS, *NO_LOSS, *OFF}:
                continue
            if BASES[face] | feature.requests[face] == BASES[face]:
                continue
            sent = sent_for(model, face, feature)
            if sent is not None and not (sent.dropped or sent.stops) and json.loads(sent.body) in bodies:
                lost.append(f"{face}|{feature.id}")
    assert lost == []
