"""What outgrows one process, on Spark: campaigns, distributed exploration, audits of logs."""
