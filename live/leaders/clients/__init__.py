"""The programs that start a consumer of each client and poll: nothing of this project is imported there."""
