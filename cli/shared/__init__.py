"""What the commands share: kinds of values, options, targets, traces and reports on the command line."""
