#!/usr/bin/env bash
# growth.sh COUNT SIZE FILE [PATTERN]: the growth tables and the latencies, COUNT times in turn, into a file: where
# and when, a table of medians for each group, then every single figure.
set -euo pipefail
count=$1 size=$2 file=$(realpath "$3") pattern=${4:-'Growth|Latency|HalfRate|Together'}
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/tables" ./bench/growth
go test -c -o "$work/bench.test" ./bench
for run in $(seq "$count"); do
  echo "run $run of $count" >&2
  (cd bench && "$work/bench.test" -test.run '^$' -test.timeout 2h -test.bench "$pattern" -test.benchtime "$size") >>"$work/raw"
done
dirty=$(git diff --quiet HEAD -- || echo ', with changes')
{
  echo "date: $(date -u +%F)"
  echo "machine: $(nproc) cores, $(sed -n 's/^cpu: //p' "$work/raw" | head -1)"
  echo "versions: $(go env GOVERSION), Redis $(redis-server --version | sed 's/.* v=\([^ ]*\).*/\1/')"
  echo "revision: $(git rev-parse --short HEAD)$dirty"
  echo "runs: $count in turn, -benchtime $size; below, medians, and in brackets the ratio to the smallest value"
  "$work/tables" <"$work/raw"
  echo
  grep '^Benchmark' "$work/raw"
} >"$file"
sed '/^Benchmark/,$d' "$file"
