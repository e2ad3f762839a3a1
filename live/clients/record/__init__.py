"""Scenarios played with real clients, and what their events say."""
