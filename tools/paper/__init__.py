"""docs/paper: its tables from the code and from what was measured, and the whole as one page of HTML."""
