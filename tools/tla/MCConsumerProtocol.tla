---------------------------------------- MODULE MCConsumerProtocol -----------------------------------------

\* What TLC is to search of ConsumerProtocol: which faults there are.

EXTENDS ConsumerProtocol

\* Of the faults only: start.
NextStart ==
  \/ Step
  \/ \E m \in Member : Start(m)

\* Of the faults only: start, disconnected, raised.
NextStartDisconnectedRaised ==
  \/ Step
  \/ \E m \in Member : Start(m)
  \/ \E m \in Member : Disconnected(m)
  \/ \E g \in Generation : Raised(g)

\* Of the faults only: start, ends, disconnected, removed.
NextStartEndsDisconnectedRemoved ==
  \/ Step
  \/ \E m \in Member : Start(m)
  \/ \E m \in Member : Ends(m)
  \/ \E m \in Member : Disconnected(m)
  \/ \E m \in Member, g \in Generation : Removed(m, g)

============================================================================================================
