#include "apps/cli/train_options.h"

#include <charconv>
#include <tuple>

#include "apps/cli/model_options.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

uint64_t validate_every_of(const std::string& text) {
  if (text == "epoch") return TrainConfig::every_epoch;
  uint64_t updates = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), updates);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error(ErrorCode::usage,
                "--validate-every: found " + in_quotes(text) + ", expected epoch or a number of updates");
  }
  return updates;
}

}  // namespace

void add_train_options(CLI::App& command, TrainFlags& flags) {
  command
      .add_option(
          "--data", flags.data,
          "Folder with MNIST's or CIFAR-10's files, train/CLASS/picture.jpg, train-*.tar, train-*.parquet or "
          "train.csv")
      ->required();
  command.add_option(
      "--config", flags.config,
      "JSON: the model, the optimiser and how long. Without it what suits teaching --model other "
      "classes");
  command.add_option("--out", flags.out, "Folder for checkpoints and the trained model")->required();
  command.add_option(
      "--model", flags.model,
      "Begin with this model instead of random weights: a folder, a .safetensors file, or a name in "
      "Hugging Face's cache");
  command.add_option("--train", flags.train,
                     "What is trained: all, head, last:N (blocks), lora[:RANK] beside the model, or names "
                     "with * and ?, with "
                     "commas between them");
  command.add_option("--image-size", flags.image_size,
                     "Images of N or HxW pixels instead of the model's own; learned positions are resampled");
  command.add_option("--classes", flags.classes, "How many there are, where it is more than the data shows")
      ->check(CLI::Range(uint64_t{2}, uint64_t{4'000'000}));
  command.add_option("--head-init", flags.head_init, "What a new head begins with: zero or normal")
      ->check(CLI::IsMember({"zero", "normal"}));
  command.add_option("--set", flags.set, "Overrides a field of the configuration's model: KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--epochs", flags.epochs, "Instead of the configuration's");
  command.add_option("--batch-size", flags.batch_size, "Instead of the configuration's");
  command.add_option("--lr", flags.lr, "Learning rate, instead of the configuration's");
  command.add_option("--weight-decay", flags.weight_decay, "Instead of the configuration's");
  command.add_option("--warmup-epochs", flags.warmup_epochs,
                     "Epochs in which the learning rate rises, instead of the configuration's");
  command.add_option("--layer-decay", flags.layer_decay,
                     "Each layer's learning rate is this times that of the one behind it, instead of the "
                     "configuration's");
  command.add_option("--ema-decay", flags.ema_decay,
                     "Test and save an average of the weights that keeps this much of itself at each update");
  command.add_option("--label-smoothing", flags.label_smoothing, "Instead of the configuration's");
  command
      .add_option(
          "--precision", flags.precision,
          "Of the blocks' products: f32, or f16 with sums in f32; goes before --dtype, which says the same")
      ->check([](const std::string& text) {
        return text == "bf16" ? "found bf16, expected " + std::string(no_bf16) : std::string();
      })
      ->check(CLI::IsMember({"f32", "f16"}));
  command.add_flag("--flip,!--no-flip", flags.flip, "Mirror half of the training pictures, or none");
  command.add_flag(
      "--resized-crop,!--no-resized-crop", flags.resized_crop,
      "Train on random rectangles of the pictures, resized to the model's size, or on whole ones");
  command.add_option(
      "--rand-augment", flags.rand_augment,
      "Change the training pictures by timm's RandAugment, as rand-m9-mstd0.5-inc1 says, or none");
  command.add_flag("--trivial-augment,!--no-trivial-augment", flags.trivial_augment,
                   "Change each training picture by one of torchvision's TrivialAugmentWide, or not");
  command
      .add_option("--color-jitter", flags.color_jitter,
                  "Change brightness, contrast and saturation of the training pictures by up to this part")
      ->check(CLI::NonNegativeNumber);
  command.add_option(
      "--devices", flags.devices,
      "Share each batch among these, numbers or names with commas between them, as --device has "
      "them; their number changes nothing of what comes out");
  command
      .add_option(
          "--parts", flags.parts,
          "Cut each batch into so many parts, whose gradients are added up; left out: as many as a step "
          "needs to fit the device, and with --devices at least 4 an update")
      ->check(CLI::Range(uint64_t{1}, uint64_t{65'536}));
  command.add_flag("--resume", flags.resume, "Go on from the checkpoint in --out, if there is one");
  command.add_flag("--recompute", flags.recompute,
                   "Compute each block's values again instead of keeping them: less memory, more time");
  command
      .add_option("--checkpoint-seconds", flags.checkpoint_seconds,
                  "How often to save, besides at every epoch's end")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option(
      "--validate-every", flags.validate_every_text,
      "epoch, or a number of updates: how often it is tested on the validation part, and its best "
      "model kept; instead of the configuration's");
  command.add_option("--patience", flags.patience,
                     "Ends after so many validations without a better one; 0: never");
  command.add_flag("--tensorboard", flags.tensorboard, "Writes TensorBoard's events besides --out's log.csv");
  command.add_option("--keep", flags.keep,
                     "Checkpoints to keep: with more than 1 those of the last epochs' ends, too");
  command.add_option("--variant", flags.variants,
                     "Kernels to use: operator=kernel, with commas between them");
  command.add_option("--fuse", flags.fusions, "Rules of fusion: all, none, or some with commas between them")
      ->capture_default_str();
  add_layouts_flag(command, flags.layouts);
  command.add_flag("--json", "As it is anyway: a JSON object a line, for each epoch and for the test part");
}

TrainRequest request_of(const TrainFlags& flags, const CommonOptions& common) {
  TrainRequest request = flags;
  std::tie(request.image_height, request.image_width) = image_size_of("--image-size", flags.image_size);
  if (flags.validate_every_text) request.validate_every = validate_every_of(*flags.validate_every_text);
  if (!request.precision && common.dtype != "auto") request.precision = common.dtype;
  return request;
}

}  // namespace vitrine::cli
