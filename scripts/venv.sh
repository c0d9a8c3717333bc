# Sourced by the scripts beside it: makes .venv with Python 3.11 or newer and puts flowproof into it.
# usage: . scripts/venv.sh [group]      (from the root of the checkout; group: dev, for the test tools)

find_python() {
    for candidate in "${PYTHON:-}" python3 python3.11 python3.12 python3.13 /usr/bin/python3; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    echo "no Python 3.11 or newer found; set PYTHON to one (Debian: apt-get install python3)" >&2
    return 1
}

make_venv() {
    python=$(find_python) || return 1
    if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        echo "setting up .venv with $("$python" --version) ..." >&2
        "$python" -m venv --clear .venv || {
            echo "this Python cannot make a virtual environment; Debian: apt-get install python3-venv" >&2
            return 1
        }
    fi
    # --group needs pip 25.1; the pip that Debian 12 puts into a virtual environment is older.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' || return 1
    if [ $# -gt 0 ]; then
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable . --group "$1"
    else
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable .
    fi
}
