----------------------------------------- MODULE MCBrokenConsumer ------------------------------------------

\* Actions without a guard. A configuration puts one in the place of the original.

EXTENDS MCConsumerProtocol

\* A partition is given whoever holds it.
Given_ignore_current_epoch(m) ==
  /\ member[m]
  /\ \/ wire[m] = "join"
     \/ /\ wire[m] = "heartbeat"
        /\ wire_epoch[m] # 0
        /\ \/ wire_epoch[m] = at[m]
           \/ /\ wire_epoch[m] = previous[m]
              /\ carries[m]
              /\ \A P \in Partition : sent[m, P] => assigned[m, P]
  /\ ~(/\ record[m] = "UNREVOKED_PARTITIONS"
       /\ \E P \in Partition : pending[m, P] /\ (~carries[m] \/ sent[m, P]))
  /\ ~(record[m] = "STABLE" /\ at[m] = target_epoch)
  /\ \A P \in Partition :
       assigned[m, P] /\ ~(target[m, P] /\ subscribed[m, P]) => ~(~carries[m] \/ sent[m, P])
  /\ at' = [at EXCEPT ![m] = target_epoch]
  /\ previous' = [previous EXCEPT ![m] = IF at[m] = target_epoch THEN previous[m] ELSE wire_epoch[m]]
  /\ record' =
       [record EXCEPT ![m] = IF \E P \in Partition : FALSE THEN "UNRELEASED_PARTITIONS" ELSE "STABLE"]
  /\ assigned' =
       [M \in Member, P \in Partition |->
         IF M = m THEN target[m, P] /\ subscribed[m, P] ELSE assigned[M, P]]
  /\ pending' = [M \in Member, P \in Partition |-> IF M = m THEN FALSE ELSE pending[M, P]]
  /\ wire' = [wire EXCEPT ![m] = "answer"]
  /\ wire_epoch' = [wire_epoch EXCEPT ![m] = target_epoch]
  /\ carries' =
       [carries EXCEPT
         ![m] = \/ wire[m] = "join"
                \/ asks[m]
                \/ \E P \in Partition : assigned[m, P] # (target[m, P] /\ subscribed[m, P])]
  /\ asks' = [asks EXCEPT ![m] = FALSE]
  /\ sent' = [M \in Member, P \in Partition |-> IF M = m THEN FALSE ELSE sent[M, P]]
  /\ granted' =
       [M \in Member, P \in Partition |->
         IF M = m
         THEN /\ \/ wire[m] = "join"
                 \/ asks[m]
                 \/ \E Q \in Partition : assigned[m, Q] # (target[m, Q] /\ subscribed[m, Q])
              /\ target[m, P]
              /\ subscribed[m, P]
         ELSE granted[M, P]]
  /\ UNCHANGED << reconcileVars, runs, state, epoch, owned, late, group_epoch, target_epoch, member,
                  target, subscribed >>

============================================================================================================
