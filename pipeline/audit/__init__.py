"""From the logs of groups that ran to findings."""
