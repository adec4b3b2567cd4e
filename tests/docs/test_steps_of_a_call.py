"""Page on the architecture: its table of steps is that of the pipelines of a running gateway."""

from pathlib import Path

import pytest

from tests.docs.tables import DOCS, quoted, rows
from tests.support.gateways import running
from umg_grpc.service.pipeline.step_order import INPUTS, PIPELINE_STEPS

PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
SIMULATED = "channels:\n  - {name: simulated, protocols: [sandbox], models: [m]}\n"


async def test_the_table_has_the_steps_of_each_operation(tmp_path: Path) -> None:
    async with running(SIMULATED, tmp_path) as gateway:
        service = gateway.service._operations
        text, images, video = service._generation._pipeline, service._images._pipeline, service._videos
        [unary, *others] = [servicer._pipeline for servicer in service._unary]
        taken = [text.steps, images.steps, unary.steps, video.creation.steps]
        assert all({*other.steps, INPUTS} == {*unary.steps} for other in others)
        assert video.remixes.steps == video.creation.steps
    table = [[f"`{step.name}`", *("yes" if step in steps else "" for steps in taken)] for step in PIPELINE_STEPS]
    assert rows(PAGE, "The steps of a call") == table


@pytest.mark.parametrize("name", quoted(PAGE.partition("A pipeline adds a step by a method in")[2].partition(".")[0]))
def test_the_methods_by_which_a_pipeline_adds_a_step_exist(name: str) -> None:
    sources = (DOCS.parent / "umg_grpc" / "service" / "pipeline").glob("*_pipeline.py")
    assert any(f"def {name}(" in source.read_text(encoding="utf-8") for source in sources)
