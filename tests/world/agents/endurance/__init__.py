"""Endurance of the programs: one long task each, with a compaction, failures of the provider and a restart of the gateway."""
