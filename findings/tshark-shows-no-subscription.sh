#!/bin/sh
# tshark (Wireshark) 4.0.17 of Debian 12: the subscription in a JoinGroup of versions 0 to 5 is "<MISSING>".
#
# Guess before the run: versions that the dissector says it supports (0 to 7) show the bytes of each protocol, and newer ones
# are told as unsupported.
# Seen: newer ones are. In versions 6 and 7 the bytes are there; in version 5, which librdkafka writes, the metadata of each
# protocol is "<MISSING>", the second protocol has no name, and the packet counts as malformed. SyncGroup before
# version 4 loses its assignments in the same way: in a capture of such clients nobody sees who subscribes to what.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir -p "$work/archives/partial" "$work/root"
apt-get install --download-only -y --no-install-recommends -o Debug::NoLocking=1 -o APT::Sandbox::User= \
    -o Dir::Cache::archives="$work/archives" tshark=4.0.17-0+deb12u3 wireshark-common=4.0.17-0+deb12u3 >"$work/apt.log" 2>&1 \
    || { tail -3 "$work/apt.log"; exit 1; }
for package in "$work"/archives/*.deb; do
    dpkg -x "$package" "$work/root"
done
LD_LIBRARY_PATH=$(find "$work/root/usr/lib" -name '*-linux-gnu' | head -1)
export LD_LIBRARY_PATH
python3 - >"$work/hex" <<'PYTHON'
from struct import pack


def text(value, flexible):
    raw = value if isinstance(value, bytes) else value.encode()
    return (bytes([len(raw) + 1]) if flexible else pack(">h", len(raw))) + raw


def held(raw, flexible):
    return (bytes([len(raw) + 1]) if flexible else pack(">i", len(raw))) + raw


def many(items, flexible):
    count = bytes([len(items) + 1]) if flexible else pack(">i", len(items))
    return count + b"".join(item + (b"\0" if flexible else b"") for item in items)


def request(key, version, flexible, *parts):
    end = b"\0" if flexible else b""
    body = pack(">hhi", key, version, 7) + text("client", False) + end + b"".join(parts) + end
    return pack(">i", len(body)) + body


SUBSCRIPTION = bytes.fromhex("00000000000100017400000000")  # version 0, topic t, no user data

def join(version):
    new = version >= 6
    protocols = many([text(name, new) + held(SUBSCRIPTION, new) for name in ("range", "roundrobin")], new)
    return request(11, version, new, text("g", new), pack(">ii", 45000, 300000), text("m", new), text("i", new),
                   text("consumer", new), protocols)


def sync(version):
    new = version >= 4
    protocol = text("consumer", new) + text("range", new) if version >= 5 else b""
    shares = many([text("m", new) + held(bytes(6), new)], new)
    return request(14, version, new, text("g", new), pack(">i", 3), text("m", new), text("i", new), protocol, shares)


for packet in (join(5), join(6), sync(3), sync(5)):
    print("000000", packet.hex(" "), "\n")
PYTHON
bin=$work/root/usr/bin
"$bin/text2pcap" -q -T 40000,9092 "$work/hex" "$work/capture" 2>/dev/null
"$bin/tshark" -r "$work/capture" -d tcp.port==9092,kafka -O kafka 2>/dev/null |
    sed -n 's/^ *\(Kafka (.*Group.*\|Protocol Name: .*\|Protocol Metadata: .*\|Member Assignment: .*\|\[Dissected .*\)/\1/p' | sed 's/: $/:/' >"$work/seen"
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
Kafka (JoinGroup v5 Request)
Protocol Name: range
Protocol Metadata: <MISSING>
Protocol Name:
Protocol Metadata: 726f756e64726f62696e
[Dissected message does not end at the pdu length offset]
Kafka (JoinGroup v6 Request)
Protocol Name: range
Protocol Metadata: 00000000000100017400000000
Protocol Name: roundrobin
Protocol Metadata: 00000000000100017400000000
Kafka (SyncGroup v3 Request)
Member Assignment: <MISSING>
[Dissected message does not end at the pdu length offset]
Kafka (SyncGroup v5 Request)
Protocol Name: range
Member Assignment: 000000000000
TEXT
diff "$work/expected" "$work/seen"
