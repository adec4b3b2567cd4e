"""Strict fake providers of images, one module for each protocol. Each takes only requests that its provider's own SDK or
reference allows, and repeats the prompt inside its images.
"""

from tests.support.providers.images.ark import ArkImages
from tests.support.providers.images.dashscope import DashscopeImages
from tests.support.providers.images.native import NativeImages
from tests.support.providers.images.openai import OpenaiImages

FAKES = {
    "images": OpenaiImages,
    "native_images": NativeImages,
    "ark_images": ArkImages,
    "dashscope_images": DashscopeImages,
}
"""Protocol -> the provider that speaks it."""
