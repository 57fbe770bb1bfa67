// Every command that the documents show, as they show it: each document is gone through from its first
// command to its last in a folder where what it names can be found.
#include "tests/support/documents.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "tests/apps/document_rules.h"
#include "tests/support/command.h"
#include "tests/support/system_fonts.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

namespace fs = std::filesystem;

const fs::path tree = fs::path(VITRINE_TEST_DATA).parent_path();

// What a command between backticks may begin with.
std::vector<std::string> programs() {
  std::vector<std::string> found{"vitrine",
                                 "vitrine-desktop",
                                 "build/release/vitrine-desktop",
                                 "cmake",
                                 "ninja",
                                 "scripts/run.sh",
                                 "scripts/test.sh",
                                 "scripts/setup.sh",
                                 "tests/drivers/with_driver",
                                 "ctest"};
  for (const auto& entry : fs::directory_iterator(tree / "bench"))
    found.push_back("bench/" + entry.path().filename().string());
  return found;
}

const std::vector<ShownCommand>& all_commands() {
  static const std::vector<ShownCommand> all = [] {
    std::vector<ShownCommand> commands;
    for (const fs::path& document : documents(tree)) {
      const auto shown =
          shown_commands(read_whole_file(document), document.lexically_relative(tree), programs());
      commands.insert(commands.end(), shown.begin(), shown.end());
    }
    return commands;
  }();
  return all;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream{text};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

enum class Treatment : uint8_t {
  run,       // here
  fragment,  // names a part of a command: its options must be there
  elsewhere  // can't run here, for the reason that document_rules.h gives
};

std::optional<Treatment> treatment_of(const ShownCommand& command) {
  const std::vector<std::string> words = words_of(command.text);
  for (const NotRun& rule : not_run) {
    if (command.text.starts_with(rule.beginning)) return Treatment::elsewhere;
  }
  if (words[0] == "vitrine" && !command.in_block) {
    if (words.size() == 2 || std::ranges::find(fragments, command.text) != std::end(fragments))
      return Treatment::fragment;
  }
  const bool loop = words[0] == "for" && command.text.find(" vitrine ") != std::string::npos;
  if (words[0] == "vitrine" || (words[0] == "time" && words[1] == "vitrine") || loop) return Treatment::run;
  return std::nullopt;
}

std::string place_of(const ShownCommand& command) {
  return command.document + ":" + std::to_string(command.line) + ": " + command.text;
}

void link_to(const fs::path& target, const fs::path& name) {
  fs::create_directories(name.parent_path());
  fs::create_directory_symlink(target, name);
}

// A folder with all that the documents name.
class Desk {
 public:
  Desk() {
    for (const char* shipped : {"assets", "configs", "devices"}) link_to(tree / shipped, folder_ / shipped);
    link_to(VITRINE_PROGRAM, folder_ / "bin/vitrine");
    const fs::path model = tree / "assets/digits", picture = tree / "tests/images/pictures/jpeg_420.jpg",
                   words = tree / "tests/parity/text/clip";
    for (const char* name : {"M", "MODEL"}) link_to(model, folder_ / name);
    // DIR is a model in one line and a data set in another.
    fs::copy(model, folder_ / "DIR");
    // Beside a model's file its config.json.
    for (const char* name : {"model.safetensors", "config.json"}) fs::copy_file(model / name, folder_ / name);
    fs::copy_file(picture, folder_ / "photo.jpg");
    for (const char* name : {"folder", "FOLDER_OF_320"}) {
      fs::create_directory(folder_ / name);
      for (const char* copy : {"one.jpg", "two.jpg"}) fs::copy_file(picture, folder_ / name / copy);
    }
    fs::copy_file(picture, folder_ / "ONE_OF_THEM");
    for (const char* part : {"train", "test"}) {
      for (const char* pet : {"cat", "dog"}) {
        fs::create_directories(folder_ / "pets" / part / pet);
        fs::copy_file(picture, folder_ / "pets" / part / pet / "one.jpg");
      }
    }
    link_to(tree / "configs/mnist-myvit.json", folder_ / "CONFIG");
    fs::create_directory(folder_ / "data");
    link_to(folder_ / "data", folder_ / "DATA");
    link_to(folder_ / "runs/myvit", folder_ / "FOLDER");  // once a command has trained it
    // Fonts that a script would fetch: those of the machine.
    for (const char* name : {"fonts", "WORK_FOLDER/fonts"}) link_to("/usr/share/fonts", folder_ / name);
    folder_.file("words.txt", "a cat\na dog\n");
    // The names that stand for large models find the small ones that are shipped.
    const auto cache = [&](const std::string& name, const fs::path& found) {
      const std::string cached = "huggingface/hub/models--" + name;
      fs::create_directories(folder_ / cached / "refs");
      folder_.file(cached + "/refs/main", std::string(40, 'a'));
      link_to(found, folder_ / cached / "snapshots" / std::string(40, 'a'));
    };
    cache("google--vit-base-patch16-224", model);
    cache("openai--clip-vit-base-patch16", words);
    cache("facebook--dinov2-base", tree / "tests/parity/fixtures/hf_dinov2");
    const fs::path heads = tree / "tests/parity/heads";
    fs::copy_file(heads / "dinov2_classes.safetensors", folder_ / "ade20k_linear_head.safetensors");
    fs::copy_file(heads / "dinov2_depth.safetensors", folder_ / "nyu_linear_head.safetensors");
  }

  CommandResult run(const std::string& command) const {
    return run_command({"/bin/bash", "-euc", "cd '" + folder_.path().string() + "'\n" + command},
                       {{"PATH", (folder_ / "bin").string() + ":" + std::getenv("PATH")},
                        {"HF_HOME", folder_ / "huggingface"},
                        {"HF_HUB_CACHE", ""},
                        {"HUGGINGFACE_HUB_CACHE", ""},
                        {"VITRINE_CACHE_DIR", folder_ / "cache"}});
  }

 private:
  TemporaryFolder folder_;
};

// The command where there is no 16-bit storage: in f32 alone; nothing where that isn't what it is about.
std::optional<std::string> without_f16(std::string command) {
  for (const std::string both : {"f32,f16", "f16,f32", "f32 f16"}) {
    for (size_t at = 0; (at = command.find(both)) != std::string::npos;)
      command.replace(at, both.size(), "f32");
  }
  const bool on_device = command.find("--device-profile") == std::string::npos;
  if (on_device && command.find("--dtype f16") != std::string::npos) return std::nullopt;
  return command;
}

// Goes through the commands of these documents that can run here.
void run_documents(const std::vector<std::string>& names) {
  test_device();
  system_fonts();  // most commands work with a data set that one of them draws
  for (const std::string& name : names) {
    const Desk desk;
    size_t ran = 0, left = 0;
    for (const ShownCommand& command : all_commands()) {
      if (command.document != name || treatment_of(command) != Treatment::run) continue;
      std::string smaller = made_small(command.text, computes_slowly());
      if (!test_device().device->capabilities().supports(Need::storage16)) {
        const std::optional<std::string> single = without_f16(smaller);
        if (!single) {
          leave_out(place_of(command) + ": " + std::string(no_storage16));
          ++left;
          continue;
        }
        smaller = *single;
      }
      INFO(place_of(command) << "\nas: " << smaller);
      const CommandResult result = desk.run(smaller);
      INFO(result.err);
      CHECK(result.status == 0);
      CHECK(!(result.out.empty() && result.err.empty()));
      ++ran;
    }
    CAPTURE(name);
    CHECK(ran + left > 0);
  }
}

// What names all options that a command may have: a subcommand's help, or the source of scripts.
std::string text_with_options(const std::vector<std::string>& words) {
  if (words[0] == "vitrine") {
    const CommandResult help = run_command({VITRINE_PROGRAM, words[1], "--help"});
    CHECK(help.status == 0);
    return help.out;
  }
  std::string text;
  for (const std::string& word : words) {
    if (word.ends_with("vitrine-desktop")) text += read_whole_file(tree / "apps/desktop/main.cpp");
    const bool path = word.find('/') != std::string::npos && !word.starts_with("-");
    if (!path || !fs::is_regular_file(tree / word) || word.starts_with("build/")) continue;
    const fs::path file = tree / word;
    if (file.extension() == ".py" || file.extension() == ".sh" || !file.has_extension())
      CHECK((fs::status(file).permissions() & fs::perms::owner_exec) != fs::perms::none);
    text += read_whole_file(file);
  }
  return text;
}

const std::set<std::string> in_parts{"README.md", "docs/benchmarks.md"};

}  // namespace

