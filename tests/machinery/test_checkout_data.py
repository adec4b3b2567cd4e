"""Processes of tests do not use the data of a gateway that is run in the checkout."""

import json
from pathlib import Path

import pytest

from tests.machinery.checkout_data import FOLDER
from tests.support.forked_umg_starts import Program, new_folder
from tests.support.processes import run
from umg_grpc.store.channel_failure_file import FILE_NAME

JUNK = "no file of a gateway"


def test_each_process_has_an_empty_folder_outside_of_the_checkout() -> None:
    folders = [Program((), {}).folder, new_folder()]
    assert folders[0] != folders[1]
    for folder in folders:
        assert not FOLDER.parent.is_relative_to(folder)
        assert not folder.is_relative_to(FOLDER.parent)
        assert list(folder.iterdir()) == []


async def test_a_command_without_a_data_folder_reads_none_of_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / FOLDER.name
    data.mkdir()
    failure = {"channel": "main", "time": 1.0, "facts": {"model": JUNK, "kind": "other"}}
    (data / FILE_NAME).write_text(json.dumps([failure]))
    (tmp_path / "umg.yaml").write_text("channels: [{name: main, protocols: [sandbox], models: [famO-5]}]\n")
    monkeypatch.chdir(tmp_path)
    code, out, _ = await run("models", "--config", str(tmp_path / "umg.yaml"), "--http", "127.0.0.1:1")
    assert (code, JUNK in out) == (0, False)
