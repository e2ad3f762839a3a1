// node platformatic.mjs ADDRESS GROUP TOPICS ASSIGNOR: a consumer of @platformatic/kafka that consumes; without
// arguments, several.
import * as kafka from "@platformatic/kafka";
import {host} from "./host.mjs";

const DAY = 86_400_000;
const assigners = {roundrobin: kafka.roundRobinAssigner, "cooperative-sticky": kafka.cooperativeStickyAssigner};

// What Node.js has since 22, and the library takes for granted.
Promise.withResolvers ??= function () {
  const parts = {};
  parts.promise = new this((resolve, reject) => Object.assign(parts, {resolve, reject}));
  return parts;
};

function start([address, groupId, topics, assignor], complain, ended) {
  if (!Object.hasOwn(assigners, assignor)) {
    complain(`no assigner is called ${assignor}; there are: ${Object.keys(assigners).join(", ")}`);
    ended(2);
    return () => {};
  }
  const consumer = new kafka.Consumer({
    groupId, clientId: "leader", bootstrapBrokers: [address],
    partitionAssigner: assigners[assignor], protocols: [{name: assignor, version: 1}],
    sessionTimeout: 3_600_000, rebalanceTimeout: DAY, heartbeatInterval: 20, requestTimeout: DAY, timeout: DAY,
    metadataMaxAge: 0, retries: true, retryDelay: 1, maxWaitTime: 10, autocommit: false,
  });
  consumer.on("error", complain);
  consumer.consume({topics: topics.split(",")}).then(
    (stream) => {
      stream.on("error", complain);
      stream.resume();
    },
    (error) => {
      complain(error);
      ended(1);
    },
  );
  return () => consumer.close(true);
}

host(start);
