// The assigners of @platformatic/kafka as a target of rebalance-verifier:
//
//   node adapter.js roundrobin|cooperative-sticky
"use strict";
const {version, homepage, bugs} = require("./node_modules/@platformatic/kafka/package.json");
const {leader, serve} = require("../stdio");

async function main() {
  const kafka = await import("@platformatic/kafka");
  const assigners = {
    roundrobin: {assigner: kafka.roundRobinAssigner, protocols: ["eager"], promises: ["balanced-equal"]},
    "cooperative-sticky": {
      assigner: kafka.cooperativeStickyAssigner, protocols: ["cooperative"], promises: ["balanced", "sticky"],
    },
  };
  const name = process.argv[2];
  if (process.argv.length !== 3 || !Object.hasOwn(assigners, name)) {
    console.error(`usage: node adapter.js ${Object.keys(assigners).join("|")}`);
    process.exit(2);
  }
  const {assigner, ...hello} = assigners[name];

  // Consumer's #decodeProtocolSubscriptionMetadata.
  function joined({id, metadata}) {
    const {userData, ...subscription} = kafka.decodeConsumerProtocolSubscription(Buffer.from(metadata, "hex"));
    if (name === kafka.COOPERATIVE_STICKY_ASSIGNOR && subscription.version < 2) {
      subscription.generationId = kafka.decodeCooperativeStickyGeneration(userData);
    }
    return [id, {memberId: id, metadata: userData, ...subscription}];
  }

  // One assignment over the wire, from the leader to its member.
  function crossed(assignments) {
    const encoded = kafka.encodeConsumerProtocolAssignment({version: 0, assignedPartitions: assignments, userData: null});
    const {assignedPartitions} = kafka.decodeConsumerProtocolAssignment(encoded);
    return assignedPartitions.map(({topic, partitions}) => [topic, partitions]);
  }

  // Consumer's #performSyncGroup and #createAssignments. One difference: a subscribed topic without metadata fails
  // the join there, and is left out here.
  function assign({topics}, members) {
    const known = new Map(Object.entries(topics).map(([topic, {length}]) => [topic, {partitionsCount: length}]));
    const group = new Map(members.map(joined));
    const {id} = leader(members);
    const current = new Set(group.get(id).topics.filter((topic) => known.has(topic))); // those of the leader
    const answer = assigner(id, group, current, {topics: known});
    return Object.fromEntries(answer.map((member) => [member.memberId, crossed([...member.assignments.values()])]));
  }

  // Consumer's #encodeProtocolSubscriptionMetadata.
  async function userData(owned, generation) {
    const written = Buffer.alloc(4);
    written.writeInt32BE(owned.length > 0 ? generation : -1);
    return written;
  }

  const writes = name === kafka.COOPERATIVE_STICKY_ASSIGNOR ? userData : undefined;
  serve({name, version, language: "JavaScript", homepage, issues: bugs.url, ...hello}, assign, writes);
}

main();
