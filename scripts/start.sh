#!/usr/bin/env bash
# npm start: installs what is missing, starts slimd if it is not running, applies examples/hello.yaml and shows it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
exec node dist/hello.js
