"""Generated rows: the pinned packages give them, and our vendors reach them."""

import sys

from scripts.knowledge import packages
from scripts.knowledge.__main__ import LICENCES
from scripts.knowledge.data_files import changes, generated, licences
from tests.world.sdk.runner import installed_or_skipped
from umg_grpc.knowledge.data_files import DATA_FOLDER, read_rows
from umg_grpc.knowledge.model_facts_by_id import GeneratedRow
from umg_grpc.knowledge.price_data_packages import DATA_PACKAGES
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS
from umg_grpc.knowledge.public_price_rows import UnitPrices

HINT = "run `make knowledge` and commit the result"


def test_the_committed_files_are_as_made_from_the_pinned_packages() -> None:
    installed_or_skipped(packages.installed)
    for name, text in generated().items():
        assert (DATA_FOLDER / f"{name}.json").read_text() == text, HINT
    assert LICENCES.read_text() == licences(), HINT


def test_each_package_has_its_version_and_hashes_in_the_lock() -> None:
    locked = packages.LOCK.read_text()
    for package in DATA_PACKAGES.values():
        assert f"{package.name}=={package.version} \\\n    --hash=sha256:" in locked


def test_no_process_imports_the_packages() -> None:
    names = {package.name.replace("-", "_") for package in DATA_PACKAGES.values()}
    assert not names & sys.modules.keys()


def test_generated_rows_are_of_vendors_that_a_preset_reaches() -> None:
    vendors = {row.vendor for row in read_rows("generated_models", GeneratedRow)}
    assert vendors | {row.vendor for row in read_rows("generated_prices", UnitPrices)} <= set(PROVIDER_PRESETS)


def test_generated_rows_are_sorted_and_unique() -> None:
    for rows in (read_rows("generated_models", GeneratedRow), read_rows("generated_prices", UnitPrices)):
        keys = [(row.vendor, row.model) for row in rows]
        assert keys == sorted(set(keys))


def test_a_summary_names_the_added_removed_and_changed_ids() -> None:
    before = '[{"model": "a", "vendor": "v"}, {"model": "b", "vendor": "v", "output": 1}]'
    after = '[{"model": "b", "vendor": "v", "output": 2}, {"model": "c", "vendor": "v"}]'
    assert changes(before, after) == "2 rows\n  1 added: v/c\n  1 removed: v/a\n  1 changed: v/b"
    assert changes(after, after) == "2 rows\n  nothing changed"
