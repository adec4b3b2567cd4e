"""Generator of docs/fidelity.md: the result of converting each field for a provider of another format. `make fidelity`
writes it.
"""
