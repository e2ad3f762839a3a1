"""Renderings of a finished run, from its result alone; none of them imports an engine."""
