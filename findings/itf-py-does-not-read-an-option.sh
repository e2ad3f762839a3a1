#!/bin/sh
# itf-py 0.5.0 with traces of @informalsystems/quint 0.33.1: an option of a number is an error.
#
# Guess before the run: what Quint writes is read: Some(1) and None, a variant that carries a set, a map or nothing,
# a record with a field `from`.
# Seen: ValueError for each of them. itf-py makes a named tuple of a variant and takes the object that ITF puts around
# a number ("#bigint"), a tuple, a set or a map for a record of the variant's; the names of variants and of fields
# must be Python's identifiers and no keywords, so `None`, `from` and `_id` fail by their name alone. A variant of a
# record, a string or a boolean is read. A whole trace is lost for one such value.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work"
echo '{"overrides": {"antlr4ts": "0.5.0-alpha.4"}}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @informalsystems/quint@0.33.1 >npm.log 2>&1 || { cat npm.log; exit 1; }
python3 -m venv env
env/bin/python -m pip install --quiet --disable-pip-version-check itf-py==0.5.0
cat >values.qnt <<'QUINT'
module values {
  type Option = Some(int) | None
  type Reply = Owned(Set[int]) | Done | Named({ member: str }) | Failed(str)
  var some: Option
  var none: Option
  var owned: Reply
  var done: Reply
  var named: Reply
  var failed: Reply
  var message: { from: str, to: str }
  action init = all {
    some' = Some(1), none' = None, owned' = Owned(Set(1, 2)), done' = Done, named' = Named({ member: "a" }),
    failed' = Failed("fenced"), message' = { from: "a", to: "b" }
  }
  action step = all {
    some' = some, none' = none, owned' = owned, done' = done, named' = named, failed' = failed, message' = message
  }
}
QUINT
timeout 100 npx quint run --backend typescript --max-samples 1 --max-steps 1 --out-itf trace.json values.qnt >quint.log 2>&1 ||
    { cat quint.log; exit 1; }
cat >read.py <<'PYTHON'
import json

import itf_py

with open("trace.json") as file:
    written = json.load(file)
try:
    itf_py.trace_from_json(written)
    print("the trace is read")
except ValueError as error:
    print("the trace: ValueError")
for name in written["vars"]:
    value = written["states"][0][name]
    try:
        print(json.dumps(value), "is read as", itf_py.value_from_json(value))
    except ValueError as error:
        print(json.dumps(value), "ValueError:", error)
PYTHON
timeout 60 env/bin/python read.py >seen
cat seen
cat >"$work/expected" <<'TEXT'
the trace: ValueError
{"tag": "Some", "value": {"#bigint": "1"}} ValueError: Type names and field names must be valid identifiers: '#bigint'
{"tag": "None", "value": {"#tup": []}} ValueError: Type names and field names cannot be a keyword: 'None'
{"tag": "Owned", "value": {"#set": [{"#bigint": "1"}, {"#bigint": "2"}]}} ValueError: Type names and field names must be valid identifiers: '#set'
{"tag": "Done", "value": {"#tup": []}} ValueError: Type names and field names must be valid identifiers: '#tup'
{"tag": "Named", "value": {"member": "a"}} is read as Named(member='a')
{"tag": "Failed", "value": "fenced"} is read as Failed(value='fenced')
{"from": "a", "to": "b"} ValueError: Type names and field names cannot be a keyword: 'from'
TEXT
diff expected seen && echo "as seen before"
