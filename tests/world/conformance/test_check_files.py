"""Mistakes in files of checks are reported with the file and the line."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from umg_conformance.check_files import CheckFileError, read, read_folder
from umg_conformance.check_selection import Target, UsageError, selected

GOOD = """face: chat
title: Chat
calls:
  - id: answer
    reason: a question gets a response
    source: a document
    request: {path: /v1/chat/completions, body: {}}
    checks:
      - id: object
        reason: clients read it
        expect:
          - {path: body.object, equals: a}
"""


@dataclass(frozen=True)
class Mistake:
    """Replacement in the good file, and the error after the name of the file."""

    id: str
    old: str
    new: str
    error: str


MISTAKES = [
    Mistake("no YAML", "title: Chat", "title: '", ":13: expected YAML: found unexpected end of stream"),
    Mistake("unknown field", "title: Chat", "titel: Chat", ":1: Object contains unknown field `titel`"),
    Mistake("unknown predicate", "equals: a", "equal: a", ":12: calls[0].checks[0].expect[0]: Object contains unknown field `equal`"),
    Mistake("two subjects", "{path: body.object,", "{path: body.object, header: b,", ":12: calls[0].checks[0].expect[0]: expected one of path, header, order, each_line, no_line, got path and header"),
    Mistake("no predicate", ", equals: a", "", ":12: calls[0].checks[0].expect[0]: expected a predicate, such as `type: string`"),
    Mistake("wrong path", "body.object", "'body.[x'", ":12: calls[0].checks[0].expect[0].path: expected a path such as body.data[0].id, got 'body.[x'"),
    Mistake("wrong pattern", "equals: a", "matches: '('", ":12: calls[0].checks[0].expect[0].matches: expected a pattern: missing ), unterminated subpattern at position 0"),
    Mistake("wrong type", "equals: a", "type: text", ":12: calls[0].checks[0].expect[0].type: Invalid enum value 'text'"),
    Mistake("wrong order", "path: body.object, equals: a", "order: [a**]", ":12: calls[0].checks[0].expect[0].order: expected one of * + ? after 'a', got '**'"),
    Mistake("no path and no grpc", "{path: /v1/chat/completions, ", "{", ":7: calls[0].request: expected `path` (HTTP) or `grpc`, and not both"),
    Mistake("no expectation", "expect:\n          - {path: body.object, equals: a}", "expect: []", ":11: calls[0].checks[0].expect: Expected `array` of length >= 1"),
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.id)
def test_a_mistake_is_reported_with_its_line(mistake: Mistake, tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    file.write_text(GOOD.replace(mistake.old, mistake.new))
    with pytest.raises(CheckFileError) as caught:
        read(file)
    assert str(caught.value) == f"{file}{mistake.error}"


def test_an_id_is_used_once(tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    file.write_text(GOOD + GOOD[GOOD.index("  - id: answer") :])
    with pytest.raises(CheckFileError, match=r"chat\.yaml:13: calls\[1\]\.id: the id 'answer.status' is used twice"):
        read(file)


def test_files_may_be_json(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(
        '{"face": "mine", "title": "Mine", "calls": [{"id": "a", "reason": "b", "source": "c", "request": {"path": "/"}}]}'
    )
    assert [file.face for file in read_folder(tmp_path)] == ["mine"]


def test_a_folder_has_files_of_different_faces(tmp_path: Path) -> None:
    with pytest.raises(CheckFileError, match=r"there is no \.yaml, \.yml or \.json file"):
        read_folder(tmp_path)
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yml").write_text(GOOD)
    with pytest.raises(CheckFileError, match=r"b\.yml:1: another file of the folder has the face 'chat'"):
        read_folder(tmp_path)
    with pytest.raises(CheckFileError, match="nowhere: No such file or directory"):
        read_folder(tmp_path / "nowhere")


def test_an_unknown_face_is_reported_with_the_faces() -> None:
    with pytest.raises(UsageError, match="--face holograms: unknown; the faces are chat, connect, "):
        selected(Target("http://127.0.0.1:1", "", faces=("chat", "holograms")))


@pytest.mark.parametrize(
    ("request_line", "error"),
    [
        ("grpc: umg.v1.GenerationService/Dream", "the schema has no method umg.v1.GenerationService/Dream"),
        ("grpc: umg.v1.GenerationService/Generate, message: {modell: m}", "no field named"),
    ],
)
def test_a_call_that_the_schema_lacks_is_reported(request_line: str, error: str, tmp_path: Path) -> None:
    text = GOOD.replace("path: /v1/chat/completions, body: {}", request_line)
    (tmp_path / "chat.yaml").write_text(text)
    with pytest.raises(CheckFileError, match=f"face chat, call answer: .*{error}"):
        selected(Target("http://127.0.0.1:1", "", folder=tmp_path))
