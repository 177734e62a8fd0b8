#!/usr/bin/env bash
# Installs the Debian packages that vllmcli needs to build and run, and with --tests also those of its tests and
# benchmarks. Does nothing if all of them are installed. Uses sudo unless the user is root.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config
  libcli11-dev libcurl4-openssl-dev libmd4c-dev libncurses-dev libonig-dev libopenblas-serial-dev libreadline-dev
  libsqlite3-dev libssl-dev libtoml11-dev libutf8proc-dev libxxhash-dev nlohmann-json3-dev
)
if [ "${1:-}" = --tests ]; then
  packages+=(libbenchmark-dev libgtest-dev libmpich-dev libopenmpi-dev libre2-dev libvterm-dev mpich openmpi-bin)
fi

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
