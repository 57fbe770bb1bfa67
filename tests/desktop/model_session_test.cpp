// A model session says what the command line says: the same labels and probabilities, shapes and facts.
#include "apps/desktop/engine/model_session.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine::desktop {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Json = nlohmann::json;

const test::Path data = VITRINE_TEST_DATA;
const test::Path fixtures = data / "parity" / "fixtures";
const test::Path samples = data / ".." / "assets" / "samples";

std::unique_ptr<ModelSession> open(const std::string& name) {
  Progress progress;
  const test::TemporaryFolder none;  // no cache of this machine takes part
  const std::string folder = none.path();
  const auto models = list_models([&](const char*) { return folder.c_str(); });
  return ModelSession::open(*test::test_device().pipelines, model_choice(models, name), "f32", progress);
}

std::vector<Json> vitrine(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), VITRINE_PROGRAM);
  const test::CommandResult result = test::run_command(arguments);
  INFO(result.err);
  REQUIRE(result.status == 0);
  std::istringstream stream(result.out);
  std::vector<Json> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

uint64_t device_bytes() { return test::test_device().device->memory().device.bytes; }

// The parts with an operator, in their order.
void add_leaves(const std::vector<StructureNode>& level, std::vector<const StructureNode*>& leaves) {
  for (const StructureNode& node : level) {
    if (!node.operator_name.empty()) leaves.push_back(&node);
    add_leaves(node.children, leaves);
  }
}

