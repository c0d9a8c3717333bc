#!/bin/sh
# Builds the wheel, installs it into a virtual environment of its own and uses it from outside of the
# checkout: a wheel that lacks its grammar, schemas, packs or pages shows here.
# usage: sh scripts/try-wheel.sh FOLDER     (which must not exist yet)
set -eu
cd "$(dirname "$0")/.."
. scripts/venv.sh
folder=$1
mkdir "$folder"
python=$(find_python)
"$python" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$folder/dist" .
"$folder/venv/bin/python" -m pip install --quiet "$folder"/dist/*.whl
mkdir "$folder/elsewhere"
cp -R examples policies "$folder/elsewhere/"
cd "$folder/elsewhere"
export PYTHONPATH=
flowproof="$folder/venv/bin/flowproof"
"$flowproof" --version
"$flowproof" check examples policies/*.policy.yaml >/dev/null
for target in linux-x86_64 linux-aarch64 windows; do
    "$flowproof" compile examples/summary.flow.yaml --target "$target" --fidelity report -o out >/dev/null
    test -s "out/summary.$target.json"
done
"$flowproof" explain examples/summary.flow.yaml 'connect tcp 192.0.2.1:443'
"$flowproof" explain FP101 >/dev/null
"$flowproof" fmt examples policies --check
for schema in flow policy ir artifact record event report diagnostics; do
    "$flowproof" schema "$schema" >/dev/null
done
"$flowproof" audit --help >/dev/null
"$folder/venv/bin/python" - <<'PY'
from flowproof.resources import data, data_path
import os
assert "site-packages" in data_path("grammar"), data_path("grammar")
for part in ("grammar", "schema", "policies", os.path.join("docs", "codes")):
    assert os.listdir(data_path(part)), part
assert data("policies", "baseline.policy.yaml")
PY
echo "the wheel works outside of the checkout"
