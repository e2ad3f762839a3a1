"""What people run: command line, pytest plugin, targets, traces, reports."""
