"""The same protocol in first-order logic: what it assumes, what follows, and the proof that it does."""
