"""Consumer groups of KIP-848: coordinator, client, assignors on the server."""
