--------------------------------------------- MODULE MCBroken ----------------------------------------------

\* Actions with one decision made otherwise. A configuration puts one in the place of the original, and TLC
\* finds what breaks.

EXTENDS MCConsumerGroup

\* What somebody claims may be offered to somebody else: no withholding.
\* onLeaderElected: SyncGroup carries the assignor's answer. Of that only the contract is known.
Lead_newest_claim(c) ==
  /\ life[c] = "UP"
  /\ wire[c] = "join_ok"
  /\ state[c] = "PREPARING_REBALANCE"
  /\ leading[c]
  /\ group = "CompletingRebalance" \/ group = "Stable"
  /\ current = wire_generation[c]
  /\ state' = [state EXCEPT ![c] = "COMPLETING_REBALANCE"]
  /\ identified' = [identified EXCEPT ![c] = TRUE]
  /\ id' = [M \in Member |-> IF of[M] = c THEN names[M] ELSE id[M]]
  /\ generation' = [generation EXCEPT ![c] = wire_generation[c]]
  /\ outdated' = [outdated EXCEPT ![c] = FALSE]
  /\ wire' = [wire EXCEPT ![c] = "sync"]
  /\ error' = [error EXCEPT ![c] = "no_error"]
  /\ leading' = [leading EXCEPT ![c] = TRUE]
  /\ sent' = [C \in Consumer, P \in Partition |-> IF C = c THEN 0 ELSE sent[C, P]]
  /\ sent_list' = [C \in Consumer, A \in Assignor |-> IF C = c THEN FALSE ELSE sent_list[C, A]]
  /\ sent_topics' = [C \in Consumer, P \in Partition |-> IF C = c THEN FALSE ELSE sent_topics[C, P]]
  /\ granted' = [C \in Consumer, P \in Partition |-> IF C = c THEN FALSE ELSE granted[C, P]]
  /\ \E new \in [Member \X Partition -> BOOLEAN] :
       offer' =
         [C \in Consumer, M \in Member, P \in Partition |-> IF C = c THEN new[M, P] ELSE offer[C, M, P]]
  /\ \A M, N \in Member, P \in Partition : offer'[c, M, P] /\ offer'[c, N, P] => M = N
  /\ \A M \in Member, P \in Partition : offer'[c, M, P] => member[M]
  /\ \A M, N \in Member, P \in Partition :
       ~(offer'[c, M, P] /\ member[N] /\ M # N /\ silent[N] /\ claim[N, P] # 0)
  /\ UNCHANGED << strayVars, logVars, life, since, told, prepare, rejoin, resubscribed, unseen,
                  subscribes, subscribed, received, got, eager, lists, names, wire_generation, left,
                  left_claim, left_list, left_new, left_new_list, left_sync, left_decision, group,
                  current, leads, chosen, pending, member, joined, synced, silent, given_up, claim,
                  supports, topics, assigned >>

\* What somebody claims may be offered to somebody else: no withholding.
\* The leader's SyncGroup of the present generation, in time.
\*
\* Nobody's claim has changed since it was sent, or the group would be in another join phase. So what
\* it assigns keeps the contract.
LeftDecisionArrives_newest_claim(m) ==
  /\ left_decision[m, current]
  /\ member[m]
  /\ leads[m]
  /\ group = "CompletingRebalance"
  /\ group' = "Stable"
  /\ synced' = [synced EXCEPT ![m] = TRUE]
  /\ log_group' = "Stable"
  /\ log_current' = current
  /\ log_chosen' = [A \in Assignor |-> chosen[A]]
  /\ log_leads' = [M \in Member |-> leads[M]]
  /\ log_member' = [M \in Member |-> member[M]]
  /\ log_claim' = [M \in Member, P \in Partition |-> claim[M, P]]
  /\ log_supports' = [M \in Member, A \in Assignor |-> supports[M, A]]
  /\ log_topics' = [M \in Member, P \in Partition |-> topics[M, P]]
  /\ assigned' \in [Member \X Partition -> BOOLEAN]
  /\ \A M \in Member, P \in Partition : assigned'[M, P] => member[M]
  /\ \A M, N \in Member, P \in Partition : assigned'[M, P] /\ assigned'[N, P] => M = N
  /\ \A M \in Member, P \in Partition : assigned'[M, P] => member[M]
  /\ \A M, N \in Member, P \in Partition :
       ~(assigned'[M, P] /\ member[N] /\ M # N /\ silent[N] /\ claim[N, P] # 0)
  /\ log_assigned' \in [Member \X Partition -> BOOLEAN]
  /\ \A M \in Member, P \in Partition : log_assigned'[M, P] <=> assigned'[M, P]
  /\ left_sync' \in [Member \X Generation -> BOOLEAN]
  /\ \A M \in Member, G \in Generation : left_sync'[M, G] => left_sync[M, G]
  /\ left_decision' \in [Member \X Generation -> BOOLEAN]
  /\ \A M \in Member, G \in Generation :
       left_decision'[M, G] => left_decision[M, G] /\ left_sync'[M, G]
  /\ UNCHANGED << wireVars, strayVars, life, state, generation, identified, id, since, told, prepare,
                  rejoin, resubscribed, outdated, unseen, subscribes, subscribed, received, got, eager,
                  lists, left, left_claim, left_list, left_new, left_new_list, current, leads, chosen,
                  pending, member, joined, silent, given_up, claim, supports, topics >>

\* JoinGroup claims nothing.
\* JoinGroup leaves, and claims what is owned, since when it is owned.
Join_claims_always_empty(c) ==
  /\ honest[c]
  /\ life[c] = "UP"
  /\ subscribes[c]
  /\ rejoin[c] \/ resubscribed[c] \/ outdated[c]
  /\ wire[c] = "idle"
  /\ ~received[c]
  /\ ~prepare[c]
  /\ wire' = [wire EXCEPT ![c] = IF identified[c] THEN "join" ELSE "join_new"]
  /\ names' = [M \in Member |-> IF of[M] = c THEN id[M] ELSE names[M]]
  /\ wire_generation' = [wire_generation EXCEPT ![c] = 0]
  /\ error' = [error EXCEPT ![c] = "no_error"]
  /\ leading' = [leading EXCEPT ![c] = FALSE]
  /\ sent' = [C \in Consumer, P \in Partition |-> IF C = c THEN 0 ELSE sent[C, P]]
  /\ sent_list' = [C \in Consumer, A \in Assignor |-> IF C = c THEN lists[c, A] ELSE sent_list[C, A]]
  /\ sent_topics' =
       [C \in Consumer, P \in Partition |-> IF C = c THEN subscribed[c, P] ELSE sent_topics[C, P]]
  /\ offer' =
       [C \in Consumer, M \in Member, P \in Partition |-> IF C = c THEN FALSE ELSE offer[C, M, P]]
  /\ granted' = [C \in Consumer, P \in Partition |-> IF C = c THEN FALSE ELSE granted[C, P]]
  /\ state' = [state EXCEPT ![c] = "PREPARING_REBALANCE"]
  /\ rejoin' = [rejoin EXCEPT ![c] = TRUE]
  /\ resubscribed' = [resubscribed EXCEPT ![c] = FALSE]
  /\ UNCHANGED << strayVars, logVars, life, generation, identified, id, since, told, prepare, outdated,
                  unseen, subscribes, subscribed, received, got, eager, lists, left, left_claim,
                  left_list, left_new, left_new_list, left_sync, left_decision, group, current, leads,
                  chosen, pending, member, joined, synced, silent, given_up, claim, supports, topics,
                  assigned >>

============================================================================================================
