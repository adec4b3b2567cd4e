"""Simulated videos: playable files of the requested size, length and rate, visible inputs, states by the time alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO

import av
import pytest
from PIL import Image, ImageStat

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask, Submission
from umg_sandbox.video_channel import SandboxVideo
from umg_sandbox.video_encoding import encode_variant, encode_video
from umg_sandbox.video_task_parameters import VideoPlan, decode_plan, encode_plan, plan_of

PROMPT = "A watercolor fox reads a newspaper"
SMALL = "192x128"
RED, BLUE = (200, 30, 30), (40, 60, 210)
Color = tuple[int, int, int]


def submission(
    model: str = "vidC2.5-t2v-preview",
    *,
    media: Sequence[pb.VideoMedia] = (),
    source: ProviderTask | None = None,
    **parameters: object,
) -> Submission:
    wanted = pb.VideoParameters(**{"prompt": PROMPT, "duration_seconds": 1, **parameters}, media=media)  # type: ignore[arg-type]
    request = pb.CreateVideoTaskRequest(model=model, parameters=wanted)
    return Submission(task_id="task_1", model=model, request=request, source=source)


def plan(model: str = "vidC2.5-t2v-preview", *, media: Sequence[pb.VideoMedia] = (), **parameters: object) -> VideoPlan:
    return plan_of(submission(model, media=media, **parameters), 0.0)


def png(color: Color, size: tuple[int, int] = (80, 60)) -> bytes:
    file = BytesIO()
    Image.new("RGB", size, color).save(file, "PNG")
    return file.getvalue()


def image(color: Color, role: "pb.VideoMediaRole.ValueType" = 0, size: tuple[int, int] = (80, 60)) -> pb.VideoMedia:
    return pb.VideoMedia(kind=pb.VIDEO_MEDIA_KIND_IMAGE, role=role, data=png(color, size))


@dataclass(frozen=True)
class Facts:
    size: tuple[int, int]
    seconds: float
    rate: float
    frames: list[Image.Image]
    sound_seconds: float


def facts(data: bytes) -> Facts:
    with av.open(BytesIO(data)) as file:
        video = file.streams.video[0]
        assert video.codec_context.name == "h264"
        size, rate = (video.width, video.height), float(video.average_rate or 0)
        seconds = float((video.duration or 0) * (video.time_base or 0))
        sound = sum(frame.samples / frame.sample_rate for frame in file.decode(audio=0)) if file.streams.audio else 0
        file.seek(0)
        frames = [frame.to_image() for frame in file.decode(video=0)]
    return Facts(size, seconds, rate, frames, sound)


def upper_color(frame: Image.Image) -> tuple[int, ...]:
    """Return the mean colour of the upper half, which has no card."""
    return tuple(round(value) for value in ImageStat.Stat(frame.crop((0, 0, frame.width, frame.height // 2))).mean)


def is_near(color: tuple[int, ...], other: Color) -> bool:
    return all(abs(one - two) < 40 for one, two in zip(color, other, strict=True))


@dataclass(frozen=True)
class Size:
    id: str
    parameters: dict[str, object]
    size: tuple[int, int]
    media: Sequence[pb.VideoMedia] = field(default=())


SIZES = [
    Size("a size", {"size": "720x1280"}, (720, 1280)),
    Size("a size with an asterisk", {"size": "1280*720"}, (1280, 720)),
    Size("a square", {"size": "1024x1024", "resolution": "720p"}, (1024, 1024)),
    Size("an odd size", {"size": "641x361"}, (640, 360)),
    Size("nothing", {}, (1280, 720)),
    Size("480p", {"resolution": "480p", "aspect_ratio": "16:9"}, (854, 480)),
    Size("1080p upright", {"resolution": "1080p", "aspect_ratio": "9:16"}, (1080, 1920)),
    Size("768P", {"resolution": "768P", "aspect_ratio": "21:9"}, (1792, 768)),
    Size("2K", {"resolution": "2K", "aspect_ratio": "16:9"}, (2048, 1152)),
    Size("the mode pro", {"mode": "pro", "aspect_ratio": "1:1"}, (1080, 1080)),
    Size("adaptive", {"resolution": "480p", "aspect_ratio": "adaptive"}, (640, 480), [image(RED, 1)]),
    Size("adaptive without an image", {"resolution": "480p", "aspect_ratio": "adaptive"}, (854, 480)),
    Size("the ratio of the only image", {"resolution": "480p"}, (480, 960), [image(RED, 0, (50, 100))]),
]


@pytest.mark.parametrize("case", SIZES, ids=lambda case: case.id)
def test_every_spelling_of_a_size_has_its_pixels(case: Size) -> None:
    found = plan(media=case.media, **case.parameters)
    assert (found.width, found.height) == case.size


@pytest.mark.parametrize(
    ("parameters", "seconds", "rate"),
    [
        ({"duration_seconds": 2}, 2, 12),
        ({"duration_seconds": 1, "frames_per_second": 24}, 1, 24),
        ({"frames": 31}, 31 / 24, 24),
    ],
)
def test_a_video_has_the_length_and_the_rate(parameters: dict[str, object], seconds: float, rate: float) -> None:
    found = facts(encode_video(plan(size=SMALL, **parameters)))
    assert (found.size, found.seconds, found.rate) == ((192, 128), pytest.approx(seconds, abs=0.01), rate)
    assert len(found.frames) == round(seconds * rate)


@pytest.mark.parametrize(
    ("model", "parameters", "sound"),
    [
        ("vidB-3.0-fast-generate-001", {}, True),
        ("vidB-3.0-fast-generate-001", {"generate_audio": False}, True),
        ("vidB-3.1-generate-preview", {}, False),
        ("vidB-3.1-generate-preview", {"generate_audio": True}, True),
        ("vidC2.5-t2v-preview", {}, False),
        ("vidC2.5-t2v-preview", {"generate_audio": True}, True),
        ("vidD-1-5-pro-251215-noAudio", {"generate_audio": True}, False),
        ("vidD-2-0-260128", {"generate_audio": False}, False),
        ("vidD-2-0-260128", {"generate_audio": True}, True),
        ("vidE-v2-6", {"generate_audio": True}, True),
        ("vidG-H3", {}, False),
    ],
)
def test_sound_is_a_track_of_the_file(model: str, parameters: dict[str, object], sound: bool) -> None:
    found = facts(encode_video(plan(model, size=SMALL, **parameters)))
    assert (found.sound_seconds > 0) == sound
    assert not sound or found.sound_seconds == pytest.approx(found.seconds, abs=0.06)
    assert found.seconds == pytest.approx(1, abs=0.01)


def test_the_first_frame_begins_the_video_and_the_last_one_ends_it() -> None:
    both = [image(RED, pb.VIDEO_MEDIA_ROLE_FIRST_FRAME), image(BLUE, pb.VIDEO_MEDIA_ROLE_LAST_FRAME)]
    frames = facts(encode_video(plan(media=both, size=SMALL))).frames
    assert is_near(upper_color(frames[0]), RED)
    assert is_near(upper_color(frames[-1]), BLUE)
    frames = facts(encode_video(plan(media=[image(BLUE)], size=SMALL))).frames
    assert all(is_near(upper_color(frame), BLUE) for frame in (frames[0], frames[-1]))


def test_references_and_addresses_change_the_picture() -> None:
    plain = encode_video(plan(size=SMALL))
    reference = image(RED, pb.VIDEO_MEDIA_ROLE_REFERENCE_IMAGE)
    url = pb.VideoMedia(kind=pb.VIDEO_MEDIA_KIND_IMAGE, url="https://pictures.example/a.png")
    asset = pb.VideoMedia(kind=pb.VIDEO_MEDIA_KIND_AUDIO, role=5, url="asset://song")
    files = {encode_video(plan(size=SMALL, media=media)) for media in ([reference], [url], [reference, url], [asset])}
    assert len(files | {plain}) == 5


def test_the_same_request_gives_the_same_bytes_and_a_seed_others() -> None:
    one, other = plan(size=SMALL, seed=7), plan(size=SMALL, seed=8)
    assert encode_video(one) == encode_video(one) != encode_video(other)
    assert encode_video(plan(size=SMALL, sample_count=2), 0) != encode_video(plan(size=SMALL, sample_count=2), 1)
    assert decode_plan(encode_plan(one)) == one


def test_the_camera_moves_unless_it_is_fixed() -> None:
    moving, fixed = (
        facts(encode_video(plan(size=SMALL, media=[image(RED)], camera_fixed=still))).frames for still in (False, True)
    )
    assert len(moving) == len(fixed) == 12
    assert encode_video(plan(size=SMALL)) != encode_video(plan(size=SMALL, camera_fixed=True))


@pytest.mark.parametrize(
    ("variant", "kind", "size"),
    [
        (pb.VIDEO_VARIANT_THUMBNAIL, "WEBP", (192, 128)),
        (pb.VIDEO_VARIANT_SPRITESHEET, "JPEG", (768, 384)),
        (pb.VIDEO_VARIANT_LAST_FRAME, "PNG", (192, 128)),
    ],
)
def test_variants_are_pictures(variant: "pb.VideoVariant.ValueType", kind: str, size: tuple[int, int]) -> None:
    picture = Image.open(BytesIO(encode_variant(plan(size=SMALL), variant)))
    assert (picture.format, picture.size) == (kind, size)


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"size": "large"}, "size"),
        ({"size": "9999x9999"}, "size"),
        ({"resolution": "900p"}, "resolution"),
        ({"aspect_ratio": "0:1"}, "aspect_ratio"),
        ({"frames": 100_000}, "frames"),
        ({"frames_per_second": 1000}, "frames_per_second"),
        ({"media": [pb.VideoMedia(kind=1, data=b"no image")]}, "media[0].data"),
        ({"media": [image(RED), pb.VideoMedia(kind=1, data=png(BLUE)[:60])]}, "media[1].data"),
    ],
)
def test_values_that_cannot_be_encoded_are_refused(parameters: dict[str, object], name: str) -> None:
    with pytest.raises(UmgError) as caught:
        plan(**parameters)  # type: ignore[arg-type]
    assert (caught.value.reason, caught.value.metadata["field"]) == (
        pb.ERROR_REASON_INVALID_FIELD,
        f"parameters.{name}",
    )


# --- the channel


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def channel(clock: Clock) -> SandboxVideo:
    return SandboxVideo(total_seconds=600, now=clock)


async def status(upstream: SandboxVideo, task: ProviderTask) -> ProviderStatus:
    """Return the state; of a finished task, once its file is encoded."""
    while True:
        found = (await upstream.poll([task], 60))[task.id]
        assert isinstance(found, ProviderStatus)
        if found.progress_percent != 99:
            return found


async def test_a_task_passes_through_its_states_also_after_a_restart() -> None:
    clock = Clock()
    task, report = await channel(clock).submit(submission(size=SMALL, sample_count=2, return_last_frame=True), 60)
    assert not report.entries()
    assert (await status(channel(clock), task)).state == pb.VIDEO_TASK_STATE_QUEUED
    assert await channel(clock).cancel(task, 60)
    progress = list[int | None]()
    for _ in range(3):
        clock.time += 1.01
        running = await status(channel(clock), task)
        assert running.state == pb.VIDEO_TASK_STATE_RUNNING
        progress.append(running.progress_percent)
    assert progress == sorted(set(progress), key=lambda each: each or 0)
    assert not await channel(clock).cancel(task, 60)
    clock.time += 1
    done = await status(channel(clock), task)
    assert (done.state, done.progress_percent) == (pb.VIDEO_TASK_STATE_SUCCEEDED, 100)
    assert done.usage == pb.VideoUsage(video_count=2, output_seconds=2)
    assert [each.variant for each in done.results] == [1, 1, 4, 4]
    assert [each.mime_type for each in done.results] == ["video/mp4"] * 2 + ["image/png"] * 2
    assert facts(done.results[1].data).size == (192, 128)
    assert done.results == (await status(channel(clock), task)).results


async def test_family_a_has_previews_which_are_drawn_when_they_are_read() -> None:
    clock = Clock()
    upstream = channel(clock)
    task, _ = await upstream.submit(submission("vidA-2", size=SMALL), 60)
    clock.time += 10
    previews = (await status(upstream, task)).results[1:]
    assert [each.variant for each in previews] == [pb.VIDEO_VARIANT_THUMBNAIL, pb.VIDEO_VARIANT_SPRITESHEET]
    for each in previews:
        assert each.needs_key
        async with upstream.content(task, each, {}) as part:
            data = b"".join([chunk async for chunk in part.chunks()])
        assert part.status == 200
        assert part.headers["content-type"] == each.mime_type == Image.open(BytesIO(data)).get_format_mimetype()


@pytest.mark.parametrize(("mark", "code"), [("fail", "task_failed"), ("block", "content_policy_violation")])
async def test_a_mark_fails_the_task_with_a_reason(mark: str, code: str) -> None:
    clock = Clock()
    upstream = channel(clock)
    task, _ = await upstream.submit(submission(prompt=f"a fox [[{mark}]]"), 60)
    clock.time += 1.5
    assert (await status(upstream, task)).state == pb.VIDEO_TASK_STATE_RUNNING
    clock.time += 10
    failed = await status(upstream, task)
    assert failed.state == pb.VIDEO_TASK_STATE_FAILED
    assert failed.error is not None
    assert failed.error.code == code
    assert failed.error.message


async def test_a_mark_refuses_the_submission_and_another_stalls_the_task() -> None:
    clock = Clock()
    upstream = channel(clock)
    with pytest.raises(UmgError) as caught:
        await upstream.submit(submission(prompt="[[fail:429]]"), 60)
    assert caught.value.failure is Failure.OVERLOADED
    assert await upstream.find(submission(prompt="[[fail:429]]"), 60) is None
    task, _ = await upstream.submit(submission(prompt="[[slow]]"), 60)
    clock.time += 500
    stalled = await status(upstream, task)
    assert (stalled.state, stalled.progress_percent) == (pb.VIDEO_TASK_STATE_RUNNING, 60)


async def test_a_submission_with_an_unknown_outcome_is_found_again() -> None:
    clock = Clock()
    task, _ = await channel(clock).submit(submission(size=SMALL), 60)
    assert await channel(clock).find(submission(size=SMALL), 60) == task


async def test_a_remix_has_the_scene_of_its_source() -> None:
    clock = Clock()
    source, _ = await channel(clock).submit(submission("vidA-2", size=SMALL, seed=3), 60)
    remix, _ = await channel(clock).submit(submission("vidA-2", size=SMALL, prompt="at night", source=source), 60)
    found, old = decode_plan(remix.facts), decode_plan(source.facts)
    assert (found.scene, found.seed, found.prompt, found.remix) == (old.scene, 3, "at night", True)


async def test_more_tasks_than_can_be_encoded_at_once_all_end() -> None:
    clock = Clock()
    upstream = channel(clock)
    tasks = [
        (await upstream.submit(Submission(task_id=f"task_{number}", model="m", request=_small(number)), 60))[0]
        for number in range(12)
    ]
    clock.time += 10
    files = [(await status(upstream, task)).results[0].data for task in tasks]
    assert len(set(files)) == 12


async def test_tasks_with_the_same_parameters_share_a_file() -> None:
    clock = Clock()
    files = list[bytes]()
    for number in range(2):
        submitted = Submission(task_id=f"task_{number}", model="m", request=_small(seed=1))
        task, _ = await channel(clock).submit(submitted, 60)
        clock.time += 10
        files.append((await status(channel(clock), task)).results[0].data)
    assert files[0] is files[1]


def _small(seed: int) -> pb.CreateVideoTaskRequest:
    wanted = pb.VideoParameters(prompt=PROMPT, size="64x64", duration_seconds=1, seed=seed)
    return pb.CreateVideoTaskRequest(model="m", parameters=wanted)
