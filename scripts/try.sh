#!/bin/sh
# Sets up .venv and runs the examples: a flow that passes and one that fails and says why.
# Ends with 0 when both ended as the examples say they do.
set -eu
cd "$(dirname "$0")/.."
. scripts/venv.sh
make_venv
flowproof=.venv/bin/flowproof

step() {
    wanted=$1
    shift
    printf '\n$ flowproof %s\n' "$*"
    got=0
    "$flowproof" "$@" || got=$?
    if [ "$got" -ne "$wanted" ]; then
        echo "expected exit code $wanted, got $got; \`$flowproof doctor\` says what this machine can do" >&2
        exit "$got"
    fi
    echo "[exit code $got]"
}

step 0 check examples
step 0 explain examples/summary.flow.yaml 'connect tcp 192.0.2.1:443'
step 0 run examples/summary.flow.yaml
step 1 run examples/usage-report.flow.yaml
step 1 audit examples
printf '\nBoth examples ended as they should: one passed, one failed and said why.\n'
