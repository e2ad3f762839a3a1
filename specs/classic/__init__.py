"""The protocol in logic, file by file as in ``model.classic``."""
