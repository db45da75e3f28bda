#!/bin/sh
# Install the pinned real agents into a folder, each only if that version is not there yet.
# An agent that cannot be installed is named in one line; its tests then skip themselves.
# Usage: PYTHON=python3 real-agents.sh FOLDER
set -eu
folder=$1
python=${PYTHON:-python3}
mkdir -p "$folder"

HERMES=0.19.0
HERMES_MCP=1.26.0 # Hermes leaves it out of its ACP extra, and ignores MCP servers without it
REASONIX=1.38.11

skipped() {
    echo "SKIPPED: $1 could not be installed ($2 failed, see $folder/$1.log); the tests that need it are skipped"
}

hermes_is_there() {
    "$folder/hermes/bin/python" - "$HERMES" "$HERMES_MCP" 2>/dev/null <<'PROGRAM'
import sys
from importlib.metadata import version
sys.exit([version("hermes-agent"), version("mcp")] != sys.argv[1:])
PROGRAM
}

install_hermes() {
    rm -rf "$folder/hermes"
    "$python" -m venv "$folder/hermes" &&
        "$folder/hermes/bin/python" -m pip --disable-pip-version-check --no-input install \
            "hermes-agent[acp]==$HERMES" "mcp==$HERMES_MCP"
}

reasonix_is_there() {
    grep -q "\"version\": *\"$REASONIX\"" "$folder/reasonix/node_modules/reasonix/package.json" 2>/dev/null
}

install_reasonix() {
    rm -rf "$folder/reasonix"
    npm install --prefix "$folder/reasonix" --no-audit --no-fund --omit-lockfile-registry-resolved \
        "reasonix@$REASONIX"
}

if ! hermes_is_there; then
    echo "installing Hermes $HERMES into $folder/hermes"
    if ! install_hermes >"$folder/hermes.log" 2>&1 || ! hermes_is_there; then
        rm -rf "$folder/hermes"
        skipped hermes pip
    fi
fi

if ! reasonix_is_there; then
    echo "installing Reasonix $REASONIX into $folder/reasonix"
    if ! install_reasonix >"$folder/reasonix.log" 2>&1 || ! reasonix_is_there; then
        rm -rf "$folder/reasonix"
        skipped reasonix npm
    fi
fi
