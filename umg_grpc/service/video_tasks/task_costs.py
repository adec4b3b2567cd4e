"""Cost of a video task: its maximum before the submission, and the actual cost after its success."""

from umg_grpc.knowledge.conditional_price_rates import Terms, prices_at
from umg_grpc.knowledge.media_model_rules import default_seconds
from umg_grpc.knowledge.price_calculation import (
    INPUT_TOKEN,
    OUTPUT_TOKEN,
    PRICED_UNITS,
    REQUEST_UNIT,
    VIDEO_SECOND,
    VIDEO_UNIT,
    Prices,
    Variant,
    price_list,
    video_quantities,
)
from umg_grpc.v1 import pb

MAX_SECONDS = 60
"""Seconds of video counted for a request without a length: the longest that a request may state."""
USUAL_SECONDS = 5
"""Seconds of a video charged if neither the request nor the provider states its length, so that it is not free."""
AUDIO_VARIANT, MOTION_VARIANT = "audio", "motion"
"""Qualities in a price that apply to a video with sound, and to motion control, with any sound."""
ORIENTATION_MEMBER = "character_orientation"
"""Member of a submission for motion control alone."""
DEFAULT_FRAMES_PER_SECOND = 24
TOKENS_PER_SECOND = 1920 * 1080 * 30 // 1024
"""Tokens of a second at 1080p with 30 frames, for providers that bill video by tokens: pixels of all frames / 1024."""


def stored_prices(prices: Prices, seconds: float) -> bytes:
    """Return the prices of a channel's model in the form that is stored with a task; b"" without prices. The cost at
    the end of the task is computed from them. `seconds`: Unix time of the submission, which selects the rates.
    """
    stored, (submitted, _) = pb.Model(), prices_at(prices, Terms(seconds=seconds))
    for item, micro_credits in submitted.micro_credits.items():
        unit, size, quality = item if isinstance(item, Variant) else (item, "", "")
        stored.prices.add(unit=unit, size=size, quality=quality, micro_credits_per_million=micro_credits)
    return stored.SerializeToString()


def max_cost(parameters: pb.VideoParameters, prices: Prices, model: str = "") -> int:
    """Return the maximum cost in micro-credits of the requested videos. `model`: provider's id, for its length."""
    videos = parameters.sample_count or 1
    default = None if _has_length(parameters) else default_seconds(model)
    seconds = videos * (default or _seconds(parameters))
    total = prices.highest(REQUEST_UNIT) + seconds * TOKENS_PER_SECOND * prices.highest(OUTPUT_TOKEN, INPUT_TOKEN)
    for item, count in video_quantities(videos, seconds, *_variant(parameters)).items():
        total += count * prices.price_of(item) if item != REQUEST_UNIT else 0
    return -(-total // PRICED_UNITS)


def actual_cost(stored: bytes, parameters: pb.VideoParameters, usage: pb.VideoUsage) -> int:
    """Return the cost in micro-credits of a task that has succeeded. `stored`: result of `stored_prices` at its
    submission. Billed seconds of input video cost as much as seconds of output. If only tokens have a price and the
    provider reports none, they are estimated.
    """
    prices = price_list(pb.Model.FromString(stored).prices)
    billed = usage.output_seconds + usage.input_seconds
    quantities = dict(video_quantities(usage.video_count, billed, *_variant(parameters)))
    if usage.total_tokens:
        quantities[OUTPUT_TOKEN] = usage.total_tokens
    elif (
        not {VIDEO_UNIT, VIDEO_SECOND} & prices.micro_credits.keys()
    ):  # the provider reports no tokens, and only they cost
        seconds = usage.output_seconds or usage.video_count * _seconds(parameters)
        quantities[OUTPUT_TOKEN] = seconds * TOKENS_PER_SECOND
    return prices.cost(quantities)


def complete_usage(
    usage: pb.VideoUsage | None, parameters: pb.VideoParameters, videos: int, model: str = ""
) -> pb.VideoUsage:
    """Return the usage that the provider reported (or none), completed by the number and the length of the videos. The
    length is the requested one or else the default of the provider's `model`.
    """
    found = pb.VideoUsage()
    if usage is not None:
        found.CopyFrom(usage)
    found.video_count = found.video_count or max(1, videos)
    if not found.output_seconds:
        default = default_seconds(model) or USUAL_SECONDS
        found.output_seconds = found.video_count * (_seconds(parameters) if _has_length(parameters) else default)
    return found


def _variant(parameters: pb.VideoParameters) -> tuple[str, str]:
    kind = (
        MOTION_VARIANT
        if ORIENTATION_MEMBER in parameters.extra_json
        else AUDIO_VARIANT
        if parameters.generate_audio
        else ""
    )
    quality = "+".join(part for part in (parameters.mode, kind) if part)
    return parameters.resolution or parameters.size, quality


def _has_length(parameters: pb.VideoParameters) -> bool:
    return parameters.HasField("frames") or parameters.HasField("duration_seconds")


def _seconds(parameters: pb.VideoParameters) -> int:
    if parameters.HasField("frames"):
        return -(-parameters.frames // (parameters.frames_per_second or DEFAULT_FRAMES_PER_SECOND))
    return parameters.duration_seconds or MAX_SECONDS
