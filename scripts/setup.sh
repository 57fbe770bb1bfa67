#!/usr/bin/env bash
# Installs what Vitrine is built from, tested with and run on; the one place that lists the packages.
# run.sh and test.sh source it, and it can be run by itself. What is installed already is left
# alone: a second run calls no package manager and needs no network.
#
#   scripts/setup.sh [--tests]              --tests: what only the tests use, too, and SwiftShader to test on
#   scripts/setup.sh --newer-driver         Mesa from Debian's backports, where the software driver is used
#   scripts/setup.sh --undo-newer-driver    the distribution's own Mesa again
. "$(dirname "${BASH_SOURCE[0]}")/newer_driver.sh"

# Debian 13's names, which are Ubuntu 24.04's too. libvulkan-volk-dev is Vulkan's volk; libvolk-dev is not.
build_packages=(g++ cmake ninja-build glslang-tools libvulkan-dev libvulkan-volk-dev libvulkan-memory-allocator-dev
  libglm-dev libcli11-dev nlohmann-json3-dev libjpeg-dev libpng-dev libwebp-dev libzstd-dev libfreetype-dev catch2)
# The desktop app: its interface, its window, and what it writes with. Where they don't exist it is left out.
desktop_packages=(libimgui-dev libglfw3-dev fonts-dejavu-core)
# What digits and letters are drawn with, in the app and by `vitrine digits`: with DejaVu five families, so that a quarter can
# be held back. Where they don't exist those that the machine has are taken.
font_packages=(fonts-liberation fonts-comic-neue fonts-dancingscript fonts-humor-sans)
# The Python package: nanobind makes its functions of C++ ones. Where they don't exist it is left out.
python_packages=(python3-dev python3-nanobind nanobind-dev python3-numpy)
# Tests do without these, and then say which of them were skipped: xvfb is a display for the desktop app, and the
# Python package is shown pictures (pil), checked (mypy, pytest) and run by Dask.
optional_test_packages=(vulkan-validationlayers mesa-drm-shim spirv-tools xvfb xauth desktop-file-utils
  "${python_packages[@]}" python3-pil python3-pip python3-pytest mypy python3-fsspec python3-dask
  python3-distributed python3-pandas python3-tqdm)
# Mesa drives AMD's and Intel's GPUs and, with its software driver, machines without one.
driver_package=mesa-vulkan-drivers

# One line a step, on stderr: results alone go to stdout.
say() { echo "vitrine: $*" >&2; }
fail() { say "$*"; exit 1; }

