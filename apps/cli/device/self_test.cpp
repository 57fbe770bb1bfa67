#include "apps/cli/device/self_test.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "apps/cli/open_device.h"
#include "apps/cli/progress.h"
#include "runtime/selftest/self_test.h"
#include "runtime/tune/choice_store.h"
#include "runtime/util/error.h"
#include "runtime/util/isolated.h"
#include "runtime/util/text.h"
#include "runtime/vk/device_facts.h"

namespace vitrine::cli {
namespace {

using Json = nlohmann::ordered_json;
// A kernel that compiles and runs for longer has hung.
constexpr int patience_seconds = 300;
// All of them take an H200 a quarter of an hour: what is known by then outlives whoever ends it.
constexpr std::chrono::seconds between_keeping{2};

struct Verdict {
  std::string name;
  std::vector<std::string> certificates;
  std::optional<std::string> fault;
};
struct Verdicts {
  std::vector<Verdict> tested;
  std::map<std::string, std::string> untested;  // kernel -> why
};

std::string text_of(const Json& line) { return line.dump(-1, ' ', false, Json::error_handler_t::replace); }

// One wrong result outweighs all right ones of the same code.
void certify(KernelChoices& found, const std::vector<std::string>& certificates, const std::string& fault) {
  for (const std::string& key : certificates) {
    std::string& kept = found.certificates[key];
    if (kept.empty()) kept = fault;
  }
}
KernelChoices choices_of(const std::vector<Verdict>& tested) {
  KernelChoices found;
  for (const Verdict& verdict : tested) certify(found, verdict.certificates, verdict.fault.value_or(""));
  return found;
}

}  // namespace

void run_self_tests_behind(size_t first, const CommonOptions& common, const std::string& only) {
  try {
    const DeviceList list = list_devices(common);
    Device device(list.instance, list.devices[list.choice.index()]);
    PipelineStore pipelines(device);
    const selftest::SelfTests all(device.capabilities(), only);
    if (first == 0) {
      for (const auto& kernel : all.untested())
        report(text_of({{"untested", kernel.name}, {"reason", kernel.reason}}));
    }
    Json line;
    line["total"] = all.tests().size();
    report(text_of(line));
    for (size_t i = first; i < all.tests().size(); ++i) {
      const selftest::SelfTest& test = all.tests()[i];
      report(text_of({{"begin", test.name()}, {"certificates", test.certificates}}));
      std::optional<std::string> fault;
      try {
        fault = selftest::fault_of(pipelines, test);
      } catch (const Error& error) {
        fault = error.what();
      }
      report(text_of({{"end", i}, {"fault", fault.value_or("")}}));
      if (fault) return;
    }
  } catch (const Error& error) {
    report(text_of({{"error", error.what()}, {"status", error.exit_status()}}));
  }
}

namespace {

Verdicts test_all(const CommonOptions& common, const std::string& only, const Capabilities& device) {
  using Clock = std::chrono::steady_clock;
  Verdicts verdicts;
  auto kept = Clock::now();
  std::optional<Progress> progress;
  size_t total = 1;
  while (verdicts.tested.size() < total) {
    const size_t first = verdicts.tested.size();
    bool under_way = false;
    const auto take = [&](const std::string& text) {
      const auto line = nlohmann::json::parse(text);
      if (line.contains("error")) {
        throw Error(static_cast<ErrorCode>(line["status"].get<int>()), line["error"].get<std::string>());
      }
      if (line.contains("untested"))
        verdicts.untested[line["untested"].get<std::string>()] = line["reason"].get<std::string>();
      if (line.contains("total")) {
        total = line["total"].get<size_t>();
        if (!progress) progress.emplace("kernel configurations", total);
      }
      if (line.contains("begin")) {
        verdicts.tested.push_back({line["begin"].get<std::string>(),
                                   line["certificates"].get<std::vector<std::string>>(), std::nullopt});
        under_way = true;
      }
      if (line.contains("end")) {
        const auto fault = line["fault"].get<std::string>();
        if (!fault.empty()) verdicts.tested.back().fault = fault;
        under_way = false;
        if (!fault.empty() || Clock::now() - kept > between_keeping) {
          add_kernel_choices(device, choices_of(verdicts.tested));
          kept = Clock::now();
        }
        progress->show(verdicts.tested.size());
      }
    };
    std::vector<std::string> arguments{"doctor", "--behind", std::to_string(first)};
    if (!only.empty()) arguments.insert(arguments.end(), {"--only", only});
    if (!common.device.empty()) arguments.insert(arguments.end(), {"--device", common.device});
    const auto ended = run_isolated(arguments, take, patience_seconds);
    if (under_way) verdicts.tested.back().fault = ended.value_or("it ended before its test");
    // Without any progress the next child would do no better.
    if (ended && verdicts.tested.size() == first)
      throw Error(ErrorCode::failed, "the self-tests could not start: " + *ended);
  }
  return verdicts;
}

void print_json(const Verdicts& verdicts) {
  for (const Verdict& verdict : verdicts.tested) {
    Json line{{"kernel", verdict.name},
              {"certificates", verdict.certificates},
              {"verdict", verdict.fault ? "failed" : "passed"}};
    if (verdict.fault) line["reason"] = *verdict.fault;
    std::printf("%s\n", text_of(line).c_str());
  }
  for (const auto& [kernel, reason] : verdicts.untested) {
    std::printf("%s\n", text_of({{"kernel", kernel}, {"verdict", "not run"}, {"reason", reason}}).c_str());
  }
}

// A line a kernel, and one for each of its configurations that is wrong.
void print_text(const Verdicts& verdicts) {
  struct Row {
    size_t tested = 0, passed = 0;
    std::string faults;
  };
  std::map<std::string, Row> rows;
  for (const Verdict& verdict : verdicts.tested) {
    Row& row = rows[verdict.name.substr(0, verdict.name.find(':'))];
    ++row.tested;
    if (verdict.fault) {
      row.faults += "  must not be used: " + verdict.name + ": " + *verdict.fault + "\n";
      for (const std::string& certificate : verdict.certificates) row.faults += "    " + certificate + "\n";
    } else {
      ++row.passed;
    }
  }
  for (const auto& [kernel, row] : rows) {
    std::printf("%-28s %zu of %zu self-tests passed\n%s", kernel.c_str(), row.passed, row.tested,
                row.faults.c_str());
  }
  for (const auto& [kernel, reason] : verdicts.untested)
    std::printf("%-28s not run: %s\n", kernel.c_str(), reason.c_str());
}

}  // namespace

void run_self_tests(const CommonOptions& common, const std::string& only, bool json) {
  const DeviceList list = list_devices(common);
  const Capabilities& capabilities = list.devices[list.choice.index()].capabilities;
  const Verdicts verdicts = test_all(common, only, capabilities);
  const auto failed = static_cast<size_t>(std::ranges::count_if(
      verdicts.tested, [](const Verdict& verdict) { return verdict.fault.has_value(); }));
  const std::filesystem::path stored = add_kernel_choices(capabilities, choices_of(verdicts.tested));
  if (json) {
    print_json(verdicts);
    std::printf("%s\n", text_of({{"device", capabilities.name},
                                 {"driver", driver_text(capabilities)},
                                 {"advice", capabilities.advice},
                                 {"passed", verdicts.tested.size() - failed},
                                 {"failed", failed},
                                 {"not_run", verdicts.untested.size()},
                                 {"stored", stored.string()}})
                            .c_str());
  } else {
    std::printf("%s\n", device_heading(capabilities).c_str());
    print_text(verdicts);
    std::printf("\n%zu of %zu passed; %s holds the verdicts, which planning heeds\n",
                verdicts.tested.size() - failed, verdicts.tested.size(), shown(stored).c_str());
  }
  if (failed != 0) {
    throw Error(ErrorCode::failed, std::to_string(failed) + " of " + std::to_string(verdicts.tested.size()) +
                                       " self-tests failed on '" + capabilities.name +
                                       "'; those kernels won't be used");
  }
}

}  // namespace vitrine::cli