TEST_CASE("commands are found in documents' blocks, tables and sentences") {
  const auto found = shown_commands(
      "Text with `tool one --a`, `tool`, `other --b` and\n`tool two\n--c`.\n\n"
      "| `tool three --d` | x |\n\n```sh\n# nothing\ntool four \\\n  --e   # why\ntool five --f \"#\"\n"
      "for i in 1 2; do\n  for j in 3; do\n    tool $i\n  done\ndone\ntool six\n```\n```cpp\ntool "
      "seven\n```\n",
      "x.md", {"tool"});
  std::vector<std::string> texts;
  for (const ShownCommand& command : found) texts.push_back(command.text);
  CHECK(texts == std::vector<std::string>{
                     "tool one --a", "tool two --c", "tool three --d", "tool four --e", "tool five --f \"#\"",
                     "for i in 1 2; do\nfor j in 3; do\ntool $i\ndone\ndone", "tool six"});
  CHECK(found[1].line == 2);
  CHECK(found[2].line == 5);
  CHECK(found[3].line == 9);
  CHECK(found[3].in_block);
  CHECK(!found[2].in_block);
  CHECK(options_in("a --b=1 -c [--d] --e; --") == std::vector<std::string>{"--b", "--d", "--e"});
}

TEST_CASE(
    "every command that a document shows is run by a test, or a reason why it is not stands beside it") {
  std::map<std::string, size_t> used;
  for (const ShownCommand& command : all_commands()) {
    INFO(place_of(command));
    CHECK(treatment_of(command).has_value());
    for (const NotRun& rule : not_run) used[rule.beginning] += command.text.starts_with(rule.beginning);
    for (const std::string& fragment : fragments) used[fragment] += command.text == fragment;
  }
  // What no document shows any more is no exception to keep.
  for (const auto& [text, count] : used) {
    CAPTURE(text);
    CHECK(count > 0);
  }
}

