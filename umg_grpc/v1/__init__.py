"""The generated schema, under two names: `pb` holds every message and enum, `rpc` every stub and servicer."""
