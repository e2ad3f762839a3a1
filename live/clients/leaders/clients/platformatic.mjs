// node platformatic.mjs ADDRESS GROUP TOPICS ASSIGNOR: a consumer of @platformatic/kafka that consumes.
import * as kafka from "@platformatic/kafka";

const DAY = 86_400_000;
const [address, groupId, topics, assignor] = process.argv.slice(2);
const assigners = {roundrobin: kafka.roundRobinAssigner, "cooperative-sticky": kafka.cooperativeStickyAssigner};

if (!Object.hasOwn(assigners, assignor)) {
  console.error(`no assigner is called ${assignor}; there are: ${Object.keys(assigners).join(", ")}`);
  process.exit(2);
}
// What Node.js has since 22, and the library takes for granted.
Promise.withResolvers ??= function () {
  const parts = {};
  parts.promise = new this((resolve, reject) => Object.assign(parts, {resolve, reject}));
  return parts;
};
const consumer = new kafka.Consumer({
  groupId, clientId: "leader", bootstrapBrokers: [address],
  partitionAssigner: assigners[assignor], protocols: [{name: assignor, version: 1}],
  sessionTimeout: 3_600_000, rebalanceTimeout: DAY, heartbeatInterval: 20, requestTimeout: DAY, timeout: DAY,
  metadataMaxAge: 0, retries: true, retryDelay: 1, maxWaitTime: 10, autocommit: false,
});
consumer.on("error", (error) => console.error(error));
try {
  const stream = await consumer.consume({topics: topics.split(",")});
  stream.on("error", (error) => console.error(error));
  stream.resume();
} catch (error) {
  console.error(error);
  process.exit(1);
}
