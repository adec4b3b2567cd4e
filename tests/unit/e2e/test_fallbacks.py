"""Fallbacks by name: the model that answers in place of another one, by the cause of its failure."""

from pathlib import Path

import pytest

from tests.support.providers.scripted import Script, status, succeed
from tests.unit.e2e.test_survival import world

TOO_LONG = status(400, {"code": "context_length_exceeded", "message": "maximum context length is 8192 tokens"})
REFUSED = status(400, {"code": "content_filter", "message": "The response was filtered"})
UNPAID = status(429, {"code": "insufficient_quota", "message": "You exceeded your current quota"})
DOWN = status(500)
CAUSES: dict[str, Script] = {"context": TOO_LONG, "content": REFUSED, "unavailable": DOWN, "quota": UNPAID}
ONE_ATTEMPT = "retries: {repeats: 0}\n"


def of_models(*models: str) -> dict[str, str]:
    """Return the config lines of a channel for each model, of the same name."""
    return {model: f"models: [{model}]\nprotocols: [chat]" for model in models}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("cause", CAUSES)
async def test_a_model_answers_in_place_of_one_that_failed(tmp_path: Path, cause: str, stream: bool) -> None:
    models = {"m": [CAUSES[cause]], "other": [succeed]}
    rest = f"{ONE_ATTEMPT}fallbacks: {{m: [other]}}\n"
    async with world(tmp_path, models, of_models(*models), rest) as here:
        got = await here.generate(stream=stream)
        assert (got.status, here.counts) == (200, {"m": 1, "other": 1})
        assert got.route.startswith(f"fallback=other; cause={cause}; channel=other; attempts=2; reason=m: "), got.route
        assert '"model":"other"' in got.text.replace(" ", "") if stream else got.body["model"] == "other"
