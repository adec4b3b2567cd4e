"""Picture of a recording: its text is read back, and compared without the values of one run."""

from tests.docs.recording.picture import picture, steps_of
from tests.docs.recording.session import Step, shape


def test_long_lines_are_read_back_from_the_picture() -> None:
    program = "python - <<'END'\nif a < b:\n    print(a)\n\nEND"
    steps = [Step("a --flag " + "x " * 90, "first\n" + "<word> & " * 40 + "\n"), Step("b", ""), Step(program, "1\n")]
    read = steps_of(picture(steps))
    assert [(step.command.split(), step.output.split()) for step in read] == [
        (step.command.split(), step.output.split()) for step in steps
    ]


def test_the_shape_of_an_output_ignores_numbers_and_values() -> None:
    assert shape('{"id": "gen-1", "n": [1]}') == shape('{"id": "gen-2", "n": [7]}') == '{"id": "str", "n": ["int"]}'
    assert shape('data: {"n": 1}\n...') == shape('data: {"n": 2}\n...') == '{"n": "int"} ...'
    assert shape("a  12") == shape("a 3") != shape("b 3")
