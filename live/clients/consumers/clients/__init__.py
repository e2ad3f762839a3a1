"""One program for each client: it runs one real consumer and says what that consumer was told."""
