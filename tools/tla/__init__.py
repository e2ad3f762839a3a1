"""The protocol as TLA+ text, written from the same terms."""
