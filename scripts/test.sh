#!/usr/bin/env bash
# npm test: the same set-up, then types, lint, import rules, unit tests and end-to-end tests on the real engine.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh" docker-registry apache2-utils
node scripts/fetch-kubectl.ts >&2
npm run --silent types
npm run --silent lint
npm run --silent rules
npm run --silent unit
npm run --silent e2e
