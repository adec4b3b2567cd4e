"""docs/fidelity.md: what becomes of each field on its way to a provider of another format. `make fidelity` writes it."""
