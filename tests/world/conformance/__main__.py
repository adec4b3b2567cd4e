"""Command `python -m tests.world.conformance [--peer NAME] [--environments FOLDER]`: checks this gateway and its peers, prints
the results, and, when all of them ran, writes them into docs/conformance.md.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import structlog
from umg_conformance import result_reports
from umg_conformance.check_selection import Target, check

from tests.documents.spec.conftest import CONFIG
from tests.support.gateways import running
from tests.support.proxies import free_ports
from tests.world.conformance import page
from tests.world.conformance.peers import EMBEDDING, IMAGE, KEY, PEERS, RERANK, TEXT, Peer, Provider, install, started
from tests.world.conformance.test_conformance import FAULTS

MODELS = (TEXT, f"embeddings={EMBEDDING}", f"rerank={RERANK}", f"images={IMAGE}")


async def run_all(peers: list[Peer], environments: Path, data: Path) -> list[page.Run]:
    """Return the results of this gateway and of the peers."""
    for peer in peers:
        sys.stderr.write(f"==> installing {peer.requirement}\n")
        await install(peer, environments / peer.requirement.partition("[")[0])
    async with running(CONFIG, data) as gateway:
        provider = Provider(gateway.url, gateway.key)
        own = await check(Target(gateway.url, gateway.key, grpc=gateway.grpc, values=FAULTS))
        runs = [page.Run("This gateway", "", "With the simulated provider, over HTTP and gRPC.", own)]
        for peer in peers:
            sys.stderr.write(f"==> checking {peer.name} {peer.version}\n")
            folder = environments / peer.requirement.partition("[")[0]
            async with started(peer, folder, provider, free_ports(1)[0].http) as url:
                target = Target(url, KEY, faces=peer.faces, models=MODELS, values=FAULTS)
                runs.append(page.Run(peer.name, peer.version, peer.about, await check(target)))
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.world.conformance", description="Peers by the conformance kit."
    )
    parser.add_argument("--peer", action="append", choices=list(PEERS), help="only this one; repeatable")
    parser.add_argument(
        "--environments", type=Path, help="folder of their virtualenvs, used again; else a temporary one"
    )
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    peers = [PEERS[name] for name in given.peer or PEERS]
    with tempfile.TemporaryDirectory() as directory:
        environments = given.environments or Path(directory) / "environments"
        environments.mkdir(parents=True, exist_ok=True)
        runs = asyncio.run(run_all(peers, environments.resolve(), Path(directory) / "data"))
    for run in runs:
        sys.stdout.write(f"{run.name} {run.version}\n\n{result_reports.table(run.results)}\n")
    if len(peers) == len(PEERS):
        page.write(runs, datetime.now(UTC).date())
    sys.exit(1 if any(result.fails_run for result in runs[0].results) else 0)


if __name__ == "__main__":
    main()
