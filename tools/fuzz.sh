#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time each. A crasher that
# is found is kept in the package's testdata/fuzz: commit it with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-30s}
failed=()
count=0
while IFS=: read -r file name; do
	count=$((count + 1))
	echo "fuzz $(dirname "$file") $name $time"
	go test -run '^$' -fuzz "^${name}\$" -fuzztime "$time" "./$(dirname "$file")" || failed+=("$(dirname "$file") $name")
done < <(git ls-files -co --exclude-standard '*_test.go' | xargs -r grep -HoE '^func Fuzz[A-Za-z0-9_]*' | sed 's/:func /:/')
if ((count == 0)); then
	echo "there is no fuzz target" >&2
	exit 1
fi
if ((${#failed[@]} > 0)); then
	printf 'failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
echo "fuzz: $count targets passed"
