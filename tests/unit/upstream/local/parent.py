"""Small gateway to be killed: prints the pid of its child once that is ready, then waits."""

import asyncio

import uvloop

from umg_grpc.upstream.local import TEXT_MODELS
from umg_grpc.upstream.local.model_process_supervisor import LocalModel


async def main() -> None:
    (model,) = TEXT_MODELS
    weights = model.weights()
    assert weights is not None
    local = LocalModel(model, weights)
    await local.start()
    print("pid", (await local.wait_ready(30)).pid, flush=True)  # noqa: T201 - what the test reads
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
