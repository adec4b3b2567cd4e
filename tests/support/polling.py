"""Pauses between two looks at a state of which no event reports."""

import asyncio

PAUSE_SECONDS = 0.05


async def pause() -> None:
    """Leave the processor to the gateway that is being looked at. Looks without pauses take it from both."""
    await asyncio.sleep(PAUSE_SECONDS)
