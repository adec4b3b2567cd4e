"""Alerts and dashboard of a gateway, as tables; `python -m scripts.monitoring` writes their files."""
