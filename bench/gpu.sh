#!/usr/bin/env bash
# Everything that a real GPU is needed for, from a bare machine: build, tests under validation, measurements alone and
# beside other systems.
#
#   bench/gpu.sh [--part tests|bench|compare|all] [--packages FOLDER] [--out FOLDER] [--minutes N]
#                [--build FOLDER | --prebuilt FOLDER] [--rehearse]
#
# --part: tests (with validation, doctor's self-test), bench (ViT-Ti, B and L, CPU time, operators beside PyTorch, start-up,
#   rooflines, steps of training beside PyTorch), compare (ViT-B/16 beside PyTorch eager and compiled, ONNX Runtime, ggml).
#   For machines that are lent for ten minutes at a time: each fits into one such call.
# --packages: a folder of .deb files for machines that can't install; they are unpacked beside the
#   build and used from there. Without it scripts/setup.sh installs what is missing.
# --prebuilt: a build folder that was made elsewhere (bench/pack.sh), from which everything is run as it is.
# --out: a folder for summary-PART.md, a page that ends with the sentence that matters, and results-PART.tar.gz, with every
#   log and all that was measured. Both are written after each step: whoever is cut off has what was done.
# --minutes: how long a part may take (default 9); what doesn't fit is cut off.
# --rehearse: small sizes, on any device, PyTorch on the CPU if there is no other: whether every step works, not how fast.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/setup.sh

part=all packages='' out=out/gpu minutes=9 build_folder=build/gpu prebuilt=false rehearse=false
while [ $# -gt 0 ]; do
  case $1 in
    --part | --packages | --out | --minutes | --build | --prebuilt)
      [ $# -gt 1 ] || { say "gpu.sh: $1 needs a value"; exit 2; }
      case $1 in
        --part) part=$2 ;; --packages) packages=$2 ;; --out) out=$2 ;; --minutes) minutes=$2 ;; --build) build_folder=$2 ;;
        --prebuilt) build_folder=$2 prebuilt=true ;;
      esac
      shift 2 ;;
    --rehearse) rehearse=true; shift ;;
    *) say "gpu.sh: unknown option $1 (--part, --packages, --out, --minutes, --build, --prebuilt, --rehearse)"; exit 2 ;;
  esac
done
case $part in
  all) parts=(tests bench compare) ;;
  tests | bench | compare) parts=("$part") ;;
  *) say "gpu.sh: --part is '$part', expected tests, bench, compare or all"; exit 2 ;;
esac
if $prebuilt && [ ! -x "$build_folder/vitrine" ]; then
  say "gpu.sh: --prebuilt is '$build_folder', where no program vitrine is"
  exit 2
fi
mkdir -p "$out" "$build_folder"
out=$(cd "$out" && pwd)
build_folder=$(cd "$build_folder" && pwd)

# The Python with the most of what is measured: not one that --packages brings.
python=python3
for candidate in "$(command -v python3 || true)" /usr/bin/python3; do
  if [ -n "$candidate" ] && "$candidate" -c 'import torch, safetensors, numpy' 2>/dev/null; then python=$candidate; break; fi
done

unpack() {
  local prefix=$build_folder/packages file library
  for file in "$packages"/*.deb; do
    [ -f "$prefix/.${file##*/}" ] && continue
    mkdir -p "$prefix"
    dpkg -x "$file" "$prefix" && touch "$prefix/.${file##*/}"
  done
  library=$prefix/usr/lib/$(uname -m)-linux-gnu
  export PATH=$prefix/usr/bin:$PATH CMAKE_PREFIX_PATH=$prefix/usr LD_LIBRARY_PATH=$library:${LD_LIBRARY_PATH:-}
  export CPATH=$prefix/usr/include VK_ADD_LAYER_PATH=$prefix/usr/share/vulkan/explicit_layer.d
}

# Containers mount NVIDIA's driver beside the system, where no Vulkan loader looks.
find_driver() {
  local mounted=/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json
  if ! has_vulkan_driver && [ -f "$mounted" ]; then export VK_DRIVER_FILES=$mounted; fi
}

# step NAME SECONDS COMMAND...: what it prints goes to NAME.log, how it ended into the summary. Never past the end of
# the part's time.
failures=0
step() {
  local name=$1 limit=$2 start=$SECONDS status=0 words
  shift 2
  if [ $((deadline - SECONDS)) -lt "$limit" ]; then limit=$((deadline - SECONDS)); fi
  if [ "$limit" -le 0 ]; then
    status=124
  else
    timeout --kill-after=5 "$limit" "$@" >"$results/$name.log" 2>&1 </dev/null || status=$?
  fi
  case $status in
    0) words="done in $((SECONDS - start)) s" ;;
    124 | 137) words="out of time after $((SECONDS - start)) s" ;;
    *) words="exit status $status after $((SECONDS - start)) s (see $name.log)" ;;
  esac
  say "$name: $words"
  echo "- $name: $words" >>"$results/steps"
  if [ "$status" != 0 ]; then failures=$((failures + 1)); fi
  summarise
  return "$status"
}