const StructureNode* find(const std::vector<StructureNode>& level, const std::string& name) {
  const auto found = std::ranges::find(level, name, &StructureNode::name);
  return found == level.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("a session's labels and probabilities are those of vitrine classify") {
  const auto session = open("digits");
  std::vector<std::string> arguments{
      "classify", "--json", "--top",   "10",
      "--dtype",  "f32",    "--model", session->choice().options.model.string()};
  std::vector<test::Path> files;
  for (const auto& entry : fs::directory_iterator(samples)) {
    if (entry.path().extension() == ".png") files.emplace_back(entry.path());
  }
  std::ranges::sort(files);
  REQUIRE(files.size() == 10);
  arguments.insert(arguments.end(), files.begin(), files.end());
  const std::vector<Json> lines = vitrine(arguments);
  REQUIRE(lines.size() == files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    INFO(files[i]);
    Progress progress;
    const LookResult found = session->look(files[i], progress);
    CHECK(progress.done() == 1);
    CHECK(found.no_answer.empty());
    CHECK(found.seconds > 0);
    CHECK(std::abs(found.images_per_second() * found.seconds - 1) < 1e-12);
    CHECK(found.picture.pixels == decode_image(files[i]).pixels);
    const Json& top = lines[i].at("top");
    REQUIRE(found.top.size() == top.size());
    CHECK(found.top.front().label == files[i].stem());
    for (size_t k = 0; k < top.size(); ++k) {
      CHECK(found.top[k].index == top[k].at("index").get<uint64_t>());
      CHECK(found.top[k].label == top[k].at("label").get<std::string>());
      CHECK(found.top[k].probability == top[k].at("probability").get<float>());
    }
  }
  test::require_no_validation_messages();
}

TEST_CASE("a picture is turned by its EXIF data where that is wanted, as by vitrine classify --exif") {
  const auto session = open("digits");
  Progress progress;
  const std::pair<const char*, int> pictures[] = {
      {"jpeg_exif_6.jpg", 6}, {"jpeg_exif_3.jpg", 3}, {"png_exif_late.png", 8}, {"jpeg_224.jpg", 1}};
  for (const auto& [name, orientation] : pictures) {
    INFO(name);
    const test::Path picture = data / "images" / "pictures" / name;
    std::vector<float> probabilities[2];
    for (const bool exif : {false, true}) {
      std::vector<std::string> arguments{
          "classify", "--json", "--top",   "10",
          "--dtype",  "f32",    "--model", session->choice().options.model.string(),
          picture};
      arguments.push_back(exif ? "--exif" : "--no-exif");
      const Json top = vitrine(arguments).front().at("top");
      const LookResult found = session->look(picture, progress, exif);
      CHECK(found.orientation == orientation);
      const Image expected = decode_image(picture, {.exif = exif});
      CHECK(found.picture.width == expected.width);
      CHECK((found.picture.pixels == expected.pixels));
      REQUIRE(found.top.size() == top.size());
      for (size_t k = 0; k < top.size(); ++k) {
        CHECK(found.top[k].index == top[k].at("index").get<uint64_t>());
        CHECK(found.top[k].probability == top[k].at("probability").get<float>());
        probabilities[exif].push_back(found.top[k].probability);
      }
    }
    CHECK((probabilities[0] == probabilities[1]) == (orientation == 1));
  }
  test::require_no_validation_messages();
}

TEST_CASE("the structure has the shapes and numbers of vitrine inspect") {
  for (const std::string name :
       {"digits", "vit_tiny_patch16_224", "deit_tiny_distilled_patch16_224", "myvit_mnist",
        "vit_base_patch16_siglip_224", "vit_small_patch14_reg4_dinov2", "vit_base_patch32_clip_224",
        "vit_small_plus_patch16_dinov3_qkvb", "beit_base_patch16_224", "vit_relpos_base_patch16_cls_224",
        "vit_relpos_base_patch16_rpn_224", "vit_base_patch16_rope_mixed_224"}) {
    INFO(name);
    const auto session = open(name);
    const ModelOptions& options = session->choice().options;
    const Json line =
        vitrine({"inspect", "--json", options.arch.empty() ? options.model.string() : options.arch}).front();
    const std::vector<StructureNode> structure = session->structure();
    std::vector<const StructureNode*> leaves;
    add_leaves(structure, leaves);
    const Json& shapes = line.at("shapes");
    REQUIRE(leaves.size() == shapes.size());
    double products = 0;
    for (size_t i = 0; i < leaves.size(); ++i) {
      // In the order of the data: what comes later in the tree is computed later, but for parts that are put
      // together again.
      const auto same =
          std::ranges::find_if(shapes, [&](const Json& s) { return s.at("name") == leaves[i]->path; });
      REQUIRE(same != shapes.end());
      CHECK(leaves[i]->operator_name == same->at("operator").get<std::string>());
      CHECK(leaves[i]->shape == same->at("shape").get<std::vector<uint64_t>>());
      CHECK(name_of(leaves[i]->dtype) == same->at("dtype").get<std::string>());
      const std::string& op = leaves[i]->operator_name;
      if (op.find("matmul") != std::string::npos || op == "attention" || op == "patch_embed")
        products += leaves[i]->flops;
    }
    uint64_t parameters = 0;
    for (const StructureNode& part : structure) parameters += part.parameters;
    CHECK(parameters == line.at("parameters"));
    CHECK(std::abs(products / line.at("flops").get<double>() - 1) < 1e-12);

    // The walk in the paper's letters, in every block.
    const Json& walk = line.at("attention");
    const StructureNode* blocks = find(structure, "blocks");
    REQUIRE(blocks);
    CHECK(blocks->children.size() == line.at("config").at("depth"));
    for (const StructureNode& block : blocks->children) {
      REQUIRE(find(block.children, "norm1"));
      REQUIRE(find(block.children, "mlp"));
      const StructureNode* group = find(block.children, "attn");
      REQUIRE(group);
      const StructureNode* attention = find(group->children, "attn");
      REQUIRE(attention);
      const auto shape_of = [&](const char* row) {
        const StructureNode* found = find(attention->children, row);
        return found ? found->shape : std::vector<uint64_t>{};
      };
      const uint64_t m = walk.at("M"), n = walk.at("N"), h = walk.at("heads");
      CHECK(shape_of("X") == std::vector<uint64_t>{m, n, walk.at("D")});
      CHECK(shape_of("Q") == std::vector<uint64_t>{m, h, n, walk.at("D_k")});
      CHECK(shape_of("V") == std::vector<uint64_t>{m, h, n, walk.at("D_v")});
      CHECK(shape_of("weights") == std::vector<uint64_t>{m, h, n, n});
      CHECK(shape_of("output").empty() != walk.at("W_o").get<bool>());
      CHECK(shape_of("concat") == attention->shape);
      CHECK(block.shape == std::vector<uint64_t>{m, n, walk.at("D")});
    }
    CHECK(blocks->children.front().name == "block 0");
    CHECK(blocks->children.front().parameters == blocks->children.back().parameters);
    CHECK(blocks->children.front().flops == blocks->children.back().flops);
  }
}

TEST_CASE("a model without classes says so, and is looked at all the same") {
  const auto session = open(fixtures / "hf_dinov2");
  Progress progress;
  const LookResult found = session->look(samples / "3.png", progress);
  CHECK(found.top.empty());
  CHECK_THAT(found.no_answer, ContainsSubstring("hf_dinov2") && ContainsSubstring("no classes"));
  CHECK(session->view().has_picture());
}

TEST_CASE("a profile says where the time of an inference goes") {
  const auto session = open("digits");
  Progress progress;
  session->look(samples / "3.png", progress);
  const ProfileResult profile = session->profile(progress);
  CHECK(profile.steps.size() == session->view().executable().plan().steps.size());
  double sum = 0;
  for (const ProfileStep& step : profile.steps) {
    CHECK_FALSE(step.kernel.empty());
    CHECK(step.seconds >= 0);
    sum += step.seconds;
  }
  CHECK(sum > 0);
  REQUIRE_FALSE(profile.bars.empty());
  CHECK(profile.bars.front().depth == 0);
  CHECK(std::abs(profile.bars.front().seconds - profile.total_seconds) <= 1e-9 * sum);
  CHECK(profile.bars.front().dispatches == profile.steps.size());
  // Children lie side by side within their parents.
  size_t blocks = 0;
  for (size_t i = 0; i < profile.bars.size(); ++i) {
    const ProfileBar& bar = profile.bars[i];
    double inside = 0, end = bar.start;
    uint32_t dispatches = 0;
    for (size_t k = i + 1; k < profile.bars.size() && profile.bars[k].depth > bar.depth; ++k) {
      const ProfileBar& child = profile.bars[k];
      if (child.depth != bar.depth + 1) continue;
      CHECK(child.start >= end - 1e-12);
      CHECK(child.path.starts_with(bar.path));
      end = child.start + child.seconds;
      inside += child.seconds;
      dispatches += child.dispatches;
    }
    CHECK(inside <= bar.seconds + 1e-12);
    CHECK(dispatches <= bar.dispatches);
    CHECK((dispatches == bar.dispatches || !bar.kernel.empty()));
    if (bar.path.starts_with("blocks.") && bar.depth == 2) ++blocks;
  }
  CHECK(blocks == session->model().config.depth);
  // What was seen is still there.
  CHECK(session->view().has_picture());
  test::require_no_validation_messages();
}

TEST_CASE("a cancelled job leaves a session that works") {
  const auto session = open("digits");
  Progress cancelled;
  cancelled.cancel();
  CHECK_THROWS_AS(session->look(samples / "3.png", cancelled), Cancelled);
  CHECK_THROWS_AS(session->look(decode_image(samples / "3.png"), "drawn", cancelled), Cancelled);
  CHECK_FALSE(session->view().has_picture());
  CHECK_THROWS_AS(open_model({}), Error);
  Progress progress;
  CHECK(session->look(samples / "3.png", progress).top.front().label == "3");
  CHECK_THROWS_AS(session->profile(cancelled), Cancelled);
  CHECK(session->look(samples / "7.png", progress).top.front().label == "7");
  CHECK_THROWS_AS(ModelSession::open(*test::test_device().pipelines, session->choice(), "f32", cancelled),
                  Cancelled);
}

TEST_CASE("what can't be read is said in a sentence, and the session goes on") {
  const auto session = open("digits");
  const test::TemporaryFolder folder;
  const test::Path broken = folder.file("broken.png", "no picture");
  Progress progress;
  CHECK_THROWS_MATCHES(session->look(broken, progress), Error,
                       MessageMatches(ContainsSubstring("broken.png")));
  CHECK(session->look(samples / "3.png", progress).top.front().label == "3");
  (void)folder.file("model/model.safetensors.txt", "");
  CHECK_THROWS_AS(open(folder / "broken.png"), Error);
  CHECK_THROWS_AS(ModelSession::open(*test::test_device().pipelines, session->choice(), "f64", progress),
                  Error);
}

TEST_CASE("a session gives back all memory of the device") {
  {
    open("digits");
  }  // what the pipelines keep for good
  const uint64_t before = device_bytes();
  const uint64_t host_before = test::test_device().device->memory().host.bytes;
  for (int i = 0; i < 20; ++i) {
    INFO("session " << i);
    {
      const auto session = open(i % 2 == 0 ? "digits" : (fixtures / "hf_dinov2").string());
      Progress progress;
      if (i % 5 != 4) session->look(samples / "3.png", progress);  // some never see a picture
      if (i == 0) session->profile(progress);
      if (i % 5 != 4) CHECK(device_bytes() > before);
    }
    CHECK(device_bytes() == before);
    CHECK(test::test_device().device->memory().host.bytes == host_before);
  }
  test::require_no_validation_messages();
}

TEST_CASE("the facts of a device are those of vitrine devices, and its memory") {
  const Device& device = *test::test_device().device;
  const std::vector<DeviceFact> facts = facts_of(device);
  const test::CommandResult printed = test::run_command({VITRINE_PROGRAM, "devices"});
  REQUIRE(printed.status == 0);
  size_t found = 0;
  for (const DeviceFact& fact : device_facts(device.capabilities())) {
    std::string line = "     " + fact.name;
    line.resize(std::max<size_t>(line.size(), 15), ' ');
    CHECK_THAT(printed.out, ContainsSubstring(line + " " + fact.value + "\n"));
    CHECK(std::ranges::any_of(
        facts, [&](const DeviceFact& f) { return f.name == fact.name && f.value == fact.value; }));
    ++found;
  }
  CHECK(found >= 5);
  CHECK(std::ranges::any_of(facts, [](const DeviceFact& f) { return f.name == "in use"; }));
  CHECK(std::ranges::any_of(facts, [](const DeviceFact& f) { return f.name == "heap 0"; }));
}

}  // namespace vitrine::desktop
