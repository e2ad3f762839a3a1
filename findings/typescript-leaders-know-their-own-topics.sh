#!/bin/sh
# kafka-ts 1.5.0 and @kafkats/client 0.12.0 beside a broker 4.4.0: a leader gives out its own topics, whoever else subscribes to what.
#
# Guess before the run: two members of one group subscribe to a topic each (a deployment adds one, half way), and each of
# them gets all partitions of its topic, as with every other client.
# Seen: @kafkats/client's leader leaves the other topic to nobody, for as long as it leads. kafka-ts's leader does that too,
# and gives half of its own topic to the member that did not subscribe to it. That member fails, joins again, and so on:
# the group never settles, and half of the topic is read by nobody.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kafka_stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
KAFKA_PID=''
. "$here/lib/broker.sh"
kafka_start "$work"
for topic in x:4 y:2; do
    tool TopicCommand --bootstrap-server "$KAFKA" --create --topic "${topic%:*}" --partitions "${topic#*:}" >/dev/null
done
npm install --prefix "$work" --no-audit --no-fund --ignore-scripts kafka-ts@1.5.0 @kafkats/client@0.12.0 >/dev/null
cat >"$work/members.mjs" <<'JS'
import kafkaTs from "kafka-ts";
import { KafkaClient } from "@kafkats/client";

const [host, port] = process.argv[2].split(":");
const seconds = (n) => new Promise((done) => setTimeout(done, n * 1000));
const shown = (partitions) => partitions.sort().join(" ") || "nothing";

async function ofKafkaTs(name, topic) {
    const client = kafkaTs.createKafkaClient({ clientId: name, bootstrapServers: [{ host, port: Number(port) }] });
    const consumer = await client.startConsumer({ groupId: "a", topics: [topic], onBatch: () => {} });
    const member = { rebalances: 0, held: () => Object.entries(consumer.metadata.getAssignment())
        .flatMap(([topic, partitions]) => partitions.map((partition) => `${topic}-${partition}`)) };
    consumer.on("rebalanceInProgress", () => member.rebalances++);
    return member;
}

async function ofKafkats(name, topic) {
    const client = new KafkaClient({ brokers: [`${host}:${port}`], clientId: name });
    await client.connect();
    const consumer = client.consumer({ groupId: "b" });
    const held = new Set();
    const key = ({ topic, partition }) => `${topic}-${partition}`;
    consumer.on("partitionsAssigned", (partitions) => partitions.forEach((one) => held.add(key(one))));
    consumer.on("partitionsRevoked", (partitions) => partitions.forEach((one) => held.delete(key(one))));
    consumer.runEach(topic, async () => {});
    return { held: () => [...held] };
}

console.log = console.error = () => {}; // kafka-ts writes each failure there
const a = await ofKafkaTs("first", "x");
await seconds(5);
const b = await ofKafkaTs("second", "y");
const c = await ofKafkats("first", "x");
await seconds(8);
const d = await ofKafkats("second", "y");
await seconds(15);
const settled = a.rebalances < 5;
process.stdout.write(`kafka-ts: x gets ${shown(a.held())}, y gets ${shown(b.held())}, ${settled ? "settled" : "rebalances without end"}\n`);
process.stdout.write(`@kafkats/client: x gets ${shown(c.held())}, y gets ${shown(d.held())}\n`);
process.exit(0);
JS
timeout 120 node "$work/members.mjs" "$KAFKA" 2>/dev/null >"$work/seen"
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
kafka-ts: x gets x-0 x-2, y gets x-1 x-3, rebalances without end
@kafkats/client: x gets x-0 x-1 x-2 x-3, y gets nothing
TEXT
diff "$work/expected" "$work/seen"
