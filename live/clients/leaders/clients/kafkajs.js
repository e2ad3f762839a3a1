// node kafkajs.js ADDRESS GROUP TOPICS ASSIGNOR: a consumer of kafkajs that runs; without arguments, several.
"use strict";
const {Kafka, PartitionAssigners, logLevel} = require("kafkajs");

const DAY = 86_400_000;
const assigners = {roundrobin: PartitionAssigners.roundRobin};

function start([address, groupId, topics, assignor], complain, ended) {
  let over = false;
  const kafka = new Kafka({
    brokers: [address], logLevel: logLevel.ERROR, requestTimeout: DAY,
    retry: {initialRetryTime: 1, maxRetryTime: 5, retries: 2, restartOnFailure: async () => !over},
    logCreator: () => ({log}) => complain(JSON.stringify(log)),
  });
  const consumer = kafka.consumer({
    groupId, partitionAssigners: [assigners[assignor]], sessionTimeout: 3_600_000, rebalanceTimeout: DAY,
    heartbeatInterval: 1, maxWaitTimeInMs: 10, allowAutoTopicCreation: false,
  });
  consumer.on(consumer.events.CRASH, ({payload: {error, restart}}) => {
    complain(error);
    if (!restart) ended(0); // nothing is left of it
  });

  async function run() {
    if (!Object.hasOwn(assigners, assignor)) {
      throw new Error(`no assigner is called ${assignor}; there are: ${Object.keys(assigners).join(", ")}`);
    }
    await consumer.connect();
    await consumer.subscribe({topics: topics.split(",")});
    await consumer.run({autoCommit: false, eachMessage: async () => {}});
  }

  run().catch((error) => {
    complain(error);
    ended(1);
  });
  return () => {
    over = true;
    return consumer.disconnect();
  };
}

import("./host.mjs").then(({host}) => host(start));
