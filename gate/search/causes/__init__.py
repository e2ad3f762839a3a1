"""Why a clause breaks: what has to be in a scenario, how real that is, and one counterexample for each."""
