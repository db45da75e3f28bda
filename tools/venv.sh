#!/bin/sh
# Make the virtual environment, or say what this machine lacks and how to get it.
# Usage: venv.sh PYTHON FOLDER
set -eu
python=$1
folder=$2

fail() {
    printf '\nacphost: %s\n' "$@" >&2
    exit 1
}

if [ -x "$folder/bin/python" ] && "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi

command -v "$python" >/dev/null 2>&1 || fail "there is no $python here.
  Debian, Ubuntu:  sudo apt install python3 python3-venv
  macOS:           brew install python3, or the installer from python.org
  Another name:    make PYTHON=/path/to/python3.12 ..."

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$python is $("$python" -V 2>&1), and 3.11 or newer is needed.
  If there is a newer one:  make PYTHON=python3.12 ..."

"$python" -c 'import ensurepip, venv' 2>/dev/null || fail "$python cannot make virtual environments.
  Debian, Ubuntu:  sudo apt install python3-venv
  macOS:           brew install python3, or the installer from python.org"

echo "making the virtual environment in $folder"
"$python" -m venv --clear "$folder" || fail "the virtual environment could not be made (see above).
  Debian, Ubuntu:  sudo apt install python3-venv
  macOS:           brew install python3, or the installer from python.org"
