// The assigners of kafkajs, the built-in one or your own, as a target of rebalance-verifier:
//
//   node adapter.js [MODULE [PROMISE,...]]     MODULE exports ({cluster}) => ({name, version, assign, protocol})
"use strict";
const {resolve} = require("node:path");
const {AssignerProtocol: {MemberAssignment, MemberMetadata}, PartitionAssigners} = require("kafkajs");
const {version, homepage, bugs} = require("kafkajs/package.json");
const {leader, serve} = require("../stdio");

const [module_, promises = module_ ? "" : "balanced-equal"] = process.argv.slice(2);

let topics; // the leader's metadata, at the time of the request
const cluster = {
  findTopicPartitionMetadata: (topic) => (topics.get(topic) ?? []).map((_, partitionId) => ({partitionId})),
};
const assigner = (module_ ? require(resolve(module_)) : PartitionAssigners.roundRobin)({cluster});

// What ConsumerGroup does in SYNC on the leader, and then each member with its bytes. A member that the assigner
// leaves out is left out here too; the broker sends it empty bytes, which kafkajs reads as no partitions.
async function assign({topics: known}, members) {
  topics = new Map(Object.entries(known));
  const decode = ({metadata}) => MemberMetadata.decode(Buffer.from(metadata, "hex"));
  const answer = await assigner.assign({
    members: members.map(({id, metadata}) => ({memberId: id, memberMetadata: Buffer.from(metadata, "hex")})),
    topics: decode(leader(members)).topics, // those of the leader, whatever the others subscribe to
  });
  return Object.fromEntries(answer.map(({memberId, memberAssignment}) => [
    memberId, Object.entries(MemberAssignment.decode(memberAssignment).assignment),
  ]));
}

// protocol() is told the topics, and nothing about what the member was assigned.
const userData = () => MemberMetadata.decode(assigner.protocol({topics: []}).metadata).userData;

serve({
  name: assigner.name, version, language: "JavaScript", homepage, issues: bugs.url,
  protocols: ["eager"], promises: promises.split(",").filter(Boolean),
}, assign, userData);
