#!/bin/sh
# @informalsystems/quint 0.33.1 (npm): a new installation does not start, for a prerelease that sorts too high.
#
# Guess before the run: it fails on Node 20 because Node is too new for antlr4ts.
# Seen: Node has no part in it. Quint asks for antlr4ts ^0.5.0-alpha.4, and of the prereleases of 0.5.0 that are
# published "dev" sorts behind "alpha.4", so npm takes 0.5.0-dev. That one cannot be loaded: a class of it extends
# another that is not there yet. With an override to 0.5.0-alpha.4 in package.json Quint starts and simulates
# (--backend typescript, without anything but npm).
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work"
cat >counter.qnt <<'QUINT'
module counter {
  var n: int
  action init = n' = 0
  action step = n' = n + 1
}
QUINT
try() {
    mkdir "$1"
    echo "$2" >"$1/package.json"
    (cd "$1" && npm install --silent --no-audit --no-fund --ignore-scripts @informalsystems/quint@0.33.1 >npm.log 2>&1) || { cat "$1/npm.log"; exit 1; }
    echo "$1: antlr4ts $(node -p "require('./$1/node_modules/antlr4ts/package.json').version")"
    code=0
    (cd "$1" && timeout 100 npx quint run --backend typescript --max-samples 1 --max-steps 2 ../counter.qnt) >out 2>&1 || code=$?
    echo "$1: exit code $code"
    grep -oE '^TypeError: .*|^\[ok\] No violation found' out
}
{
    try "as it comes" '{}'
    try "with the override" '{"overrides": {"antlr4ts": "0.5.0-alpha.4"}}'
} >seen
cat seen
cat >"$work/expected" <<'TEXT'
as it comes: antlr4ts 0.5.0-dev
as it comes: exit code 1
TypeError: Class extends value undefined is not a constructor or null
with the override: antlr4ts 0.5.0-alpha.4
with the override: exit code 0
[ok] No violation found
TEXT
diff expected seen && echo "as seen before"
