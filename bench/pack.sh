#!/usr/bin/env bash
# Packs what a build made, with the loader, the libraries, the layers and the fonts that it was linked with or looks for: for a machine
# that has a GPU but neither compilers nor this system's libraries, and is lent by the minute.
#
#   bench/pack.sh BUILD FILE.tar.xz
#   there, at the path that the sources have here: tar -C / -xf FILE.tar.xz && bench/gpu.sh --prebuilt BUILD
#
# Programs run from the same absolute path there as here.
set -euo pipefail
[ $# = 2 ] || { echo "usage: bench/pack.sh BUILD FILE.tar.xz" >&2; exit 2; }
layer=/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json
if ! command -v patchelf >/dev/null || ! command -v xz >/dev/null || [ ! -f "$layer" ] || [ ! -d /usr/share/fonts ]; then
  echo "pack.sh: something is missing: apt-get install patchelf xz-utils vulkan-validationlayers fonts-dejavu-core" >&2
  exit 1
fi
[ -x "$1/tests/ops_tests" ] || { echo "pack.sh: '$1' is no folder with a build and its tests" >&2; exit 2; }
build=$(cd "$1" && pwd) out=$(realpath -m "$2")
ctest --test-dir "$build" -N >/dev/null  # lists the tests in files, which are packed, too
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
there=$stage$build library=$build/run/lib
mkdir -p "$stage$library" "$there/tests" "$there/bench"

programs=(vitrine)
for label in vk ops graph model train apps images; do programs+=("tests/${label}_tests"); done
for optional in bench/ggml_vit; do if [ -x "$build/$optional" ]; then programs+=("$optional"); fi; done
# Whatever dlopen wants beside what is linked: Vulkan's loader, the validation layer, what NVIDIA's driver looks for.
wanted=(libvulkan.so.1 libVkLayer_khronos_validation.so libEGL.so.1 libGLdispatch.so.0 libGLX.so.0 libX11.so.6 libXext.so.6
  libdl.so.2 libpthread.so.0 librt.so.1 libnss_files.so.2)
{
  for program in "${programs[@]}"; do ldd "$build/$program"; done
  for name in "${wanted[@]}"; do
    path=$(find /usr/lib/"$(uname -m)"-linux-gnu -name "$name" | head -n 1)
    if [ -n "$path" ]; then echo "x => $path (0)"; ldd "$path"; fi
  done
} | awk '$2 == "=>" && $3 ~ "^/" { print $3 } $1 ~ "^/.*ld-linux" { print $1 }' | sort -u | while read -r path; do
  cp -L "$path" "$stage$library/"
done
loader=$(basename "$(echo "$stage$library"/ld-linux*)")
for program in "${programs[@]}"; do
  cp "$build/$program" "$there/$program"
  strip "$there/$program"
  # An RPATH, not a RUNPATH: what the driver's libraries need has to be found beside the loader, too.
  patchelf --set-interpreter "$library/$loader" --force-rpath --set-rpath "$library" "$there/$program"
done
mkdir -p "$there/run/layers"
sed "s|\"library_path\": \"[^\"]*\"|\"library_path\": \"$library/libVkLayer_khronos_validation.so\"|" \
  "$layer" >"$there/run/layers/validation.json"

cp -Lr /usr/share/fonts "$there/run/fonts"

echo 'subdirs("tests")' >"$there/CTestTestfile.cmake"
for program in "${programs[@]}"; do
  case $program in tests/*) ;; *) continue ;; esac
  list=("$build/$program"-*_tests.cmake)
  cp "${list[0]}" "$there/tests/"
  echo "include(\"${list[0]}\")"
done >"$there/tests/CTestTestfile.cmake"
XZ_OPT=-9 tar -C "$stage" -cJf "$out" "${build#/}"  # the programs have most of their code in common
echo "pack.sh: $out, $(du -h "$out" | cut -f1)" >&2
