"""Scripted model: the step that it takes for each conversation."""

import io
from dataclasses import dataclass, field
from typing import Any

import pytest
from PIL import Image

from tests.support.providers.scenarios import CUSTOM, Call, Failure, Media, Result, ScenarioRequest
from tests.world.agents import model

WRITE = model.WRITE.format(word="heron", path="/work/a b.txt")
SHELL = "printf %s heron > '/work/a b.txt'"


def request(*texts: str, **more: Any) -> ScenarioRequest:
    return ScenarioRequest(turns=tuple(("user", f"<reminder>Use Write</reminder>\n{text}") for text in texts), **more)


def tool(*fields: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in fields}}


def picture() -> Media:
    data = io.BytesIO()
    Image.new("RGB", (5, 7)).save(data, "PNG")
    return Media("image/png", data.getvalue())


@dataclass(frozen=True)
class Step:
    id: str
    request: ScenarioRequest
    text: str = ""
    calls: tuple[Call, ...] = field(default=())


STEPS = [
    Step("a question", request(model.SPELL.format(word="heron")), "noreh"),
    Step("nothing that it recognizes", request("Make a title."), model.UNKNOWN),
    Step("a word to remember", request(model.REMEMBER.format(word="heron")), model.UNKNOWN),
    Step("a summary of no word", request("Write it into <summary> tags."), "<summary>\nUnderstood.\n</summary>"),
    Step(
        "a summary of a word",
        request(model.REMEMBER_LONG.format(word="heron"), "Generate a <state_snapshot>."),
        "<state_snapshot>\nRemember the word `heroncompacted`.\n</state_snapshot>",
    ),
    Step("the word of a summary", request("Remember the word `heroncompacted`.", model.RECALL), "detcapmocnoreh"),
    Step("the word again", request(model.REMEMBER.format(word="heron"), model.RECALL), "noreh"),
    Step("a word that it was not given", request(model.RECALL), model.NO_WORD),
    Step(
        "a picture",
        request(model.DESCRIBE.format(path="p.png"), media=(picture(),)),
        "It is image/png of 5 x 7 pixels.",
    ),
    Step(
        "a picture that a tool read",
        request(model.DESCRIBE.format(path="p.png"), results=(Result("Read", "", media=(picture(),)),)),
        "It is image/png of 5 x 7 pixels.",
    ),
    Step(
        "a picture to read",
        request(model.DESCRIBE.format(path="/p.png"), tools={"Read": tool("file_path", "offset")}),
        calls=(Call("Read", {"file_path": "/p.png"}),),
    ),
    Step("no picture", request(model.DESCRIBE.format(path="/p.png")), model.NO_PICTURE),
    Step(
        "a file, by a tool that writes files",
        request(WRITE, tools={"Bash": tool("command"), "Write": tool("file_path", "content")}),
        calls=(Call("Write", {"file_path": "/work/a b.txt", "content": "heron"}),),
    ),
    Step(
        "a file, by a shell",
        request(WRITE, tools={"exec_command": tool("cmd", "workdir")}),
        calls=(Call("exec_command", {"cmd": SHELL}),),
    ),
    Step(
        "a file, by a program of a namespace",
        request(WRITE, tools={"functions.exec": CUSTOM}),
        calls=(Call("functions.exec", {}, free=f'text(await tools.exec_command({{cmd: "{SHELL}"}}))'),),
    ),
    Step("a file, without the right tool", request(WRITE, tools={"Look": tool()}), model.NO_TOOL.format(names="Look")),
    Step("a file, as the whole text", request(WRITE), f"{model.DONE}\n\n/work/a b.txt\n```\nheron\n```\n"),
    Step(
        "a file, as a block of changes",
        request(WRITE, system="Answer with a *SEARCH/REPLACE block*."),
        f"{model.DONE}\n\n/work/a b.txt\n```\n<<<<<<< SEARCH\n=======\nheron\n>>>>>>> REPLACE\n```\n",
    ),
    Step(
        "the result of a tool",
        request(WRITE, results=(Result("Write", "File\ncreated"),)),
        f"{model.DONE} File created",
    ),
    Step(
        "JSON",
        request(
            WRITE, json=True, schema={"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
        ),
        '{"ok": false}',
    ),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.id)
def test_the_model_takes_its_step(step: Step) -> None:
    answer = model.answer_to(step.request)
    assert (answer.text, answer.calls, answer.signed) == (step.text, step.calls, False)


def test_the_model_reasons_where_reasoning_is_requested() -> None:
    answer = model.answer_to(request(WRITE, thinking=True, tools={"Write": tool("path", "content")}))
    assert answer.signed
    assert answer.thought
    assert answer.calls


def test_the_model_refuses_a_forbidden_word_in_the_providers_own_words() -> None:
    assert model.answer_to(request(model.REFUSE.format(word="pangolin"))) == Failure(400, model.REFUSED)
