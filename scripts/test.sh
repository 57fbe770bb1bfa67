#!/usr/bin/env bash
# Builds Vitrine and runs all its tests, from a bare Debian or Ubuntu machine. CTest has the last
# word, and its exit status is this script's. Arguments go to ctest: scripts/test.sh -R layer_norm
#
#   scripts/test.sh --on NAME [ctest's options]      on a driver of tests/drivers: what runs shaders, unless -L says else
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/setup.sh

driver=()
if [ "${1:-}" = --on ]; then
  with_driver=tests/drivers/with_driver
  [ $# -ge 2 ] || fail "--on takes the name of a driver: $("$with_driver" --list | xargs)"
  driver=("$with_driver" "$2")
  shift 2
  # A driver that isn't known, or isn't there, says so before anything is built.
  "${driver[@]}" true
  case " $*" in *' -L'* | *' --label-regex'*) ;; *) set -- -L '^(vk|ops|graph|model|apps)$' "$@" ;; esac
fi

setup true
build all
say "testing"
if [ ${#driver[@]} = 0 ]; then exec ctest --preset release "$@"; fi
status=0
"${driver[@]}" ctest --preset release "$@" || status=$?
say "what the device lacks, by the tests that were skipped for it, wholly or in part"
tests/drivers/why_skipped >&2
exit $status
