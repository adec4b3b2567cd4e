"""Example: a program that prints a first response."""

import os

from umg_client import connect_sync

with connect_sync(os.environ["UMG_ADDRESS"], os.environ["UMG_API_KEY"]) as client:
    for piece in client.chat("famO-5", "Say hello in five languages."):
        print(piece, end="", flush=True)
    print()