# Several where it is installed for several architectures: NAME:ARCHITECTURE, one a line.
installed_instances() {
  dpkg-query -W -f '${binary:Package} ${db:Status-Status}\n' "$1" 2>/dev/null | sed -n 's/ installed$//p' || true
}
is_installed() { [ -n "$(installed_instances "$1")" ]; }
os_release() { (. /etc/os-release 2>/dev/null && echo "${!1:-}") || true; }
# Those of the packages that apt can install, one a line; packages that others merely mention have the
# candidate "(none)".
available() {
  if [ $# = 0 ]; then return; fi
  LC_ALL=C apt-cache policy "$@" |
    sed -nE '/^[^ ]/{s/:$//;h}; /^  Candidate: [^(]/{x;p}'
}

# A machine with any vendor's Vulkan driver keeps it and gets no second one.
has_vulkan_driver() {
  if [ -n "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}${VK_ADD_DRIVER_FILES:-}" ]; then return 0; fi
  local folder
  for folder in "${XDG_DATA_HOME:-$HOME/.local/share}" /usr/local/share /usr/share /usr/local/etc /etc; do
    if compgen -G "$folder/vulkan/icd.d/*.json" >/dev/null; then return 0; fi
  done
  return 1
}

can_become_root() { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }

# Runs a command as root; $without_root is what to say where that can't be.
as_root() {
  local become=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "$without_root"
    become=(sudo)
    [ -t 0 ] || become=(sudo -n)
  fi
  "${become[@]}" "$@"
}

run_apt() {
  as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get -qq -o Dpkg::Use-Pty=0 \
    -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

# Package scripts chat on both streams; their words matter only when they fail.
install_quietly() {
  local log status=0
  log=$(mktemp)
  run_apt install -y --no-install-recommends "$@" >"$log" 2>&1 || status=$?
  if [ $status != 0 ]; then tail -n 20 "$log" >&2; fi
  rm -f "$log"
  return $status
}

# Fails when apt has no package of one of the names: releases that are too old lack some.
require_packages() {
  local package known
  known=$(available "$@")
  for package in "$@"; do
    grep -qxF "$package" <<<"$known" \
      || fail "$(os_release PRETTY_NAME) has no package $package: Debian 13 or Ubuntu 24.04, or newer, is needed"
  done
}

setup_with_apt() {
  local package wanted=("${build_packages[@]}") required=() optional=()
  has_vulkan_driver || wanted+=("$driver_package")
  for package in "${wanted[@]}"; do
    is_installed "$package" || required+=("$package")
  done
  local extra=("${desktop_packages[@]}" "${font_packages[@]}")
  if $1; then extra+=("${optional_test_packages[@]}"); fi
  for package in "${extra[@]}"; do
    is_installed "$package" || optional+=("$package")
  done
  without_root="packages are missing; as root, run: apt-get install ${required[*]} ${optional[*]}"
  if [ ${#required[@]} -gt 0 ]; then run_apt update; fi
  if [ ${#required[@]} = 0 ] && [ ${#optional[@]} = 0 ]; then return; fi
  if [ ${#required[@]} = 0 ] && ! can_become_root; then
    say "going on without ${optional[*]}; as root, run: apt-get install ${optional[*]}"
    return
  fi
  require_packages "${required[@]}"
  mapfile -t -O ${#required[@]} required < <(available "${optional[@]}")
  if [ ${#required[@]} = 0 ]; then return; fi
  say "installing ${required[*]}"
  install_quietly "${required[@]}" || fail "apt-get could not install ${required[*]} (its last lines are above)"
}

# Elsewhere nothing is installed: what a compiler and the PATH can't find is listed.
check_by_hand() {
  local tool header compiler=${CXX:-c++} missing=() flags
  # FreeType's headers lie in a folder of their own.
  flags=$(pkg-config --cflags freetype2 2>/dev/null || echo -I/usr/include/freetype2)
  command -v "$compiler" >/dev/null || missing+=("a C++20 compiler (GCC 12 or Clang 17, or newer)")
  for tool in cmake ninja; do command -v "$tool" >/dev/null || missing+=("$tool"); done
  command -v glslangValidator >/dev/null || command -v glslang >/dev/null || missing+=("glslang (the GLSL compiler)")
  for header in vulkan/vulkan.h volk.h vk_mem_alloc.h glm/glm.hpp CLI/CLI.hpp nlohmann/json.hpp \
    jpeglib.h png.h zlib.h webp/demux.h zstd.h ft2build.h catch2/catch_test_macros.hpp; do
    command -v "$compiler" >/dev/null || break
    # jpeglib.h leaves it to others to declare FILE.
    printf '#include <cstdio>\n#include <%s>\n' "$header" | "$compiler" -std=c++20 $flags -fsyntax-only -x c++ - 2>/dev/null \
      || missing+=("<$header>")
  done
  if [ ${#missing[@]} = 0 ]; then
    pkg-config --atleast-version=3.3 glfw3 2>/dev/null && pkg-config --exists imgui 2>/dev/null \
      || say "the desktop app may be left out: it needs Dear ImGui (with its GLFW backend) and GLFW 3.3, and pkg-config doesn't find both"
    return
  fi
  local list; list=$(printf '%s, ' "${missing[@]}")
  fail "packages are installed on Debian and Ubuntu only; please install what is missing here: ${list%, }" \
    "(Vulkan headers, volk, Vulkan Memory Allocator, GLM, CLI11, nlohmann-json, libjpeg-turbo, libpng, libwebp, libzstd, FreeType and Catch2 3 are what the headers belong to)"
}

# setup [true]: with true, also what only the tests use.
setup() {
  if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
    setup_with_apt "${1:-false}"
  else
    check_by_hand
  fi
}

# build TARGET: the release preset, configured on first use, once more where packages have changed since (what was left
# out for want of one may be built now), and by ninja itself from then on.
build() {
  local configured=build/release/build.ninja
  if [ ! -f $configured ] || [ CMakePresets.json -nt $configured ] || [ /var/lib/dpkg/status -nt $configured ]; then
    say "configuring build/release"
    local log; log=$(mktemp)
    if ! cmake --preset release >"$log" 2>&1; then
      cat "$log" >&2
      rm -f "$log"
      fail "CMake could not configure the build (its output is above)"
    fi
    rm -f "$log"
  fi
  say "building $1 (a first build takes a few minutes)"
  # On a terminal ninja keeps one line up to date; elsewhere only what goes wrong is worth reading.
  if [ -t 2 ]; then
    ninja -C build/release "$1" >&2
  else
    ninja -C build/release --quiet "$1" >&2
  fi || fail "the build failed (the compiler's words are above)"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  set -euo pipefail
  case ${1:-} in
    '') setup false ;;
    --tests)
      setup true
      # A second driver to test on; with it or without, all else is ready.
      "$(dirname "$0")/../tests/drivers/get_swiftshader" >/dev/null || say "going on without SwiftShader"
      "$(dirname "$0")/../python/tests/get_packages" >/dev/null || say "going on without Arrow and Ray" ;;
    --newer-driver) newer_driver "$(dirname "$0")/.." ;;
    --undo-newer-driver) undo_newer_driver ;;
    *) say "setup.sh: unknown option $1 (--tests, --newer-driver, --undo-newer-driver)"; exit 2 ;;
  esac
fi
