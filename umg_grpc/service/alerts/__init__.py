"""Alerts: rules over usage, budgets and channels, and notifications of operators about conditions that hold."""
