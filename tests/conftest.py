"""What all tests share: pytest wants plugins named here, and Hypothesis its settings."""

import os

from hypothesis import settings

pytest_plugins = ["pytester"]

# A Java of a few seconds spends most of them compiling and collecting in parallel what it never runs again.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# The same examples on every machine, and no verdict by the clock: both set here, not inherited from
# the profile that Hypothesis loads under CI.
settings.register_profile(
    "suite", settings.get_profile("default"), derandomize=True, database=None, deadline=None, print_blob=True
)
settings.load_profile("suite")
