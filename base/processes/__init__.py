"""Processes of other programs, and the tools that make them: JVM, Maven, pip."""
