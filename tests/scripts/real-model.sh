#!/usr/bin/env bash
# Runs a lead and a subagent against a real language model on this machine. Where none is installed it
# says so and ends well: the check is optional.
#
# What it needs, once:
#   python3 -m venv ~/.llm && ~/.llm/bin/pip install --only-binary :all: xllamacpp==2026.10.11549
#   a GGUF file of a small model that calls tools, such as Qwen2.5-Coder-0.5B-Instruct (491 MB)
#
#   REMIT_REAL_MODEL          the file                   [~/models/qwen05.gguf]
#   REMIT_REAL_MODEL_PYTHON   a python with xllamacpp    [~/.llm/bin/python]
#   REMIT_TEST_REAL_MODEL_URL a server of Chat Completions that runs already; nothing is started then
set -euo pipefail
cd "$(dirname "$0")/../.."

model=${REMIT_REAL_MODEL:-$HOME/models/qwen05.gguf}
python=${REMIT_REAL_MODEL_PYTHON:-$HOME/.llm/bin/python}

skip() { echo "skipped: $*"; exit 0; }

if [ -z "${REMIT_TEST_REAL_MODEL_URL:-}" ]; then
    [ -f "$model" ] || skip "there is no model at $model (REMIT_REAL_MODEL)"
    [ -x "$python" ] || skip "there is no python at $python (REMIT_REAL_MODEL_PYTHON)"
    "$python" -c 'import xllamacpp' 2>/dev/null || skip "$python has no xllamacpp"
    out=$(mktemp)
    "$python" tests/scripts/real_model_server.py "$model" >"$out" 2>/dev/null &
    server=$!
    trap 'kill "$server" 2>/dev/null || true; rm -f "$out"' EXIT
    for _ in $(seq 120); do
        grep -q '^READY ' "$out" && break
        kill -0 "$server" 2>/dev/null || { echo "the model's server ended before it was ready"; exit 1; }
        sleep 1
    done
    REMIT_TEST_REAL_MODEL_URL=$(sed -n 's/^READY //p' "$out")/v1
    [ "$REMIT_TEST_REAL_MODEL_URL" != /v1 ] || { echo "the model's server was not ready in two minutes"; exit 1; }
fi
export REMIT_TEST_REAL_MODEL_URL
echo "real model: $REMIT_TEST_REAL_MODEL_URL"
cargo test -p tests --test it real_model -- --nocapture --test-threads 1
