"""Command that starts a gateway, runs the commands of the recording, and writes docs/recording.svg."""

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.docs.recording.picture import PAGE, picture
from tests.docs.recording.session import Step, session, shown
from tests.support.processes import serve


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with serve(Path(folder) / "data", environment={"UMG_API_KEY": "sk-umg-of-the-recording"}) as served:
            steps = [Step(step.command, shown(step.output)) for step in await session(served, Path(folder))]
    PAGE.write_text(picture(steps), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")


asyncio.run(main())