# show TITLE COMMAND...: what a command prints under a heading, if it prints anything.
show() {
  local title=$1 text
  shift
  text=$("$@" 2>/dev/null) || true
  if [ -n "$text" ]; then printf '\n## %s\n\n%s\n' "$title" "$text"; fi
}

# The steps in one line, and those that failed in one each.
steps() {
  echo "$(grep -c ': done in' "$results/steps") of $(wc -l <"$results/steps") steps done; every log is in results-$part_name.tar.gz"
  grep -v ': done in' "$results/steps"
}

# Models, and what was not there; without the pipelines and without what this device can't run.
doctor_in_short() {
  awk '/^shader  / { pipelines = 1 } /^not run: / { missing += 1; next } !pipelines && !/^  /
    END { if (missing) print missing " kernels need what this device lacks" }' "$results/doctor.log"
}

# What a roofline says of the whole model, and of its six longest layers.
roofline_in_short() {
  awk '/^\|/ { if (++rows > 8) next } /^\| layer \| of the time/ { exit } { print }' "$1"
}

verdict() {
  local file files=()
  for file in "$results"/compare-f16.json "$results"/compare-f32.json; do if [ -f "$file" ]; then files+=("$file"); fi; done
  if [ ${#files[@]} -gt 0 ]; then "$python" bench/verdict.py "${files[@]}"; fi
}

summarise() {
  {
    echo "# gpu.sh, $part_name, $(date -u '+%Y-%m-%d %H:%M UTC')"
    echo
    if $rehearse; then printf 'A rehearsal: small sizes, no figures worth keeping.\n\n'; fi
    cat "$results/machine" 2>/dev/null
    echo
    steps 2>/dev/null
    show tests sed -n '/tests passed/p;/^The following tests/,/^Errors/p' "$results/tests.log"
    show apps sed -n '/tests passed/p;/^The following tests/,/^Errors/p' "$results/apps.log"
    show doctor doctor_in_short
    show self-test sed -n '/^[0-9]* of [0-9]* passed/p;/fail/Ip' "$results/self-test.log"
    show models "$python" bench/table.py "$results/bench.json"
    show operators cat "$results/operators.md"
    show start-up grep -E '^\| (part|\*\*all)|^\|---' "$results/startup.log"
    show 'steps of training' "$python" bench/table.py "$results/train.log" "$results/train-pytorch.log"
    local file
    for file in "$results"/roofline-*.md; do show "$(basename "$file" .md)" roofline_in_short "$file"; done
    for file in "$results"/compare*.md; do show "$(basename "$file" .md)" cat "$file"; done
    show 'the sentence that matters' verdict
  } >"$out/summary-$part_name.md"
  tar -C "$results" -czf "$out/results-$part_name.tar.gz" .
}

build() {
  if $prebuilt; then return; fi
  local launcher=()
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
  fi
  step configure 60 cmake -G Ninja -S . -B "$build_folder" -DCMAKE_BUILD_TYPE=Release -DVITRINE_BUILD_BENCH=ON \
    "${launcher[@]}" || return
  local targets=(vitrine)
  if [ "$part_name" = tests ] && ! $rehearse; then targets=(all)
  elif [ "$part_name" = tests ]; then targets=(vitrine graph_tests)
  elif [ "$part_name" != bench ] && ninja -C "$build_folder" -t query ggml_vit >/dev/null 2>&1; then targets+=(ggml_vit); fi
  step build 900 ninja -C "$build_folder" "${targets[@]}"
}

describe_machine() {
  echo "- source: $(git describe --always --dirty 2>/dev/null || echo unknown)"
  echo "- system: $(uname -srm), $(nproc) processors"
  if command -v nvidia-smi >/dev/null; then
    echo "- nvidia-smi: $(nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv,noheader)"
  fi
  echo "- Python: $("$python" -c '
import importlib.metadata as metadata, platform
found = [f"{name} {metadata.version(name)}" for name in ("torch", "timm", "transformers", "onnxruntime", "tensorrt")
         if next(iter(metadata.distributions(name=name)), None)]
print(platform.python_version(), *found, sep=", ")' 2>/dev/null || echo none)"
  sed 's/^/    /' "$results/devices.log"
}

tune() {  # for the benchmarks: what was tuned stays in Vitrine's cache
  step tune 60 "$vitrine" tune --arch "$base" --batch "$batches" --dtype f16,f32 --seconds "$tune_seconds"
}

part_tests() {
  # What proves most first. The self-test of all kernels takes an H200 a quarter of an hour: what it says of
  # those that it comes to is kept.
  if $rehearse; then
    step tests 300 ctest --test-dir "$build_folder" --output-on-failure -L graph --timeout 120
  else
    step tests 400 ctest --test-dir "$build_folder" --output-on-failure -LE apps -j "$jobs" --timeout 120 --output-junit "$results/tests.xml"
    step apps 200 ctest --test-dir "$build_folder" --output-on-failure -L apps -j "$jobs" --timeout 120
  fi
  step doctor 60 "$vitrine" doctor --compile-only
  step self-test 120 "$vitrine" doctor "${self_test[@]}"
}

roofline() {  # of one dtype
  step "roofline-$1" 50 "$python" bench/roofline.py --vitrine "$vitrine" --arch "$base" --batch "$roofline_batch" \
    --dtype "$1" --gemm "$gemm" --stream "$stream" --seconds "$seconds" --json "$results/roofline-$1.json" \
    --out "$results/roofline-$1.svg"
  cp "$results/roofline-$1.log" "$results/roofline-$1.md"
}

part_bench() {
  tune
  export vitrine models batches seconds
  # shellcheck disable=SC2016
  step bench 150 bash -c 'for arch in $models; do
    "$vitrine" bench --arch "$arch" --batch "$batches" --dtype f32,f16 --seconds "$seconds" --host-time --json || exit
  done'
  grep '^{' "$results/bench.log" >"$results/bench.json"
  step operators 120 "$python" bench/operators.py --vitrine "$vitrine" --gpu "$gpu" --dtype f16,f32 --seconds "$seconds" \
    --threads "$threads" --rounds "$rounds" --json "$results/operators.json" "${operators[@]}"
  grep -v '^operators:' "$results/operators.log" >"$results/operators.md"
  roofline f16
  step startup 50 "$python" bench/startup.py --vitrine "$vitrine" --arch "$base" --rounds "$rounds" --json "$results/startup.json"
  roofline f32
  step train 60 "$vitrine" bench --train "$train_config" --batch "$train_batch" --seconds "$seconds" --json
  step train-pytorch 100 "$python" bench/peers/pytorch_train_cuda.py --config "$train_config" --batch "$train_batch" --device "$gpu" \
    --threads "$threads" --seconds "$seconds" --rounds "$rounds"
}

# compare NAME SECONDS OPTION...
compare() {
  local name=$1 limit=$2
  shift 2
  step "$name" "$limit" "$python" bench/compare.py --vitrine "$vitrine" --ggml "$build_folder/bench/ggml_vit" --arch "$compared" \
    --gpu "$gpu" --threads "$threads" --rounds "$rounds" --seconds "$seconds" --limit 300 --best \
    --json "$results/$name.json" --table "$results/$name.md" "$@"
}

gpu_peers=vitrine,pytorch-eager,pytorch-compiled,onnxruntime-cuda,onnxruntime-tensorrt
part_compare() {
  tune
  # What matters most first.
  compare compare-f16 360 --dtype f16 --batch "$compare_f16" --only "$gpu_peers"
  compare compare-f32 150 --dtype f32 --batch "$compare_f32" --only "$gpu_peers"
  compare compare-ggml 120 --dtype f16,f32 --batch 1 --only vitrine,ggml-vulkan
}

base=vit_base_patch16_224 compared=$base models='vit_base_patch16_224 vit_tiny_patch16_224 vit_large_patch16_224' batches=1,8,64,256
compare_f16=1,256,64,8 compare_f32=64,1 seconds=0.5 rounds=3 tune_seconds=40 roofline_batch=64
train_config=configs/imagenet-vit-b16.json train_batch=64
operators=(matmul:50432x3072x768 matmul:50432x768x3072 attention:8x1370x16x64 attention:256x197x12x64)
gemm=50432x3072x768,12608x3072x768,12608x768x3072 stream=65536x4096 gpu=cuda threads=$(nproc) self_test=()
if $rehearse; then
  base=vit_tiny_patch16_224 compared=vit_tiny_patch32_64 batches=1,2 compare_f16=1,2 compare_f32=1 seconds=0.2 rounds=1
  models=$base tune_seconds=5 roofline_batch=1 train_config=configs/digits.json train_batch=4 gemm=197x768x192,197x192x768 stream=8192x1024
  operators=(matmul:197x768x192 attention:1x50x3x64)
  threads=1 self_test=(--only binary)
  export OMP_WAIT_POLICY=passive  # the machine may have other work
  "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null || gpu=cpu
fi

jobs=4
if $prebuilt; then
  export VK_ADD_LAYER_PATH=$build_folder/run/layers
  # Tests draw digits with the system's fonts, or with the user's.
  fonts=${HOME:-/root}/.local/share/fonts
  if [ ! -d /usr/share/fonts ] && [ ! -e "$fonts/packed" ]; then mkdir -p "$fonts" && cp -r "$build_folder/run/fonts" "$fonts/packed"; fi
  jobs=$(($(nproc) * 3 / 4))
elif [ -n "$packages" ]; then unpack
else setup true; fi
find_driver
export VITRINE_REQUIRE_DEVICE=1
vitrine=$build_folder/vitrine
status=0
for part_name in "${parts[@]}"; do
  deadline=$((SECONDS + minutes * 60)) failures=0
  results=$build_folder/results-$part_name
  rm -rf "$results"
  mkdir -p "$results"
  if build && step devices 30 "$vitrine" devices; then
    describe_machine >"$results/machine"
    "part_$part_name"
  else
    tail -n 40 "$results"/{configure,build,devices}.log >&2
  fi
  summarise
  cat "$out/summary-$part_name.md"
  if [ "$failures" -gt 0 ]; then status=1; fi
done
exit "$status"
