"""Command `make vendors`: news in the newest SDKs, public data and agents that the gateway does not handle."""
