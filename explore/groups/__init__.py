"""Named groups to explore, rolling upgrades, and the group that shows each bug."""
