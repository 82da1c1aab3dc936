#!/usr/bin/env bash
# Prints the path of a Chromium for the browser tests, and brings one if none is there.
# Usage: scripts/chromium.sh [python with playwright]        All other output goes to stderr.
set -euo pipefail
python=${1:-python3}

found() {
    local name
    for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
        # On some systems the name is only a stub that asks to install a package: ask its version.
        if [[ -n $name ]] && command -v "$name" >/dev/null && "$name" --version >/dev/null 2>&1; then
            command -v "$name"
            return 0
        fi
    done
    return 1
}

with_apt() {
    command -v apt-get >/dev/null || return 1
    local as=()
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null && sudo -n true 2>/dev/null || return 1
        as=(sudo -n)
    fi
    echo "No Chromium found; installing the package chromium with apt-get ..." >&2
    "${as[@]}" apt-get update -q >&2 &&
        "${as[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core >&2
}

with_playwright() {
    echo "No Chromium found; asking Playwright for its own ..." >&2
    "$python" -m playwright install chromium >&2 || return 1
    "$python" - <<'PY'
from pathlib import Path

from playwright.sync_api import sync_playwright

with sync_playwright() as play:
    path = play.chromium.executable_path
if not Path(path).exists():
    raise SystemExit(1)
print(path)
PY
}

if [[ -n ${CHROMIUM:-} ]] && ! "$CHROMIUM" --version >/dev/null 2>&1; then
    echo "CHROMIUM=$CHROMIUM does not run; looking for another." >&2
fi
found && exit 0
with_apt && found && exit 0
with_playwright && exit 0
cat >&2 <<'MSG'
No Chromium for the browser tests: none of $CHROMIUM, chromium, chromium-browser and google-chrome
runs here, and neither apt-get nor Playwright could bring one. Install a Chromium and try again,
or name it: CHROMIUM=/path/to/chromium make test. `make check` runs the tests that need none.
MSG
exit 1
