// The JSON-lines protocol of rebalance-verifier: what the adapters in this folder share.
"use strict";
const {createInterface} = require("node:readline");

/** Answer the requests on stdin, in order, until bye or its end.
 *
 * `assign(cluster, members)` gives member id to [[topic, [partition, ...]], ...]; `userData(owned, generation)`, if
 * there is one, a Buffer. Both may be asynchronous, and what they throw is the answer. */
exports.serve = async (hello, assign, userData) => {
  async function answer({seq, cmd, cluster, members, owned, generation}) {
    try {
      if (cmd === "hello") return {seq, result: {...hello, user_data: userData !== undefined}};
      if (cmd === "user_data") return {seq, result: {user_data: (await userData(owned, generation)).toString("hex")}};
      return {seq, result: {assignment: await assign(cluster, members)}};
    } catch (error) {
      return {seq, errored: {message: String(error), traceback: String(error.stack)}};
    }
  }
  for await (const line of createInterface({input: process.stdin})) {
    const request = JSON.parse(line);
    if (request.cmd === "bye") break;
    process.stdout.write(JSON.stringify(await answer(request)) + "\n");
  }
  process.exit(0);
};

/** The member who leads. A request does not say, so it is one that does not depend on the order of the members. */
exports.leader = (members) => members.reduce((least, member) => (member.id < least.id ? member : least));
