"""Page docs/video-providers.md: the sample config is valid, and the tables are those of the protocols."""

import re
from contextlib import suppress
from pathlib import Path

import msgspec

from tests.docs.tables import DOCS, quoted, rows, section
from tests.support.videos import image, submission
from umg_grpc.base.errors import UmgError
from umg_grpc.config import AccessKeyAuth, JwtAuth, ServiceAccountAuth, parse
from umg_grpc.knowledge.media_model_rules import media_model
from umg_grpc.knowledge.task_state_words import ALL_PROTOCOLS, TASK_WORDS
from umg_grpc.knowledge.video_member_places import video_places
from umg_grpc.service.video_tasks import stalled_tasks
from umg_grpc.service.video_tasks.poll_outcomes import LOST_ATTEMPTS, RESULT_ATTEMPTS
from umg_grpc.upstream.http.video_url_inlining import MAX_BYTES
from umg_grpc.v1 import pb
from umg_grpc.wire.video import VIDEO_PROTOCOLS, video_protocol
from umg_grpc.wire.video.providers.vid_b_protocol import VID_B, VID_B_GEMINI
from umg_grpc.wire.video.providers.vid_c_requests import accepted_media
from umg_grpc.wire.video.providers.vid_e_protocol import VID_E
from umg_grpc.wire.video.providers.vid_f_protocol import VID_F
from umg_grpc.wire.video.providers.vid_g_protocol import is_v1

PAGE = (DOCS / "video-providers.md").read_text(encoding="utf-8")
FLAT = " ".join(PAGE.split())


def test_the_sample_has_a_channel_for_each_protocol() -> None:
    [sample] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    environment = dict.fromkeys(re.findall(r"\$\{(\w+)\}", sample), "k")
    config = parse(sample, "/etc/umg/umg.yaml", environment)
    assert {protocol for channel in config.channels for protocol in channel.protocols} == set(VIDEO_PROTOCOLS)
    channels = {channel.name: channel for channel in config.channels}
    assert video_protocol("vidB", channels["vertex"].base_url) is VID_B
    assert video_protocol("vidB", channels["gemini"].base_url) is VID_B_GEMINI
    assert channels["vertex"].auth == ServiceAccountAuth(file="/etc/umg/service-account.json")
    assert channels["family-e-with-an-access-key"].auth == JwtAuth()
    assert channels["visual"].auth == AccessKeyAuth(region="cn-north-1", service="cv")
    assert channels["visual"].api_keys == ("k:k",)


def test_every_protocol_is_in_the_tables() -> None:
    for title in ("Protocols", "Polling"):
        assert [quoted(cells[0])[0] for cells in rows(PAGE, title)] == list(VIDEO_PROTOCOLS), title


def test_the_times_are_those_of_the_protocols() -> None:
    for name, first, interval, batch, deadline, valid in rows(PAGE, "Polling"):
        protocol = VIDEO_PROTOCOLS[quoted(name)[0]]
        times = (first, interval, batch)
        assert times == (
            f"{protocol.first_poll_seconds:g} s",
            f"{protocol.poll_seconds:g} s",
            str(protocol.max_batch),
        ), name
        assert deadline == duration(protocol.deadline_seconds), name
        assert valid == ("by key" if protocol.result_seconds is None else f"{protocol.result_seconds / 3600:g} h"), name


def test_the_times_of_stalls_are_those_of_the_poller() -> None:
    assert (
        f"answered for {stalled_tasks.LOST_SECONDS:g} s and at least {LOST_ATTEMPTS} times that it does not have it"
        in FLAT
    )
    assert f"none after {stalled_tasks.NO_VIDEO_SECONDS:g} s and at least {RESULT_ATTEMPTS} polls" in FLAT
    assert f"refuses for {stalled_tasks.REFUSED_SECONDS:g} s" in FLAT
    assert f"changed for {stalled_tasks.UNKNOWN_STATE_SECONDS / 60:g} minutes" in FLAT


def test_the_words_of_relays_are_those_of_the_table() -> None:
    words = {cells[0]: quoted(cells[1]) for cells in rows(PAGE, "Relays")}
    words["lost"] = words.pop("unknown to the provider")
    known = {word: meaning for meaning, listed in words.items() for word in listed}
    assert known == TASK_WORDS[ALL_PROTOCOLS]


