"""Video document: tasks of every entry from their submission to their end, and their content."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.documents.spec.video_callers import (
    B_3_FAST,
    D_1_5,
    D_2,
    D_PATH,
    E_MODEL,
    F_MODEL,
    F_QUERY,
    FAILING,
    G_MODEL,
    IMAGE_2,
    OBJECT,
    RUNS,
    STALLED,
    TEXT_2,
    TEXT_3,
    UNIFIED,
    A,
    Ended,
    Videos,
    data_url,
    film_of,
    task_id_of,
)
from umg_grpc.knowledge.families.video_model_rules import DOCUMENTED_MODELS

pytestmark = pytest.mark.asyncio(loop_scope="module")

ID = re.compile(r"task_[A-Za-z0-9_-]{32}")


@dataclass(frozen=True)
class Runs:
    """Tasks that have ended."""

    done: dict[str, Ended]
    failed: dict[str, Ended]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runs(videos: Videos) -> AsyncGenerator[Runs, None]:
    every = [*RUNS.values(), *FAILING.values()]
    ended = await asyncio.gather(*(videos.run(run) for run in every))
    done, failed = ended[: len(RUNS)], ended[len(RUNS) :]
    yield Runs(dict(zip(RUNS, done, strict=True)), dict(zip(FAILING, failed, strict=True)))


# --- overview


async def test_videos_a_task_is_submitted_polled_and_read(videos: Videos, runs: Runs) -> None:
    for name, run in runs.done.items():
        assert ID.fullmatch(run.task_id), name
        status, headers, data = await videos.content(run.task_id)
        assert (status, headers["content-type"], data[4:8]) == (200, "video/mp4", b"ftyp"), name


async def test_videos_every_model_is_in_the_model_list(videos: Videos) -> None:
    reply = await videos.gateway.get("/v1/models")
    assert {model["id"] for model in reply.body["data"]} >= DOCUMENTED_MODELS


async def test_videos_every_operation_needs_a_key(videos: Videos, runs: Runs) -> None:
    for run in RUNS.values():
        reply = await videos.gateway.send("POST", run.submit, run.body, headers={})
        assert (reply.status, bool(reply.body["error"]["message"])) == (401, True)
    content = f"{OBJECT}/{runs.done['A'].task_id}/content"
    assert (await videos.gateway.send("GET", content, headers={})).status == 401


async def test_videos_a_task_is_read_by_its_own_entry_alone(videos: Videos, runs: Runs) -> None:
    for name, run in RUNS.items():
        for other, ended in runs.done.items():
            if RUNS[other].query != run.query:
                reply = await videos.query(run, ended.task_id)
                assert reply.status == 404, (name, other)


# --- states


async def test_videos_states_of_every_entry(runs: Runs) -> None:
    words = {
        "A": ("queued", "in_progress", "succeeded"),
        "video-object": ("queued", "in_progress", "completed"),
        "D": ("queued", "processing", "succeeded"),
        "E v1": ("queued", "processing", "succeeded"),
        "E 3.0": ("submitted", "processing", "succeeded"),
        "F": ("PENDING", "RUNNING", "SUCCESS"),
        "G": ("queued", "running", "succeeded"),
    }
    for name, expected in words.items():
        seen = runs.done[name].states
        assert seen == [word for word in expected if word in seen], name
        assert expected[1] in seen, name
        assert seen[-1] == expected[2], name


async def test_videos_failed_states(runs: Runs) -> None:
    assert {name: run.states[-1] for name, run in runs.failed.items()} == {
        name: "FAILED" if name == "F" else "failed" for name in FAILING
    }


# --- the unified entry


async def test_videos_unified_submit_response(runs: Runs) -> None:
    for name in ("A", "B", "C", "D 1.x"):
        body = runs.done[name].created.body
        assert (body["status"], body["format"], body["task_id"]) == ("queued", "mp4", runs.done[name].task_id)


async def test_videos_unified_task_on_success(videos: Videos, runs: Runs) -> None:
    run = runs.done["A"]
    assert all(reply.body.keys() == {"task_id", "status", "format"} for reply in run.views[:-1])
    assert run.last.keys() == {"task_id", "status", "format", "url"}
    assert film_of(await videos.fetch(run.last["url"])).seconds == pytest.approx(4, abs=0.1)


async def test_videos_unified_task_on_failure(runs: Runs) -> None:
    last = runs.failed["A"].last
    assert last.keys() == {"task_id", "status", "format", "error", "fail_reason"}
    assert (type(last["error"]["code"]), last["error"]["message"]) == (int, last["fail_reason"])


async def test_videos_several_videos_are_all_returned(videos: Videos, runs: Runs) -> None:
    run = runs.done["B"]
    assert run.last["url"] == run.last["urls"][0]
    first, second = [(await videos.content(run.task_id, f"?index={index}"))[2] for index in (0, 1)]
    assert (len(run.last["urls"]), first == second) == (2, False)
    assert (await videos.content(run.task_id, "?index=2"))[0] == 404


# --- the video object


async def test_videos_video_object_of_a_new_task(runs: Runs) -> None:
    body = runs.done["video-object"].created.body
    assert body.keys() == {"id", "task_id", "object", "model", "status", "progress", "created_at", "seconds", "size"}
    assert (body["object"], body["status"], body["progress"]) == ("video", "queued", 0)
    assert (body["seconds"], body["size"], body["model"]) == ("4", "720x1280", A)


async def test_videos_video_object_of_a_finished_task(runs: Runs) -> None:
    run = runs.done["video-object"]
    assert "completed_at" not in run.views[0].body
    last = run.last
    assert (last["id"], last["progress"]) == (last["task_id"], 100)
    assert last["created_at"] <= last["completed_at"] < last["expires_at"]


async def test_videos_progress_never_falls(runs: Runs) -> None:
    progress = [reply.body["progress"] for reply in runs.done["video-object"].views]
    assert progress == sorted(progress)
    assert progress[-1] == 100


async def test_videos_video_object_of_a_failed_task(runs: Runs) -> None:
    last = runs.failed["video-object"].last
    assert last["error"].keys() == {"code", "message"}
    assert (last["error"]["code"], "completed_at" in last) == ("task_failed", False)


async def test_videos_remix(videos: Videos, runs: Runs) -> None:
    source = runs.done["video-object"].task_id
    for body in ({"prompt": STALLED}, {"prompt": STALLED, "model": A}):
        reply = await videos.submit(f"{OBJECT}/{source}/remix", body)
        assert (reply.body["object"], reply.body["status"]) == ("video", "queued")
        queried = (await videos.gateway.get(f"{OBJECT}/{task_id_of(reply.body)}")).body
        assert queried["remixed_from_video_id"] == source


async def test_videos_remix_needs_a_prompt_and_a_finished_source(videos: Videos, runs: Runs) -> None:
    source = runs.done["video-object"].task_id
    assert (await videos.refuse(f"{OBJECT}/{source}/remix", {"model": A}))["param"] == "prompt"
    await videos.refuse(f"{OBJECT}/{source}/remix", {"prompt": "p", "model": B_3_FAST})
    await videos.refuse(f"{OBJECT}/{runs.failed['video-object'].task_id}/remix", {"prompt": "p"})
    await videos.refuse(f"{OBJECT}/task_unknown/remix", {"prompt": "p"}, status=404)


async def test_videos_list_and_removal(videos: Videos) -> None:
    made = task_id_of((await videos.submit(OBJECT, {"model": A, "prompt": "[[fail]]"})).body)
    page = (await videos.gateway.get(f"{OBJECT}?limit=1")).body
    assert (page["object"], page["first_id"], page["has_more"]) == ("list", made, True)
    after = (await videos.gateway.get(f"{OBJECT}?limit=1&after={made}")).body
    assert after["first_id"] not in {None, made}
    await videos.run_to_end(f"{OBJECT}/{made}")
    deleted = await videos.gateway.send("DELETE", f"{OBJECT}/{made}")
    assert (deleted.status, deleted.body) == (200, {"id": made, "object": "video.deleted", "deleted": True})
    assert (await videos.gateway.get(f"{OBJECT}/{made}")).status == 404


# --- Entry D


async def test_videos_entry_d_objects(videos: Videos, runs: Runs) -> None:
    run = runs.done["D"]
    assert run.created.body == {"id": run.task_id}
    assert run.last.keys() == {"id", "model", "status", "content", "created_at", "updated_at"}
    assert (run.last["model"], type(run.last["created_at"])) == (D_2, int)
    assert film_of(await videos.fetch(run.last["content"]["video_url"])).seconds == pytest.approx(4, abs=0.1)


async def test_videos_entry_d_failure(runs: Runs) -> None:
    error = runs.failed["D"].last["error"]
    assert (error["code"], bool(error["message"])) == ("task_failed", True)


async def test_videos_entry_d_last_frame(videos: Videos, runs: Runs) -> None:
    image = await videos.fetch(runs.done["D"].last["content"]["last_frame_url"])
    assert image.startswith(b"\x89PNG")


# --- Entry E


async def test_videos_entry_e_v1_objects(videos: Videos, runs: Runs) -> None:
    run = runs.done["E v1"]
    assert run.created.body.keys() == {"id", "task_id", "object", "model", "status", "created_at"}
    assert (run.created.body["object"], run.created.body["status"]) == ("video", "queued")
    assert (await videos.gateway.get(f"{TEXT_2}/{run.task_id}")).body["status"] == "succeeded"
    assert (await videos.gateway.get(f"{IMAGE_2}/{run.task_id}")).status == 404
    assert film_of(await videos.fetch(run.last["url"])).has_sound


async def test_videos_entry_e_3_objects(videos: Videos, runs: Runs) -> None:
    run = runs.done["E 3.0"]
    assert run.last.keys() == {"code", "message", "request_id", "data"}
    (item,) = run.last["data"]
    assert (run.last["code"], item["id"], item["external_id"]) == (0, run.task_id, "spec-1")
    assert (item["create_time"] > 10**12, item["update_time"] >= item["create_time"]) == (True, True)
    (output,) = item["outputs"]
    assert (output["duration"], film_of(await videos.fetch(output["url"])).seconds) == (3, pytest.approx(3, abs=0.1))
    assert run.created.body.keys() == run.last.keys()


async def test_videos_entry_e_3_failure(runs: Runs) -> None:
    (item,) = runs.failed["E 3.0"].last["data"]
    assert (item["error"]["code"], bool(item["error"]["message"]), "outputs" in item) == ("task_failed", True, False)


async def test_videos_entry_e_3_query_by_either_id(videos: Videos, runs: Runs) -> None:
    task_id = runs.done["E 3.0"].task_id
    reply = await videos.gateway.get("/vidE/tasks?external_task_ids=spec-1")
    assert reply.body["data"][0]["id"] == task_id
    for query in ("", "?task_ids=", f"?task_ids={task_id},{task_id}", f"?task_ids={task_id}&external_task_ids=spec-1"):
        reply = await videos.gateway.get(f"/vidE/tasks{query}")
        assert (reply.status, reply.body["code"] != 0) == (400, True), query
    assert (await videos.gateway.get("/vidE/tasks?task_ids=task_unknown")).status == 404


async def test_videos_an_external_id_is_unique(videos: Videos) -> None:
    body = {"prompt": STALLED, "options": {"external_task_id": "spec-2"}}
    await videos.submit(f"{TEXT_3}/vidE-3.0", body)
    await videos.refuse(f"{TEXT_3}/vidE-3.0", body, status=409)


# --- Entries F and G


async def test_videos_entry_f_objects(videos: Videos, runs: Runs) -> None:
    run = runs.done["F"]
    assert (run.created.body["code"], run.created.body["data"]) == (10000, {"task_id": run.task_id})
    assert run.last.keys() == {"code", "message", "request_id", "data"}
    assert film_of(await videos.fetch(run.last["data"]["video_url"])).seconds == pytest.approx(121 / 24, abs=0.3)
    assert runs.failed["F"].last["code"] == 10000


async def test_videos_entry_f_query_names_its_model(videos: Videos, runs: Runs) -> None:
    task_id = runs.done["F"].task_id
    reply = await videos.gateway(F_QUERY, {"req_key": "another", "task_id": task_id})
    assert reply.status == 404
    assert (await videos.gateway(F_QUERY, {"req_key": F_MODEL})).status == 400


async def test_videos_entry_g_objects(videos: Videos, runs: Runs) -> None:
    run = runs.done["G"]
    assert run.created.body == {"task_id": run.task_id}
    task = run.last["task"]
    assert task.keys() == {"id", "model", "status", "content", "created_at", "updated_at"}
    assert (task["id"], task["model"], type(task["created_at"])) == (run.task_id, G_MODEL, int)
    film = film_of(await videos.fetch(task["content"]["url"]))
    assert (min(film.width, film.height), film.seconds) == (768, pytest.approx(4, abs=0.1))


# --- the files


async def test_videos_have_the_requested_length_size_and_sound(videos: Videos, runs: Runs) -> None:
    films = {name: film_of((await videos.content(run.task_id))[2]) for name, run in runs.done.items()}
    seconds = {"A": 4, "B": 4, "C": 5, "D 1.x": 4, "video-object": 4, "D": 4, "E v1": 5, "E 3.0": 3, "G": 4}
    assert {name: films[name].seconds for name in seconds} == pytest.approx(seconds, abs=0.1)
    sizes = {name: (film.width, film.height) for name, film in films.items()}
    assert (sizes["A"], sizes["B"], sizes["C"]) == ((1280, 720), (720, 1280), (832, 480))
    assert (sizes["D 1.x"], sizes["video-object"]) == ((480, 480), (720, 1280))
    assert (min(sizes["D"]), min(sizes["E 3.0"]), sizes["E v1"][0] == sizes["E v1"][1]) == (480, 720, True)
    assert sizes["G"][0] * 3 == pytest.approx(sizes["G"][1] * 4, rel=0.02)
    sound = {name: film.has_sound for name, film in films.items()}
    assert (sound["B"], sound["C"], sound["D 1.x"], sound["D"], sound["E v1"]) == (True, True, False, False, True)


# --- content


async def test_videos_content_headers(videos: Videos, runs: Runs) -> None:
    task_id = runs.done["video-object"].task_id
    status, headers, data = await videos.content(task_id, headers={"accept": "application/binary"})
    assert (status, headers["content-type"], headers["cache-control"]) == (200, "video/mp4", "public, max-age=86400")
    assert (headers["vary"], int(headers["content-length"])) == ("Authorization", len(data))
    head = await videos.content(task_id, method="HEAD")
    assert (head[0], head[1]["content-length"], head[1]["etag"], head[2]) == (
        200,
        str(len(data)),
        headers["etag"],
        b"",
    )


async def test_videos_content_ranges(videos: Videos, runs: Runs) -> None:
    task_id = runs.done["video-object"].task_id
    _, headers, data = await videos.content(task_id)
    for given, part in (("bytes=0-99", data[:100]), ("bytes=100-", data[100:]), ("bytes=-50", data[-50:])):
        status, found, body = await videos.content(task_id, headers={"range": given})
        assert (status, body) == (206, part)
        assert found["content-range"].endswith(f"/{len(data)}")
    assert (await videos.content(task_id, headers={"range": f"bytes={len(data)}-"}))[0] == 416
    assert (await videos.content(task_id, headers={"if-none-match": headers["etag"]}))[0] == 304


async def test_videos_content_of_an_unfinished_task(videos: Videos) -> None:
    task_id = task_id_of((await videos.submit(UNIFIED, {"model": A, "prompt": STALLED})).body)
    status, _, body = await videos.content(task_id)
    error = json.loads(body)["error"]
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert re.search(r"queued|in_progress", error["message"])


async def test_videos_content_of_a_failed_and_of_an_unknown_task(videos: Videos, runs: Runs) -> None:
    for task_id in (*(run.task_id for run in runs.failed.values()), "task_unknown"):
        status, _, body = await videos.content(task_id)
        assert (status, bool(json.loads(body)["error"]["message"])) == (404, True)


async def test_videos_content_variants(videos: Videos, runs: Runs) -> None:
    task_id = runs.done["D"].task_id
    status, headers, data = await videos.content(task_id, "?variant=last_frame")
    assert (status, headers["content-type"], data[:4]) == (200, "image/png", b"\x89PNG")
    for variant in ("thumbnail", "spritesheet", "gif"):
        assert (await videos.content(task_id, f"?variant={variant}"))[0] == 400


async def test_videos_a_data_url_is_used_and_an_address_is_never_fetched(videos: Videos) -> None:
    for image in (data_url(), "https://example.com/no-such-file.png"):
        await videos.submit(UNIFIED, {"model": A, "prompt": STALLED, "image": image})


# --- notifications


async def test_videos_callback_path_needs_no_key(videos: Videos, runs: Runs) -> None:
    task_id = runs.done["E 3.0"].task_id
    reply = await videos.gateway.send("POST", f"/vidE/callbacks/{task_id}/{'0' * 64}", {"id": "1"}, headers={})
    assert (reply.status, reply.body["code"] != 0) == (404, True)
    large = await videos.gateway.send(
        "POST", f"/vidE/callbacks/{task_id}/{'0' * 64}", headers={}, data=b" " * (2**20 + 1)
    )
    assert large.status == 413


async def test_videos_callback_is_acknowledged(videos: Videos, runs: Runs) -> None:
    task_id = runs.done["E 3.0"].task_id
    signature = videos.signature(task_id)
    reply = await videos.gateway.send("POST", f"/vidE/callbacks/{task_id}/{signature}", {}, headers={})
    assert (reply.status, reply.body) == (200, {"code": 0, "message": "success"})


# --- hints and repetitions


async def test_videos_hints_of_the_next_query(videos: Videos) -> None:
    reply = await videos.submit(OBJECT, {"model": A, "prompt": STALLED})
    assert (int(reply.headers["openai-poll-after-ms"]) > 0, int(reply.headers["retry-after"]) > 0) == (True, True)


async def test_videos_idempotency_key(videos: Videos) -> None:
    for path, body in (
        (UNIFIED, {"model": A, "prompt": STALLED}),
        (D_PATH, {"model": D_1_5, "content": [{"type": "text", "text": STALLED}]}),
        (TEXT_2, {"model": E_MODEL, "prompt": STALLED}),
    ):
        key = f"spec {path}"
        first, second = [task_id_of((await videos.submit(path, body, idempotency_key=key)).body) for _ in range(2)]
        assert first == second
    other = await videos.gateway(TEXT_2, {"model": E_MODEL, "prompt": "another"}, idempotency_key=f"spec {TEXT_2}")
    assert other.status == 409


async def test_videos_repetition_of_an_sdk(videos: Videos) -> None:
    body = {"model": A, "prompt": f"{STALLED} again"}
    sent = [await videos.submit(OBJECT, body, x_stainless_retry_count=count) for count in ("0", "1", "0")]
    first, repeated, other = [task_id_of(reply.body) for reply in sent]
    assert (first == repeated, first == other) == (True, False)


async def test_videos_another_key_has_no_tasks_of_this_one(videos: Videos, runs: Runs) -> None:
    headers = {"authorization": f"Bearer {await videos.other_key()}"}
    for name, run in runs.done.items():
        if RUNS[name].posted:
            continue
        reply = await videos.gateway.get(RUNS[name].query.format(run.task_id), headers=headers)
        assert reply.status == 404, name
        assert (await videos.content(run.task_id, headers=headers))[0] == 404
