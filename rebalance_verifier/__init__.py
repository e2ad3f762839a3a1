"""Verification of Kafka consumer group rebalancing: the folders of the house are its packages.

PYTEST_DONT_REWRITE
"""

# pytest rewrites the top-level packages of every distribution that has a plugin. Where it finds none with an
# __init__.py, it leaves out the first folder of each path and looks again: it found our `__main__`, `model`,
# `gate` and so on, and warned in every run that __main__ was imported already. The docstring's last word is
# for a program that imports us and then calls pytest.main(): there pytest would warn of this package.
