"""Command that runs the commands of the README's start, and writes docs/recording.svg."""

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.docs.recording.picture import PAGE, picture
from tests.docs.recording.session import Step, session, shown


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        steps = [Step(step.command, shown(step.output)) for step in await session(Path(folder))]
    PAGE.write_text(picture(steps), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")


asyncio.run(main())
