"""Properties that hold under load, faults and kills. Each has a command of its own, and a short form among the tests."""
