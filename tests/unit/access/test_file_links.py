"""Signed links to result files: their time, and the tokens that are refused."""

import base64
import itertools
import json
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
import pytest

from tests.support.store_fixtures import Clock
from umg_grpc.access.signed_file_links import FileLinks
from umg_grpc.access.signing_secret import SIGNING_KEY_FILE, link_secret
from umg_grpc.base.errors import UmgError
from umg_grpc.store.blob_store import Blob

SECRET, DAY = "0123456789abcdef-of-the-tests", 86400


def blob(created: datetime) -> Blob:
    return Blob(f"{int(created.timestamp()):08x}{'0' * 12}-{'A' * 43}.png", 5)


@pytest.fixture
def moment() -> Clock:
    return Clock()


@pytest.fixture
def links(moment: Clock) -> FileLinks:
    made = FileLinks(SECRET, DAY, moment)
    made.base_url = "https://gateway.example"
    return made


def refused(links: FileLinks, token: str) -> tuple[str, str]:
    with pytest.raises(UmgError) as caught:
        links.read(token)
    assert caught.value.metadata == {}
    return caught.value.name, caught.value.message


def test_a_link_is_sufficient_to_serve_its_file(links: FileLinks, moment: Clock) -> None:
    stored = blob(moment.time)
    url = links.url_of(stored, file_name="image-1.png")
    assert url.startswith("https://gateway.example/files/")
    assert len(url) < 350
    found = FileLinks(SECRET, DAY, moment).read(url.rpartition("/")[2])  # as another replica does
    assert (found.blob_id, found.file_name, found.expire_time) == (stored.id, "image-1.png", moment.later(DAY))


@pytest.mark.parametrize(("age", "seconds", "left"), [(0, None, DAY), (DAY / 2, None, DAY / 2), (0, 60, 60), (DAY - 30, 60, 30)])  # fmt: skip
def test_a_link_expires_when_it_should_and_no_later_than_its_file(links: FileLinks, moment: Clock, age: float, seconds: float | None, left: float) -> None:  # fmt: skip
    token = links.token_of(blob(moment.later(-age)), seconds=seconds)
    assert links.read(token).expire_time == moment.later(left)
    moment.time = moment.later(left) - timedelta(seconds=1)
    assert links.read(token)
    moment.time += timedelta(seconds=1)
    assert refused(links, token)


def forged(links: FileLinks, token: str) -> dict[str, str]:
    """Return tokens that are not signed by the secret, or whose content is another one."""
    header, payload, signature = token.split(".")
    claims = jwt.decode(token, options={"verify_signature": False})

    def encoded(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    key = links._key
    longer = {**claims, "exp": claims["exp"] + 1}
    return {
        "empty": "",
        "no token": "x",
        "dots": "..",
        "not ASCII": "ü.ü.ü",
        "no signature": f"{header}.{payload}.",
        "another signature": f"{header}.{payload}.{'A' * len(signature)}",
        "another payload": f"{header}.{encoded(longer)}.{signature}",
        "no algorithm": f"{encoded({'alg': 'none', 'typ': 'JWT'})}.{payload}.",
        "another algorithm": jwt.encode(claims, key * 2, "HS512"),
        "another secret": FileLinks("fedcba9876543210", DAY).token_of(blob(datetime.now(UTC))),
        "the secret itself": jwt.encode(claims, SECRET.ljust(32, "0"), "HS256"),
        "no expiry": jwt.encode({"b": claims["b"]}, key, "HS256"),
        "no blob": jwt.encode({"exp": claims["exp"]}, key, "HS256"),
        "a blob that is none": jwt.encode({**claims, "b": "../../etc/passwd"}, key, "HS256"),
        "a number for a blob": jwt.encode({**claims, "b": 5}, key, "HS256"),
        "a word for a time": f"{header}.{encoded({**claims, 'exp': 'never'})}.{signature}",
        "a huge time": jwt.encode({**claims, "exp": 10**30}, key, "HS256"),
        "too long": "x" * 10_000,
        "a part of it": token[:-1],
        "more than it": token + "A",
    }


def test_every_token_that_is_not_ours_has_the_same_error(links: FileLinks, moment: Clock) -> None:
    token = links.token_of(blob(moment.time))
    expired = links.token_of(blob(moment.later(-2 * DAY)))
    answers = {name: refused(links, bad) for name, bad in forged(links, token).items()}
    assert set(answers.values()) == {refused(links, expired)} == {("OBJECT_NOT_FOUND", "this file does not exist, or its link has expired")}  # fmt: skip


def test_the_secret_of_the_config_is_used(tmp_path: Path) -> None:
    assert link_secret(SECRET, tmp_path) == SECRET
    assert not [*tmp_path.iterdir()]


def test_without_one_the_data_directory_has_a_secret_for_all_its_processes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ThreadPoolExecutor(8) as threads:
        found = {*threads.map(lambda _: link_secret(None, data), range(8))}
    [secret] = found
    assert len(secret) >= 40
    assert stat.S_IMODE((data / SIGNING_KEY_FILE).stat().st_mode) == 0o600
    assert [path.name for path in data.iterdir()] == [SIGNING_KEY_FILE]
    assert link_secret(None, data) == secret
    assert link_secret(None, tmp_path / "other") != secret


def test_links_of_both_secrets_are_valid_during_a_rotation(moment: Clock) -> None:
    old, new = SECRET, "a-new-secret-of-the-links"
    steps = [(old, ()), (old, (new,)), (new, (old,)), (new, ())]
    replicas = [FileLinks(secret, DAY, moment, accepted) for secret, accepted in steps]
    made = blob(moment.time)
    for before, after in itertools.pairwise(replicas[:3]):  # both run at once in a rolling restart
        for signer, verifier in ((before, after), (after, before)):
            assert verifier.read(signer.token_of(made)).blob_id == made.id
    assert refused(replicas[3], replicas[0].token_of(made))
