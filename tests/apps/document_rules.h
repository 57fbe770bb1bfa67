// What tests/apps/documents_test.cpp may do with a command before it runs it, and which commands it may leave
// out. Whoever shows a new command needs no entry here, unless it can't run as it stands.
#pragma once

#include <string>

namespace vitrine::test {

struct NotRun {
  std::string beginning;  // of the command
  std::string why;
};

// Nothing of these is run, but a script has to be there with every option that is named.
inline const NotRun not_run[] = {
    {"scripts/run.sh", "installs packages and builds everything; .ci/run runs it in a fresh root"},
    {"scripts/test.sh", "builds everything and runs the tests that this is one of"},
    {"scripts/setup.sh", "installs packages; .ci/run runs it in a fresh root"},
    {".ci/debian13", "makes a root of Debian"},
    {"windows/build", "installs a cross-compiler, and takes as long as the build does"},
    {"windows/package", "takes what windows/build makes"},
    {"windows/check", "takes what windows/build makes"},
    {"windows/check_desktop", "takes what windows/build makes"},
    {"arm64/build", "installs a cross-compiler, and takes as long as the build does"},
    {"arm64/check", "takes what arm64/build makes"},
    {"qemu-aarch64", "takes what arm64/build makes"},
    {"apt-get install fonts-", "installs packages"},
    {"sudo apt-get install python3-dev", "installs packages"},
    {"python3 -m venv env", "fetches what builds it from PyPI; CTest's label python tests what it builds"},
    {"cmake --install", "tests/package installs, and builds a program against what is installed"},
    {"cmake --preset", "a build like the one that this test comes from"},
    {"ninja -C build/release vitrine-desktop", "a build like the one that this test comes from"},
    {"ninja -C build/release _vitrine",
     "needs Python's headers and nanobind; CTest's label python tests what it builds"},
    {"ctest --preset gpu-assisted", "tests that this is one of"},
    {"ctest --preset release -L python", "tests like this one"},
    {"build/dev/tests/ops_tests", "a test program of its own"},
    {"build/release/vitrine-desktop photos/",
     "opens a window until somebody closes it; see tests/desktop_app"},
    {"vitrine-desktop", "opens a window; tests/desktop_app runs it with pictures, scripts and screenshots"},
    {"xvfb-run -a vitrine-desktop", "opens a window; tests/desktop_app plays scripts so"},
    {"bench/compare.py", "compares with PyTorch and others that no test installs"},
    {"bench/operators.py", "compares with PyTorch, which no test installs"},
    {"bench/train.py", "compares with PyTorch, which no test installs"},
    {"bench/fine_tuning.py", "compares with PyTorch, which no test installs"},
    {"bench/input_throughput.py", "compares with PyTorch, which no test installs"},
    {"for way in", "PyTorch's training, which no test installs"},
    {"export LD_LIBRARY_PATH", "chooses PyTorch's OpenBLAS, which no test installs"},
    {"vitrine-batch", "is the Python package's; CTest's label python runs it"},
    {"ray start", "starts a cluster"},
    {"bench/batch_engines.py", "needs Dask and Ray, which no test here installs, and minutes"},
    {"bench/roofline.py", "measures the machine for minutes"},
    {"bench/startup.py", "starts a model of 330 MB that it makes, again and again"},
    {"bench/pipeline.py", "measures the machine for minutes"},
    {"PYTHONPATH=build/release/python bench/python_overhead.py", "measures the machine for minutes"},
    {"bench/gpu.sh", "needs a GPU"},
    {"bench/zoo.py", "takes many minutes with 33 make-believe GPUs; tests/zoo compiles for them"},
    {"bench/zoo_peers.py",
     "takes minutes with make-believe GPUs, and compares with ggml and ncnn, which no test installs"},
    {"bench/desktop_frames.sh", "draws a window for minutes"},
    {"tests/drivers/with_driver", "lists drivers, or runs a command on one; tests/drivers says how"},
    {"tests/drivers/run_whole", "runs the tests that this is one of, on another driver"},
    {"tests/parity/full_models.py", "downloads models"},
    {"tests/parity/check_preprocess.py", "compares with libraries that no test installs"},
};

// Names of a thing that a command can do, inside a sentence: the options have to be there.
inline const std::string fragments[] = {
    "vitrine digits --distortion 0.25",
    "vitrine classify --model",
    "vitrine train --resume",
    "vitrine classify --json",
    "vitrine embed --json",
    "vitrine embed --text",
    "vitrine run --check-range",
    "vitrine bench --maps",
    "vitrine bench --json",
    "vitrine run --input",
    "vitrine inspect --trace",
    "vitrine train --config",
    "vitrine train --model",
};

// The command with less work to do and, where it says [--option], with the option. `for_slow`: for a device
// that takes minutes for what others do in seconds, with smaller pictures.
std::string made_small(const std::string& command, bool for_slow);

}  // namespace vitrine::test
