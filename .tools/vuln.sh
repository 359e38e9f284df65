#!/usr/bin/env bash
# Looks for known faults in what our code calls. The database comes as a Go
# module, so that a module proxy is all that it needs. A fault in a module fails;
# one in the standard library is listed, since only another Go mends it.
set -euo pipefail
cd "$(dirname "$0")/.."

go=${GO:-go}
mod=-modfile=.tools/vuln.mod
"$go" mod download -modfile=.tools/vuln.mod golang.org/x/vulndb
read -r version dir < <("$go" list $mod -m -f '{{.Version}} {{.Dir}}' golang.org/x/vulndb)
db=$PWD/.cache/vulndb-$version
if [ ! -f "$db/index/db.json" ]; then
  echo "vuln: making the database of $version, once"
  rm -rf "$db" "$db.part"
  mkdir -p .cache
  "$go" tool $mod indexdb -vulns "$dir/data/osv" -out "$db.part"
  mv "$db.part" "$db"
fi

report=$(mktemp)
trap 'rm -f "$report"' EXIT
status=0
"$go" tool $mod govulncheck -db "file://$db" ./... >"$report" || status=$?
if [ "$status" != 0 ] && [ "$status" != 3 ]; then
  cat "$report"
  exit "$status"
fi
modules=$(sed -n 's/^ *Module: //p' "$report" | sort -u)
if [ -n "$modules" ]; then
  cat "$report"
  printf '\nvuln: known faults in modules that our code reaches:\n%s\n' "$modules"
  exit 1
fi
grep -vE '^ *(#[0-9]+:|Example traces|More info:)' "$report" # the library's traces fill pages
echo "vuln: no known fault in a module that our code reaches, by $version; those listed are the standard library's"
