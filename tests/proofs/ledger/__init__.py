"""Proof of the ledger: every call that a provider served is charged exactly once, through faults and SIGKILLs."""
