"""Everything that is not Kafka, once: files, text, names, tables, verdicts, processes."""
