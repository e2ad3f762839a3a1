"""Groups on their way between the protocols, on the shipped coordinator: played, searched, written up."""
