"""Gateway for the tests of the OpenAPI document: the simulated provider with all its models, without pauses."""

import yaml

from umg_grpc.config.built_in_config import BUILT_IN

_BUILT_IN = yaml.safe_load(BUILT_IN)
_SANDBOX = next(row for row in _BUILT_IN["channels"] if row["protocols"] == ["sandbox"])
_AWAY = {"kind": "slack", "url": "http://127.0.0.1:1/"}
CALLER = "127.0.0.1:1"
"""Address of a caller that gets notifications, at which nothing answers."""
CONFIG = yaml.safe_dump(
    {
        "channels": [_SANDBOX | {"pace": 0}],
        "alerts": {"receivers": {"ops": _AWAY}},
        "egress": {"allow": [CALLER], "http": True},
    }
)

MODELS = {
    "image": "famG-2.5-flash-image",
    "embed": "text-embedding-3-small",
    "rank": "rerank-v1",
    "speech": "tts-1",
    "transcription": "whisper-1",
    "moderat": "omni-moderation-latest",
    "vid": "vidA-2",
    "bodies": "vidA-2",
    "chat": "famG-2.5-flash",
    "generat": "famO-5",
    "messages": "famC-sonnet-4-5",
    "responses": "famO-5-mini",
}
"""Model by a word of the paths and components that take it."""
