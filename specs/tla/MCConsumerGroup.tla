------------------------------------------ MODULE MCConsumerGroup ------------------------------------------

EXTENDS ConsumerGroup, TLC

CONSTANTS c1
CONSTANTS m1
CONSTANTS p1
CONSTANTS a1

MCConsumer == {c1}
MCMember == {m1}
MCPartition == {p1}
MCAssignor == {a1}

MCof == [m \in Member |-> CHOOSE c \in Consumer : TRUE]
MCstatic == [c \in Consumer |-> FALSE]
MChonest == [c \in Consumer |-> TRUE]
MCcooperative == [a \in Assignor |-> TRUE]

============================================================================================================
