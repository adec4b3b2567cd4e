"""Administration of channels while the gateway runs: overrides of their settings, live checks, and their details."""
