"""Pure state and pure steps of the protocol: values, wire formats, reference assignors, design switches."""