def duration(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds < 3600 else f"{seconds / 3600:g} h"


def test_the_protocols_that_cancel_are_named() -> None:
    sentence = FLAT[FLAT.index("Before it has started") : FLAT.index("## Results")]
    assert set(quoted(sentence)) == {name for name, row in VIDEO_PROTOCOLS.items() if row.encode_cancel is not None}


def test_the_explicit_values_are_sent() -> None:
    explicit = rows(section_only("Submission", last=True), "Table")
    models = {"vidA": "a", "vidB": "b", "vidC": "c", "vidD": "d", "vidE": "kling-3.0", "vidF": "f", "vidG": "g"}
    for cells in explicit:
        protocol = VIDEO_PROTOCOLS[quoted(cells[0])[0]]
        body = protocol.encode_create(submission(models[protocol.name])).body.decode()
        for value in quoted(cells[1]):
            name, separator, expected = value.partition(": ")
            if separator and not any(word in value for word in ("sound", "prompt_optimizer", "generate_audio")):
                assert is_in(body, name.rpartition(".")[2], expected), (protocol.name, value)


def is_in(body: str, name: str, value: str) -> bool:
    """Return whether a body, a form or JSON, has the value of a field."""
    return f'name="{name}"\r\n\r\n{value}\r\n' in body or any(
        f'"{name}":{written}' in body for written in (value, msgspec.json.encode(value).decode())
    )


def section_only(title: str, *, last: bool) -> str:
    """Return a page with the last table of a section alone."""
    tables = re.split(r"\n\n", section(PAGE, title))
    table = [part for part in tables if part.startswith("|")][-1 if last else 0]
    return f"\n## Table\n{table}\n"


def test_the_places_of_each_model_are_those_of_the_page() -> None:
    sizes = {"pixels": "in pixels", "tier": "by tier, ratio of the image"}
    for cells in rows(PAGE, "Models of `vidC`"):
        for model in quoted(cells[0]):
            places = video_places("vidC", model)
            assert cells[1].strip() in (accepted_media(places), "none" if not places.media else "")
            assert cells[2].strip() == ("by tier and ratio" if places.ratio else sizes[places.size])
            assert cells[3].strip() == places.sound


def test_the_models_of_both_apis_are_those_of_the_page() -> None:
    assert [
        is_v1(model) for model in ("MiniMax-Hailuo-02", "T2V-01", "I2V-01", "S2V-01", "video-01", "MiniMax-H3")
    ] == [
        True,
        True,
        True,
        True,
        True,
        False,
    ]


def test_the_limits_of_each_model_are_those_of_the_page() -> None:
    for cells in rows(PAGE, "Models of `vidG`"):
        for model in quoted(cells[0]):
            row = media_model("vidG", model)
            assert row is not None
            assert cells[1].strip() == (row.api or "v2")
            own = [value for value in row.values["resolution"] if row.api or value not in {"720P", "1080P"}]
            assert cells[2].partition(";")[0].strip() == ", ".join(str(value) for value in own)
            seconds = row.values.get("duration_seconds")
            least, most = row.ranges.get("duration_seconds", (0, 0))
            assert cells[3].strip() == (", ".join(str(each) for each in seconds) if seconds else f"{least} to {most}")


def test_the_actions_and_inputs_of_each_model_are_those_of_the_page() -> None:
    for cells in rows(PAGE, "Models of `vidF`"):
        for model in quoted(cells[0]):
            path = VID_F.encode_create(submission(model)).path
            assert path.startswith(f"/?Action={quoted(cells[1])[0]}&"), model
            row = media_model("vidF", model)
            assert row is not None
            kinds = " and ".join(f"one {name.removesuffix('_url')}" for name in row.members)
            assert cells[2].strip() == (f"{kinds} by URL" if kinds else "images, all by URL or all as bytes")


def test_the_paths_of_each_model_are_those_of_the_page() -> None:
    inputs: list[tuple[list[pb.VideoMedia], str]] = [
        *(([], ""), ([image()], ""), ([image("reference_image")], "")),
        ([image()], '{"character_orientation":"image"}'),
    ]
    for cells in rows(PAGE, "Models of `vidE`"):
        for model in quoted(cells[0]):
            paths = set[str]()
            for media, extra in inputs:
                with suppress(UmgError):
                    paths.add(VID_E.encode_create(submission(model, *media, extra_json=extra)).path)
            for path in quoted(cells[1]):
                assert path.replace("{id}", model) in paths, (model, path)


def test_the_sizes_of_fetched_media_are_those_of_the_page() -> None:
    assert sorted(size >> 20 for size in MAX_BYTES.values()) == [15, 20, 50]
    assert "images up to 20 MiB, videos up to 50 MiB, audio up to 15 MiB" in FLAT


def test_the_links_lead_to_sections() -> None:
    for target in re.findall(r"\]\(([\w.-]+)#([\w-]+)\)", PAGE):
        page = Path(DOCS / target[0]).read_text(encoding="utf-8")
        titles = [title.strip().lower().replace(" ", "-") for title in re.findall(r"\n#+ (.*)", page)]
        assert target[1] in titles, target
