"""Model ids in the paths and bodies of native calls (`models/{model}:generateContent`)."""

from urllib.parse import quote

from umg_grpc.wire.core.json_decoding import invalid

GENERATE_VERB = ":generateContent"
MODEL_PREFIX = "models/"


def path_model(model: str, repeated: str, at: str = "model") -> str:
    """Return the model in the path, else in the body (`repeated`). Raise UmgError(INVALID_FIELD) if they differ."""
    if model and repeated not in ("", model):
        raise invalid(at, f"the path names {model[:64]!r}, the body {repeated[:64]!r}; leave it out of the body")
    return model or repeated


def call_path(model: str, action: str) -> str:
    """Return the path of a model's action with the id escaped, and slashes unless they lead to another path (`..`)."""
    name = model.removeprefix(MODEL_PREFIX)
    keep = "" if {".", "..", ""} & set(name.split("/")) else "/"
    return f"/models/{quote(name, safe=keep)}{action}"
