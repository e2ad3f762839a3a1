"""Logs, of whoever wrote them, as rows of ``events.COLUMNS``.

    local.read(["/var/log/app"]).events

Sources may be mixed, in one file too: each line is recognised by itself (``parsing``), whatever is around
it (``envelopes``). A line that belongs to a source and cannot be understood is kept aside; lines of other
loggers are counted and left alone. Then whole clients are settled (``settling``): who wrote which lines, and
what takes the lines before. ``audit.texts`` does the same in tasks of Spark.
"""
