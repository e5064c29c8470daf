#!/usr/bin/env bash
# fuzz.sh DURATION: every fuzz target of this package, one after the other.
set -euo pipefail
cd "$(dirname "$0")"
for target in $(go test -list '^Fuzz' . | grep '^Fuzz'); do
  go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-1m}" -parallel 2 .
done
