// node kafkajs.js ADDRESS GROUP TOPICS ASSIGNOR: a consumer of kafkajs that runs.
"use strict";
const {Kafka, PartitionAssigners, logLevel} = require("kafkajs");

const DAY = 86_400_000;
const [address, groupId, topics, assignor] = process.argv.slice(2);
const assigners = {roundrobin: PartitionAssigners.roundRobin};

async function main() {
  if (!Object.hasOwn(assigners, assignor)) {
    throw new Error(`no assigner is called ${assignor}; there are: ${Object.keys(assigners).join(", ")}`);
  }
  const kafka = new Kafka({
    brokers: [address], logLevel: logLevel.ERROR, requestTimeout: DAY,
    retry: {initialRetryTime: 1, maxRetryTime: 5, retries: 2},
  });
  const consumer = kafka.consumer({
    groupId, partitionAssigners: [assigners[assignor]], sessionTimeout: 3_600_000, rebalanceTimeout: DAY,
    heartbeatInterval: 1, maxWaitTimeInMs: 10, allowAutoTopicCreation: false,
  });
  consumer.on(consumer.events.CRASH, ({payload: {error}}) => console.error(error));
  await consumer.connect();
  await consumer.subscribe({topics: topics.split(",")});
  await consumer.run({autoCommit: false, eachMessage: async () => {}});
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
