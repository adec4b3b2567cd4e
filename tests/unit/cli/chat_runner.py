"""Runner of `umg chat` without the command line around it. Arguments: the event loop, the gateway's address, then the
model if one is given. Its processes are forked.
"""

import asyncio
import fcntl
import os
import sys
import termios

import grpc
import uvloop

from umg_grpc.cli.chat_command import chat

RUN = {"asyncio": asyncio.run, "uvloop": uvloop.run}


async def talk(address: str, model: str | None) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        await chat(channel, "umg-test-key", model, system="Be brief.", max_tokens=9, temperature=0.0)


def main() -> None:
    if os.isatty(0):
        import readline  # noqa: F401  # as `umg_grpc.cli.chat_command` does; it reads the variables of the terminal

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C typed in the terminal is a signal here
    loop, address, *model = sys.argv[1:]
    RUN[loop](talk(address, model[0] if model else None))
