"""Plugins that make the whole suite fast and strict. No test needs them; README.md of this directory describes each."""

pytest_plugins = [
    "tests.machinery.collection",
    "tests.machinery.run_order",
    "tests.machinery.forked_workers",
    "tests.machinery.shared_umg_starts",
    "tests.machinery.event_loops",
    "tests.machinery.exception_groups",
    "tests.machinery.logged_secrets",
    "tests.machinery.checkout_data",
    "tests.machinery.no_system_authorities",
]
