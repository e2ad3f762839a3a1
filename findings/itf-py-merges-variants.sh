#!/bin/sh
# itf-py 0.5.0 with traces of @informalsystems/quint 0.33.1: two messages of a set become one.
#
# Guess before the run: Set(Join(r), Leave(r)) of a Quint specification has two elements when it is read, too, and a
# map from such messages two keys.
# Seen: one element, one key. itf-py reads a variant as a named tuple, and Python compares named tuples by their
# fields alone: Join(r) == Leave(r). The set keeps the first, the map the first key with the last value. Written
# again the trace lacks the message. A tuple and a record of the same values are equal, too. Nothing is said.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work"
echo '{"overrides": {"antlr4ts": "0.5.0-alpha.4"}}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @informalsystems/quint@0.33.1 >npm.log 2>&1 || { cat npm.log; exit 1; }
python3 -m venv env
env/bin/python -m pip install --quiet --disable-pip-version-check itf-py==0.5.0
cat >group.qnt <<'QUINT'
module group {
  type Message = Join({ member: str, generation: int }) | Leave({ member: str, generation: int })
  var sent: Set[Message]
  var times: Message -> int
  val join = Join({ member: "a", generation: 1 })
  val leave = Leave({ member: "a", generation: 1 })
  action init = all { sent' = Set(join, leave), times' = Map(join -> 3, leave -> 4) }
  action step = all { sent' = sent, times' = times }
}
QUINT
timeout 100 npx quint run --backend typescript --max-samples 1 --max-steps 1 --out-itf trace.json group.qnt >quint.log 2>&1 ||
    { cat quint.log; exit 1; }
cat >read.py <<'PYTHON'
import json

import itf_py

with open("trace.json") as file:
    written = json.load(file)
state = written["states"][0]
print("Quint:  ", [message["tag"] for message in state["sent"]["#set"]],
      [(key["tag"], times["#bigint"]) for key, times in state["times"]["#map"]])
read = itf_py.trace_from_json(written).states[0].values
print("itf-py: ", [type(message).__name__ for message in read["sent"]],
      [(type(key).__name__, times) for key, times in read["times"].items()])
print("written:", [message["tag"] for message in itf_py.value_to_json(read["sent"])["#set"]])
PYTHON
timeout 60 env/bin/python read.py >seen
cat seen
cat >"$work/expected" <<'TEXT'
Quint:   ['Join', 'Leave'] [('Join', '3'), ('Leave', '4')]
itf-py:  ['Join'] [('Join', 4)]
written: ['Join']
TEXT
diff expected seen && echo "as seen before"
