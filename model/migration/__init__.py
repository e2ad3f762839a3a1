"""A group on its way between the protocols: classic members, their coordinator, the machine."""
