# Sourced by findings that need a real broker: one node of Apache Kafka 4.4.0 on loopback.
# `jars FOLDER ARTIFACT:VERSION...` copies artifacts of org.apache.kafka and what they need into FOLDER.
# `kafka_start FOLDER SETTING...` starts the node; $KAFKA is its address, $JARS its class path. `kafka_stop` ends it.
# `tool CLASS ARGUMENTS...` runs a class of org.apache.kafka.tools without the warnings of its logging library.

jars() {
    folder=$1
    shift
    mkdir -p "$folder"
    {
        echo '<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId><version>1</version><dependencies>'
        for artifact; do
            echo "<dependency><groupId>org.apache.kafka</groupId><artifactId>${artifact%:*}</artifactId><version>${artifact#*:}</version></dependency>"
        done
        echo '</dependencies></project>'
    } >"$folder.xml"
    timeout 600 mvn -q -B -f "$folder.xml" dependency:copy-dependencies -DoutputDirectory="$folder" >"$folder.log" 2>&1 || { cat "$folder.log"; return 1; }
}

kafka_start() {
    jars "$1/jars" kafka_2.13:4.4.0 kafka-tools:4.4.0
    JARS="$1/jars/*"
    settings=$(shift && printf '%s\n' "$@")
    set -- "$1" $(python3 -c 'import socket
held = [socket.socket() for _ in "ab"]
for one in held: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in held))')
    KAFKA=127.0.0.1:$2
    cat >"$1/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$3
advertised.listeners=PLAINTEXT://127.0.0.1:$2
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:$3
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$1/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
$settings
PROPERTIES
    timeout 60 java -cp "$JARS" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$1/server.properties" >"$1/format.log" 2>&1 || { cat "$1/format.log"; return 1; }
    timeout 900 java -Xmx512m -cp "$JARS" kafka.Kafka "$1/server.properties" >"$1/kafka.log" 2>&1 &
    KAFKA_PID=$!
    tries=0
    until tool TopicCommand --bootstrap-server "$KAFKA" --list >/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 5 ] || { tail "$1/kafka.log"; return 1; }
    done
}

kafka_stop() {
    kill "$KAFKA_PID" 2>/dev/null || true
    wait "$KAFKA_PID" 2>/dev/null || true
}

tool() {
    class=$1
    shift
    timeout 90 java -cp "$JARS" "org.apache.kafka.tools.$class" "$@" 2>"${JARS%/jars/*}/tool.err"
}
