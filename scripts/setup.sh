#!/usr/bin/env bash
# Installs what slim needs and is not there yet: Debian packages, npm packages (the pinned Node among them), generated files, the bundle.
# Prints nothing and takes well under a second when all is there. Sourced by start.sh and test.sh; needs Node 18 or later and npm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() { printf 'slim: %s\n' "$1" >&2; [ -z "${2:-}" ] || printf '      %s\n' "$2" >&2; exit 1; }

[ "$(uname -s)" = Linux ] || die "the native engine needs Linux; this is $(uname -s)" "Here slim works as a library with the fake engine: see docs/embedding.md."
[ "$(id -u)" = 0 ] || die "root is needed to create containers, and this is user $(id -un)" "Run it as root: sudo npm start"

# program=package; `-` stands for a directory
programs="crun=crun runc=runc conmon=conmon catatonit=catatonit iptables=iptables nft=nftables ip=iproute2 busybox=busybox-static skopeo=skopeo"
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
missing=()
for pair in $programs; do command -v "${pair%%=*}" >/dev/null 2>&1 || missing+=("${pair#*=}"); done
[ -x /usr/lib/cni/bridge ] || [ -x /opt/cni/bin/bridge ] || missing+=(containernetworking-plugins)
for package in "$@"; do dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package"); done
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || die "these programs' packages are missing: ${missing[*]}" "Install them with this system's package manager."
  echo "Installing Debian packages: ${missing[*]}" >&2
  log=$(mktemp)
  # --no-install-recommends: none of the recommended packages is used
  install() { DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${missing[@]}" >"$log" 2>&1; }
  install || { apt-get update -qq >>"$log" 2>&1; install; } || { tail -5 "$log" >&2; die "apt-get could not install ${missing[*]}" "The whole output is in $log."; }
  rm -f "$log"
fi

if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ] || [ ! -x node_modules/.bin/node ]; then
  echo "Installing npm packages" >&2
  npm ci --no-audit --no-fund --loglevel=error >&2 || die "npm could not install the packages" "See the lines above; then run this again."
  touch node_modules/.package-lock.json
fi
export PATH="$PWD/node_modules/.bin:$PATH"
node scripts/generate.ts >&2 || die "generating the schema failed" "See the lines above."
node scripts/build.ts >&2 || die "building the programs failed" "See the lines above."
