// vitrine.train(): the training that the tool's `train` does, with what it tells handed to Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <nlohmann/json.hpp>

#include "python/src/bindings.h"
#include "python/src/devices.h"
#include "runtime/util/json.h"
#include "runtime/util/text.h"
#include "train/requests/requested_training.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace vitrine::python {
namespace {

// What Python threw in the middle of a training: it is kept, and the training saves what it has.
class Stop {
 public:
  const std::atomic<bool>& wanted() const { return wanted_; }
  // Calls Python, with the GIL; nobody once a call has thrown. A Ctrl-C from before is none of the call's.
  template <typename Call>
  void tell(const Call& call) {
    if (deaf_) return;
    look_for_signals();
    deaf_ = !kept(call);
  }
  // Ctrl-C. What is saved because of it is told of nevertheless.
  void look_for_signals() {
    if (!thrown_) kept(check_signals);
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  // False where it threw.
  template <typename Call>
  bool kept(const Call& call) {
    const nb::gil_scoped_acquire gil;
    try {
      call();
      return true;
    } catch (...) {
      if (!thrown_) thrown_ = std::current_exception();
      wanted_ = true;
      return false;
    }
  }

  std::atomic<bool> wanted_ = false;
  bool deaf_ = false;
  std::exception_ptr thrown_;
};

std::vector<std::shared_ptr<OpenDevice>> opened(const std::vector<std::string>& wanted) {
  std::vector<std::shared_ptr<OpenDevice>> devices;
  for (const std::string& name : wanted) {
    std::shared_ptr<OpenDevice> device = device_named(name);
    if (std::ranges::find(devices, device) != devices.end()) {
      throw Error(ErrorCode::usage, "devices: found " + in_quotes(name) +
                                        ", which is among them already, expected each device once");
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

void train(const std::string& config, const std::optional<std::string>& settings, const std::string& data,
           const std::string& out, const std::string& model, const std::vector<std::string>& devices,
           bool shared, const std::vector<std::string>& set, std::optional<uint64_t> classes, uint64_t height,
           uint64_t width, bool resume, bool recompute, double checkpoint_seconds, const nb::callable& record,
           const nb::callable& say, const nb::callable& warn, const nb::object& progress) {
  TrainRequest request{.data = data,
                       .out = out,
                       .model = model,
                       .config = config,
                       .image_height = height,
                       .image_width = width,
                       .set = set,
                       .classes = classes,
                       .checkpoint_seconds = checkpoint_seconds,
                       .resume = resume,
                       .recompute = recompute};
  if (settings) request.settings = parse_json(*settings, config);
  Stop stop;
  const auto told = [&stop](const nb::callable& whom) {
    return [&stop, &whom](const std::string& sentence) { stop.tell([&] { whom(sentence); }); };
  };
  const auto look = [&stop] { stop.look_for_signals(); };
  {
    const nb::gil_scoped_release free;
    const TrainSetup setup = read_train_setup(request, told(warn));
    stop.rethrow();
    const std::vector<std::shared_ptr<OpenDevice>> all = opened(devices);
    std::vector<PipelineStore*> stores;
    for (const auto& device : all) stores.push_back(&device->pipelines);
    try {
      run_training(request, setup, {.devices = stores, .shared = shared},
                   {.record = [&](const nlohmann::ordered_json& line) { told(record)(line.dump()); },
                    .say = told(say),
                    .warn = told(warn),
                    .progress =
                        [&](const TrainingProgress& p) {
                          if (progress.is_none()) return look();
                          stop.tell([&] { progress(p.batches, p.total, p.loss, p.images_per_second); });
                        },
                    .features = [&](uint64_t, uint64_t) { look(); },
                    .between = look},
                   stop.wanted());
    } catch (const Error&) {
      stop.rethrow();  // why it was stopped
      throw;
    }
  }
  stop.rethrow();
}

}  // namespace

void add_training(nb::module_& m) {
  m.def("train", &train, "config"_a, "settings"_a.none(), "data"_a, "out"_a, "model"_a, "devices"_a,
        "shared"_a, "set"_a, "classes"_a.none(), "height"_a, "width"_a, "resume"_a, "recompute"_a,
        "checkpoint_seconds"_a, "record"_a, "say"_a, "warn"_a, "progress"_a.none(),
        nb::sig("def train(config: str, settings: str | None, data: str, out: str, model: str, "
                "devices: list[str], shared: bool, set: list[str], classes: int | None, height: int, "
                "width: int, resume: bool, recompute: bool, checkpoint_seconds: float, "
                "record: collections.abc.Callable[[str], None], say: collections.abc.Callable[[str], None], "
                "warn: collections.abc.Callable[[str], None], "
                "progress: collections.abc.Callable[[int, int, float, float], None] | None) -> None"));
}

}  // namespace vitrine::python
