#!/bin/sh
# Sets up .venv with the test tools and runs every test that this machine can run.
# Tests that need root, a network namespace or a kernel feature and do not find it say so at the end.
# Arguments go to pytest:  sh scripts/test.sh tests/syntax -k quoted
set -eu
cd "$(dirname "$0")/.."
. scripts/venv.sh
make_venv dev
exec .venv/bin/python -m pytest "$@"
