#!/bin/sh
# prometheus-kafka-consumer-group-exporter 0.5.5 beside a broker of Kafka 4.4.0: it knows no offset of any group.
#
# It reads __consumer_offsets itself. Guess before the run: it complains of the records of newer groups (consumer,
# share and streams groups write keys of versions 3 and more) and goes on; offsets, in keys of version 1, are right.
# Seen: keys are read, and not one value: this broker writes every commit, of classic groups too, in version 4, with
# compact strings and the id of the topic. The reader knows versions 0 to 3, says "unsupported version 4" for each
# commit, and has no offset to export.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kafka_stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
KAFKA_PID=''
. "$here/lib/broker.sh"
python3 -m venv "$work/env"
"$work/env/bin/python" -m pip install --quiet --disable-pip-version-check kafka-python==3.0.12
"$work/env/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps prometheus-kafka-consumer-group-exporter==0.5.5
kafka_start "$work"
tool TopicCommand --bootstrap-server "$KAFKA" --create --topic t --partitions 1 >/dev/null
cat >"$work/read.py" <<'PYTHON'
import importlib.util
import logging
import sys

import kafka

logging.basicConfig(format="%(message)s", stream=sys.stdout)
logging.getLogger("kafka").setLevel(logging.CRITICAL)
# The module of the exporter that reads records, without the package around it, which needs kafka-python 1.
package = importlib.util.find_spec("prometheus_kafka_consumer_group_exporter").submodule_search_locations[0]
spec = importlib.util.spec_from_file_location("parsing", f"{package}/parsing.py")
parsing = importlib.util.module_from_spec(spec)
spec.loader.exec_module(parsing)

t, offsets = kafka.TopicPartition("t", 0), kafka.TopicPartition("__consumer_offsets", 0)
member = kafka.KafkaConsumer(bootstrap_servers=sys.argv[1], group_id="g", enable_auto_commit=False)
member.assign([t])
member.commit({t: kafka.OffsetAndMetadata(7, "", -1)})
print("committed", member.committed(t))
member.close(autocommit=False)
reader = kafka.KafkaConsumer(bootstrap_servers=sys.argv[1], enable_auto_commit=False)
reader.assign([offsets])
reader.seek_to_beginning(offsets)
records = [record for _ in range(10) for polled in reader.poll(500).values() for record in polled]
for record in records:
    if record.key[:2] == b"\0\1":
        print("key:", parsing.parse_key(record.key))
        print("value of version", int.from_bytes(record.value[:2], "big"))
        print("read as:", parsing.parse_value(record.value))
reader.close(autocommit=False)
PYTHON
timeout 100 "$work/env/bin/python" "$work/read.py" "$KAFKA" >"$work/seen"
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
committed 7
key: {'version': 1, 'group': 'g', 'topic': 't', 'partition': 0}
value of version 4
Can't parse __consumer_offsets topic message value with unsupported version 4.
read as: None
TEXT
diff "$work/expected" "$work/seen" && echo "as seen before"
