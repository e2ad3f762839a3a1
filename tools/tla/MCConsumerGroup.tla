------------------------------------------ MODULE MCConsumerGroup ------------------------------------------

\* What TLC is to search of ConsumerGroup: definitions of which each configuration takes some.

EXTENDS ConsumerGroup

\* Every consumer has a member id. Which one is the same to all of them.
MCof == CHOOSE f \in [Member -> Consumer] : \A c \in Consumer : \E m \in Member : f[m] = c

MCstatic == [c \in Consumer |-> FALSE]

MChonest == [c \in Consumer |-> TRUE]

MCcooperative == [a \in Assignor |-> TRUE]

\* Every consumer lists every assignor, and none is EAGER.
InitCooperative ==
  /\ Init
  /\ \A C \in Consumer, A \in Assignor : lists[C, A] /\ ~eager[C]

\* Of the faults only: start.
NextStart ==
  \/ Step
  \/ \E c \in Consumer : Start(c)

\* Of the faults only: start, disconnect, failover.
NextStartDisconnectFailover ==
  \/ Step
  \/ \E c \in Consumer : Start(c)
  \/ \E c \in Consumer : Disconnect(c)
  \/ Failover

\* Of the faults only: start, subscribe, crash, close, disconnect, failover.
NextStartSubscribeCrashCloseDisconnectFailover ==
  \/ Step
  \/ \E c \in Consumer : Close(c)
  \/ \E c \in Consumer : Subscribe(c)
  \/ \E c \in Consumer : Start(c)
  \/ \E c \in Consumer : Crash(c)
  \/ \E c \in Consumer : Disconnect(c)
  \/ Failover

============================================================================================================
