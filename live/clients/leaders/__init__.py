"""Real clients as leaders of groups whose other members are played: what their assignors answer, by the
wire."""
