#!/usr/bin/env bash
# compare.sh BASE COUNT SIZE: the end-to-end benchmarks at a revision and in the work tree, in turn, then benchstat.
set -euo pipefail
cd "$(dirname "$0")/.."
base=$1 count=$2 size=$3
work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" 2>/dev/null || true; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/base" "$base"
(cd "$work/base" && go test -c -o "$work/old.test" ./bench)
go test -c -o "$work/new.test" ./bench
for _ in $(seq "$count"); do
  for side in old new; do
    (cd bench && "$work/$side.test" -test.run '^$' -test.bench 'EndToEnd|Ceiling' -test.benchtime "$size") >>"$work/$side.txt"
  done
done
if command -v benchstat >/dev/null; then
  benchstat "$work/old.txt" "$work/new.txt"
else
  echo "benchstat is not on PATH: go install golang.org/x/perf/cmd/benchstat@latest; the raw figures:"
  tail -n +1 "$work/old.txt" "$work/new.txt"
fi
