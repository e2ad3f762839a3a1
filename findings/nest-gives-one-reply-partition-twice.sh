#!/bin/sh
# @nestjs/microservices 12.1.1 (with kafkajs 2.2.4): its assigner of reply partitions believes every claim.
#
# KafkaReplyPartitionAssigner is what a client of NestJS leads its consumer group with. Each member writes the lowest
# partition of every topic that it was last given into its user data; the leader gives it back.
# Guess before the run: claims are weighed, a partition goes to one member; members get the topics they asked for.
# Seen: a member that was away joins again with its old claim, and both it and the new owner get the partition, in one
# plan; so they do after every later rebalance. A partition that a topic made anew does not have is given on. A member
# is given a topic that it did not ask for.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @nestjs/microservices@12.1.1 @nestjs/common@12.5.1 \
    @nestjs/core@12.5.1 kafkajs@2.2.4 reflect-metadata@0.2.2 rxjs@7.8.2 >npm.log 2>&1 || { cat npm.log; exit 1; }
cat >play.mjs <<'JAVASCRIPT'
import 'reflect-metadata';
import kafkajs from 'kafkajs';
const { ClientKafka } = await import('@nestjs/microservices');
const { KafkaReplyPartitionAssigner } = await import('@nestjs/microservices/helpers/kafka-reply-partition-assigner.js');

const member = topics => ({ topics, client: new ClientKafka({}) });
const rebalance = async (label, counts, group) => {
  const partitions = topic => Array.from({ length: counts[topic] }, (_, partitionId) => ({ partitionId }));
  const assigner = client => new KafkaReplyPartitionAssigner(client, { cluster: { findTopicPartitionMetadata: partitions } });
  const members = Object.entries(group).map(([memberId, { topics, client }]) => ({
    memberId, memberMetadata: assigner(client).protocol({ topics, userData: Buffer.alloc(0) }).metadata,
  }));
  const leader = assigner(Object.values(group)[0].client);
  await new Promise(setImmediate); // the assigner loads kafkajs behind a promise
  const plan = await leader.assign({ members, topics: Object.keys(counts) });
  for (const { memberId, memberAssignment } of plan) {
    const { assignment } = kafkajs.AssignerProtocol.MemberAssignment.decode(memberAssignment);
    group[memberId].client.setConsumerAssignments({ payload: { memberAssignment: assignment } });
    console.log(`${label}: ${memberId} (${group[memberId].topics}) gets ${JSON.stringify(assignment)}`);
  }
};

const [a, b] = [member(['r']), member(['r'])];
await rebalance('both', { r: 2 }, { a, b });
await rebalance('a is away', { r: 2 }, { b });
await rebalance('a is back', { r: 2 }, { a, b });
await rebalance('a third', { r: 2 }, { a, b, c: member(['r']) });
const [d, e] = [member(['r']), member(['r'])];
await rebalance('two', { r: 4 }, { d, e });
await rebalance('made anew', { r: 1 }, { d, e });
await rebalance('two topics', { r: 2, s: 1 }, { f: member(['r', 's']), g: member(['s']) });
JAVASCRIPT
timeout 60 node play.mjs >seen
cat seen
cat >expected <<'TEXT'
both: a (r) gets {"r":[0]}
both: b (r) gets {"r":[1]}
a is away: b (r) gets {"r":[1,0]}
a is back: a (r) gets {"r":[0,1]}
a is back: b (r) gets {"r":[0]}
a third: a (r) gets {"r":[0]}
a third: b (r) gets {"r":[0]}
a third: c (r) gets {"r":[1]}
two: d (r) gets {"r":[0,2]}
two: e (r) gets {"r":[1,3]}
made anew: d (r) gets {"r":[0]}
made anew: e (r) gets {"r":[1]}
two topics: f (r,s) gets {"r":[0],"s":[0]}
two topics: g (s) gets {"r":[1],"s":[]}
TEXT
diff expected seen && echo "as seen before"