TEST_CASE("what documents show and no test can run has its program and its options") {
  for (const ShownCommand& command : all_commands()) {
    const auto treatment = treatment_of(command);
    if (!treatment || *treatment == Treatment::run) continue;
    INFO(place_of(command));
    const std::vector<std::string> words = words_of(command.text);
    const std::string known = text_with_options(words);
    // Programs of the system, and their options, are no promise of these documents.
    const bool script = words[0].find('/') != std::string::npos && !words[0].starts_with("build/");
    CHECK((!script || !known.empty()));
    if (known.empty() || std::ranges::find(words, "cmake") != words.end()) continue;
    for (const std::string& option : options_in(command.text)) {
      CAPTURE(option);
      CHECK(known.find(option) != std::string::npos);
    }
  }
}

TEST_CASE("the README's commands do what it says") { run_documents({"README.md"}); }
TEST_CASE("the commands of the page of benchmarks run") { run_documents({"docs/benchmarks.md"}); }
TEST_CASE("the other documents' commands run") {
  std::set<std::string> others;
  for (const ShownCommand& command : all_commands()) {
    if (treatment_of(command) == Treatment::run && !in_parts.contains(command.document))
      others.insert(command.document);
  }
  CHECK(others.contains("docs/training.md"));
  run_documents({others.begin(), others.end()});
}

}  // namespace vitrine::test
