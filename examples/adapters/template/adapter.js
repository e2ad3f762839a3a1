// A target of rebalance-verifier in JavaScript, to start from: `rebalance check --adapter --validate -- node adapter.js`.
// It is sticky in the simplest way: keep what was assigned last, deal out the rest. Replace HELLO, assign, userData.
"use strict";

const HELLO = {
  name: "template", version: "1.0", language: "JavaScript",
  protocols: ["eager"], // "cooperative" if it withholds what changes its owner
  promises: [], // what its documentation claims: see docs/how-to/judge-in-another-language.md
  user_data: true, // false if its members write none: userData is then never asked
};

/** What a member writes into its subscription that was last assigned `owned`, [[topic, [partition, ...]], ...], in
 * `generation`, -1 before the first. Any bytes: here generation and partitions, as JSON. */
function userData(owned, generation) {
  return Buffer.from(JSON.stringify({generation, owned}));
}

/** Member id to partitions. `topics` has for each topic an array with one entry per partition; a topic that the
 * leader does not know is absent, though members may subscribe to it. */
function assign(topics, members) {
  const found = new Map(members.map(({id}) => [id, []]));
  const taken = new Set();
  const give = (id, topic, partition) => {
    taken.add(`${topic}/${partition}`);
    found.get(id).push([topic, [partition]]);
  };
  // The newer claim first, and of claims of equal age that of the lesser id: nothing may depend on the order of members.
  const claims = members.map((member) => ({...member, ...remembered(member.user_data)}));
  claims.sort((a, b) => b.since - a.since || (a.id < b.id ? -1 : 1));
  for (const {id, topics: subscribed, kept} of claims) {
    for (const [topic, partitions] of kept) {
      if (!subscribed.includes(topic) || !Object.hasOwn(topics, topic)) continue;
      for (const partition of partitions) {
        if (partition < topics[topic].length && !taken.has(`${topic}/${partition}`)) give(id, topic, partition);
      }
    }
  }
  for (const topic of Object.keys(topics).sort()) {
    const subscribers = claims.filter((member) => member.topics.includes(topic)).map(({id}) => id).sort();
    topics[topic].forEach((_racks, partition) => {
      if (taken.has(`${topic}/${partition}`) || !subscribers.length) return;
      give(subscribers.reduce((a, b) => (found.get(b).length < found.get(a).length ? b : a)), topic, partition);
    });
  }
  return Object.fromEntries(found);
}

/** What userData wrote; nothing if another client wrote it, or nobody did. */
function remembered(digits) {
  try {
    const {generation, owned} = JSON.parse(Buffer.from(digits, "hex").toString());
    return {since: generation, kept: owned.filter(([topic]) => typeof topic === "string")};
  } catch {
    return {since: -1, kept: []};
  }
}

// --- the protocol: one JSON object per line, one reply per request, in order; print to stderr, never to stdout ---

function answer({seq, cmd, cluster, members, owned, generation}) {
  try {
    if (cmd === "hello") return {seq, result: HELLO};
    if (cmd === "user_data") return {seq, result: {user_data: userData(owned, generation).toString("hex")}};
    return {seq, result: {assignment: assign(cluster.topics, members)}};
  } catch (error) {
    return {seq, errored: {message: String(error), traceback: String(error.stack)}};
  }
}

require("node:readline").createInterface({input: process.stdin}).on("line", (line) => {
  const request = JSON.parse(line);
  if (request.cmd === "bye") process.exit(0);
  process.stdout.write(JSON.stringify(answer(request)) + "\n");
});
