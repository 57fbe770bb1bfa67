#include "model/files/preprocess_files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/files/config_timm.h"
#include "model/files/json_names.h"
#include "model/files/json_object.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;

// ---- transformers ----------------------------------------------------------------------------------

// What a processor's class decides: its defaults, and what a lone number as size means.
struct Processor {
  std::string_view name;        // of the class, without ImageProcessor or FeatureExtractor
  std::string_view profile;     // whose defaults it has
  std::string_view model_type;  // the first of those that use it
  bool number_is_square = true;
  bool fixed_size = false;  // knows no shortest_edge
  bool crops = true;        // looks at crop_size
};
constexpr Processor processors[] = {
    {"ViT", "hf", "vit", true, true, false},
    {"DeiT", "hf-deit", "deit", true, true, true},
    {"Bit", "clip", "dinov2", false, false, true},
    {"CLIP", "clip", "clip", false, false, true},
    {"Siglip", "siglip", "siglip", true, true, false},
    {"Siglip2", "naflex", "siglip2", true, true, false},
    {"Beit", "siglip", "beit", true, true, false},
    {"DINOv3ViT", "hf-dinov3-fast", "dinov3_vit", true, true, false},  // there on PyTorch alone
};

const Processor* processor_of_class(std::string name) {
  const auto cut = [&](std::string_view end) {
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  };
  cut("Fast");
  cut("Pil");
  cut("ImageProcessor");
  cut("FeatureExtractor");
  for (const Processor& processor : processors) {
    if (processor.name == name) return &processor;
  }
  return nullptr;
}

const Processor* processor_of_model(std::string_view type) {
  if (type == "dinov2_with_registers") type = "dinov2";
  if (type == "clip_vision_model") type = "clip";
  if (type == "siglip_vision_model") type = "siglip";
  if (type == "siglip2_vision_model") type = "siglip2";
  if (type == "data2vec-vision") type = "beit";
  for (const Processor& processor : processors) {
    if (processor.model_type == type) return &processor;
  }
  return nullptr;
}

const Processor& processor_for(const JsonObject& object, std::string_view model_type) {
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) {
    const auto name = object.text(key);
    if (!name) continue;
    if (const Processor* found = processor_of_class(*name)) return *found;
    object.fail(key, Json(*name),
                "ViTImageProcessor, DeiTImageProcessor, BitImageProcessor, CLIPImageProcessor, "
                "SiglipImageProcessor, Siglip2ImageProcessor, BeitImageProcessor or DINOv3ViTImageProcessor; "
                "--profile says which of " +
                    profile_names() + " to take instead");
  }
  if (const Processor* found = processor_of_model(model_type)) return *found;
  throw Error(ErrorCode::bad_file, object.file() +
                                       ": found no image_processor_type, expected the name of a class; "
                                       "--profile says which of " +
                                       profile_names() + " to take instead");
}

// Whether the file names a class that works on PyTorch's tensors.
bool is_fast(const JsonObject& object) {
  const auto name = object.text("image_processor_type");
  return name && name->ends_with("Fast");
}

// {"height": h, "width": w}, [h, w] or a number.
bool read_sides(const JsonObject& object, const char* key, const Json& value, uint64_t& height,
                uint64_t& width) {
  if (const auto number = as_whole(value)) {
    height = width = *number;
    return true;
  }
  if (value.is_array()) {
    object.sides(key, height, width);
    return true;
  }
  if (!value.is_object() || !value.contains("height") || !value.contains("width")) return false;
  const JsonObject sides(value, object.file());
  height = sides.whole("height").value_or(0);
  width = sides.whole("width").value_or(0);
  return true;
}

void read_size(const JsonObject& object, const Processor& processor, Preprocess& p) {
  const Json* value = object.find("size");
  if (!value) return;
  const bool lone_short_side = value->is_number() && !processor.number_is_square;
  if (!lone_short_side && read_sides(object, "size", *value, p.resize_height, p.resize_width)) {
    p.resize = ResizeRule::stretch;
    return;
  }
  const auto side = lone_short_side ? as_whole(*value)
                    : value->is_object() && value->contains("shortest_edge")
                        ? as_whole((*value)["shortest_edge"])
                        : std::nullopt;
  if (!side || processor.fixed_size) {
    object.fail(
        "size", *value,
        processor.fixed_size ? "height and width, or a number" : "shortest_edge, or height and width");
  }
  p.resize = ResizeRule::short_side;
  p.resize_height = p.resize_width = *side;
}

std::vector<double> numbers(const JsonObject& object, const char* key, std::vector<double> otherwise) {
  const Json* value = object.find(key);
  if (!value || *value == Json::array()) return value ? std::vector<double>{} : otherwise;
  std::vector<double> out;
  if (value->is_number()) out.push_back(value->get<double>());
  if (value->is_array()) {
    for (const Json& element : *value) {
      if (!element.is_number()) object.fail(key, *value, "a list of numbers");
      out.push_back(element.get<double>());
    }
  }
  if (out.empty() || out.size() > 4)
    object.fail(key, *value, "a number, or one for each of up to 4 channels");
  return out;
}

// ---- this library's own ---------------------------------------------------------------------------

constexpr std::array<std::pair<ResizeRule, std::string_view>, 5> resize_names{
    {{ResizeRule::none, "none"},
     {ResizeRule::stretch, "stretch"},
     {ResizeRule::short_side, "short_side"},
     {ResizeRule::cover, "cover"},
     {ResizeRule::contain, "contain"}}};
constexpr std::array<std::pair<CropRule, std::string_view>, 4> crop_names{
    {{CropRule::none, "none"},
     {CropRule::floor, "floor"},
     {CropRule::toward_zero, "toward_zero"},
     {CropRule::half_even, "half_even"}}};
constexpr std::array<std::pair<ScaleRule, std::string_view>, 4> scale_names{
    {{ScaleRule::none, "none"},
     {ScaleRule::divide_255, "divide_255"},
     {ScaleRule::factor, "factor"},
     {ScaleRule::fused, "fused"}}};
constexpr std::array<std::pair<Resampler, std::string_view>, 2> resampler_names{
    {{Resampler::pillow, "pillow"}, {Resampler::torch, "torch"}}};

Filter filter_or_fail(const JsonObject& object, const char* key, const std::string& name) {
  if (const auto filter = filter_named(name)) return *filter;
  object.fail(key, Json(name), "nearest, box, bilinear, hamming, bicubic or lanczos");
}

Filter hugging_face_filter(const JsonObject& object, Filter otherwise) {
  const auto code = object.whole("resample");
  if (!code) return otherwise;
  if (const auto filter = filter_numbered(static_cast<int64_t>(*code))) return *filter;
  object.fail("resample", *object.find("resample"), "one of Pillow's filters, 0 to 5");
}

// ---- timm ------------------------------------------------------------------------------------------

Filter timm_filter(const JsonObject& object) {
  return filter_or_fail(object, "interpolation", object.text("interpolation").value_or("bicubic"));
}

// ---- whose -----------------------------------------------------------------------------------------

std::string_view usual_profile(std::string_view family, std::string_view model_type) {
  if (const Processor* processor = processor_of_model(model_type))
    return processor->model_type == "dinov2" ? "hf-dinov2" : processor->profile;
  if (family.starts_with("timm")) return "timm";
  for (const auto& [known, profile] :
       {std::pair<std::string_view, std::string_view>{"torchvision", "torchvision"},
        {"myvit", "grey"},
        {"hf_aimv2", "clip"},
        {"hf_mlcd", "clip"},
        {"hf_siglip2", "naflex"},
        {"hf_beit", "siglip"},
        {"hf_dinov3", "hf-dinov3-fast"},
        {"meta_dinov3", "hf-dinov3-fast"},
        {"random", "timm"}}) {
    if (family == known) return profile;
  }
  for (const std::string_view part : {"dinov2", "clip", "siglip"}) {
    if (family.find(part) != std::string_view::npos)
      return part == "dinov2" ? std::string_view("hf-dinov2") : part;
  }
  return "hf";
}

// Of families whose library shows pictures in a way that no profile is: how.
std::string_view another_way(std::string_view family) {
  for (const auto& [known, way] :
       {std::pair<std::string_view, std::string_view>{
            "hf_sam", "SAM's own pictures, whose longer side is scaled and the rest filled up,"},
        {"hf_janus", "Janus' own pictures, whose longer side is scaled and the rest filled up,"},
        {"hf_yolos", "YOLOS' own pictures, which keep the shape that they have,"},
        {"hf_vitdet", "pictures as a detector around it has them"},
        {"hf_pixtral", "Pixtral's own pictures, which keep the shape that they have,"}}) {
    if (family == known) return way;
  }
  return {};
}

}  // namespace

nlohmann::ordered_json to_json(const Preprocess& p) {
  nlohmann::ordered_json json;
  json["resize"] = name_among(resize_names, p.resize);
  json["resize_size"] = {p.resize_height, p.resize_width};
  json["filter"] = name_of(p.filter);
  json["resampler"] = name_among(resampler_names, p.resampler);
  json["crop_pct"] = p.crop_pct;
  json["crop"] = name_among(crop_names, p.crop);
  json["crop_size"] = {p.crop_height, p.crop_width};
  json["fill"] = p.fill;
  json["scale"] = name_among(scale_names, p.scale);
  json["factor"] = p.factor;
  json["normalize"] = p.normalize;
  json["mean"] = p.mean;
  json["std"] = p.std;
  json["exif"] = p.exif;
  json["converts_rgb"] = p.converts_rgb;
  if (p.kept_shape)
    json["kept_shape"] = {{"patch", p.kept_shape->patch}, {"most_patches", p.kept_shape->most_patches}};
  return json;
}

Preprocess preprocess_of(const Json& json, Preprocess p, const std::string& file) {
  const JsonObject object(json, file);
  constexpr std::array<std::string_view, 16> known{
      "resize", "resize_size", "filter", "crop_pct", "crop",      "crop_size",  "fill", "scale",
      "factor", "normalize",   "mean",   "std",      "resampler", "kept_shape", "exif", "converts_rgb"};
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(known, key) == known.end())
      throw Error(ErrorCode::bad_file, file + ": \"" + key + "\" is not known of preprocessing");
  }
  read_name(object, "resize", resize_names, p.resize);
  if (object.find("resize_size")) object.sides("resize_size", p.resize_height, p.resize_width);
  if (const auto name = object.text("filter")) p.filter = filter_or_fail(object, "filter", *name);
  read_name(object, "resampler", resampler_names, p.resampler);
  assign(p.crop_pct, object.number("crop_pct"));
  if (!(p.crop_pct >= 0 && p.crop_pct <= 10))
    object.fail("crop_pct", *object.find("crop_pct"), "a number from 0 to 10");
  read_name(object, "crop", crop_names, p.crop);
  if (object.find("crop_size")) object.sides("crop_size", p.crop_height, p.crop_width);
  if (const Json* fill = object.find("fill")) {
    if (!fill->is_array() || fill->size() != 3) object.fail("fill", *fill, "three bytes");
    for (size_t c = 0; c < 3; ++c) {
      const auto byte = as_whole((*fill)[c]);
      if (!byte || *byte > 255) object.fail("fill", *fill, "three bytes");
      p.fill[c] = static_cast<uint8_t>(*byte);
    }
  }
  read_name(object, "scale", scale_names, p.scale);
  assign(p.factor, object.number("factor"));
  assign(p.normalize, object.flag("normalize"));
  p.mean = numbers(object, "mean", p.mean);
  p.std = numbers(object, "std", p.std);
  assign(p.exif, object.flag("exif"));
  assign(p.converts_rgb, object.flag("converts_rgb"));
  if (const auto kept = object.object("kept_shape")) {
    p.kept_shape = KeptShape{};
    assign(p.kept_shape->patch, kept->whole("patch"));
    assign(p.kept_shape->most_patches, kept->whole("most_patches"));
  }
  p.profile = file;
  p.validate(file);
  return p;
}

nlohmann::ordered_json hugging_face_json(const Preprocess& p) {
  const auto sides = [](uint64_t height, uint64_t width) {
    return nlohmann::ordered_json{{"height", height}, {"width", width}};
  };
  // One number stands for all channels there, too, if it is no list.
  const auto of_channels = [](const std::vector<double>& numbers) {
    return numbers.size() == 1 ? nlohmann::ordered_json(numbers.front()) : nlohmann::ordered_json(numbers);
  };
  const bool crops = p.crop != CropRule::none;
  // What `contain` leaves around a picture no class can make: all of the picture is nearer than its middle.
  const bool stretches = p.resize == ResizeRule::stretch || p.resize == ResizeRule::contain;
  nlohmann::ordered_json json;
  json["image_processor_type"] = std::string(!stretches     ? "Bit"
                                             : crops        ? "DeiT"
                                             : p.kept_shape ? "Siglip2"
                                                            : "ViT") +
                                 "ImageProcessor" + (p.resampler == Resampler::torch ? "Fast" : "");
  json["do_resize"] = p.resize != ResizeRule::none;
  if (p.kept_shape) {
    json["patch_size"] = p.kept_shape->patch;
    json["max_num_patches"] = p.kept_shape->most_patches;
  } else if (stretches) {
    json["size"] = sides(p.resize_height, p.resize_width);
  } else {
    const uint64_t side = p.resize == ResizeRule::none ? std::max(p.crop_height, p.crop_width)
                                                       : std::max(p.resize_height, p.resize_width);
    json["size"] = {{"shortest_edge", side}};
  }
  json["resample"] = number_of(p.filter);
  json["do_center_crop"] = crops;
  if (crops) json["crop_size"] = sides(p.crop_height, p.crop_width);
  json["do_rescale"] = p.scale != ScaleRule::none;
  json["rescale_factor"] = p.scale == ScaleRule::factor || p.scale == ScaleRule::fused ? p.factor : 1.0 / 255;
  json["do_normalize"] = p.normalize;
  json["do_convert_rgb"] = p.converts_rgb;
  if (!p.mean.empty()) json["image_mean"] = of_channels(p.mean);
  if (!p.std.empty()) json["image_std"] = of_channels(p.std);
  // What reading that gives differs in, and only that: who edits the fields above is understood.
  const nlohmann::ordered_json meant = to_json(p),
                               said = to_json(read_hugging_face_preprocess(Json(json), "", "itself"));
  for (const auto& [key, value] : meant.items()) {
    if (said.at(key) != value) json["vitrine"][key] = value;
  }
  return json;
}

Preprocess read_hugging_face_preprocess(const Json& json, std::string_view model_type,
                                        const std::string& file) {
  const JsonObject object(json, file);
  const Processor& processor = processor_for(object, model_type);
  Preprocess p = profile_named(processor.profile, 224, 224);
  if (processor.name == "DeiT") p.mean = p.std = {0.5, 0.5, 0.5};  // the class's own default
  p.profile = file;
  if (p.kept_shape) {
    assign(p.kept_shape->patch, object.whole("patch_size"));
    assign(p.kept_shape->most_patches, object.whole("max_num_patches"));
    if (!object.flag("do_resize").value_or(true)) {
      object.fail("do_resize", false, "true, as pictures have to be whole patches");
    }
  } else {
    read_size(object, processor, p);
  }
  p.filter = hugging_face_filter(object, p.filter);
  if (!object.flag("do_resize").value_or(true)) p.resize = ResizeRule::none;
  if (processor.crops) {
    if (const Json* value = object.find("crop_size")) {
      if (!read_sides(object, "crop_size", *value, p.crop_height, p.crop_width))
        object.fail("crop_size", *value, "height and width, or a number");
    }
    if (!object.flag("do_center_crop").value_or(true)) p.crop = CropRule::none;
  } else if (processor.name == "Beit" && object.flag("do_center_crop").value_or(false)) {
    object.fail("do_center_crop", true, "false, all that this version does for BEiT");
  }
  p.factor = object.number("rescale_factor").value_or(1.0 / 255);
  if (!object.flag("do_rescale").value_or(true)) p.scale = ScaleRule::none;
  p.normalize = object.flag("do_normalize").value_or(true);
  p.mean = numbers(object, "image_mean", p.mean);
  p.std = numbers(object, "image_std", p.std);
  if (processor.name == "Beit") p.converts_rgb = false;
  assign(p.converts_rgb, object.flag("do_convert_rgb"));
  if (is_fast(object)) p = p.on_torch();
  if (processor.name == "DINOv3ViT" && p.resize != ResizeRule::none) {
    p.remark = file +
               ": pictures are resized as bytes, where its processor resizes numbers that aren't rounded: "
               "pixels differ by up to a level";
  }
  if (const Json* own = object.find("vitrine")) return preprocess_of(*own, std::move(p), file);
  p.validate(file);
  return p;
}

Preprocess read_timm_preprocess(const Json& json, const ViTConfig& config, const std::string& file) {
  const JsonObject top(json, file);
  const JsonObject object = top.object("pretrained_cfg").value_or(top);
  uint64_t height = config.image_height, width = config.image_width;
  if (const Json* size = object.find("input_size")) {
    const bool three = size->is_array() && size->size() == 3;
    const auto h = three ? as_whole((*size)[1]) : std::nullopt,
               w = three ? as_whole((*size)[2]) : std::nullopt;
    if (!h || !w) object.fail("input_size", *size, "[channels, height, width]");
    height = *h;
    width = *w;
  }
  Preprocess p;
  p.profile = file;
  p.filter = timm_filter(object);
  p.mean = numbers(object, "mean", {0.485, 0.456, 0.406});
  p.std = numbers(object, "std", {0.229, 0.224, 0.225});
  p.crop_pct = object.number("crop_pct").value_or(0.875);
  if (!(p.crop_pct > 0.01 && p.crop_pct <= 10))
    object.fail("crop_pct", *object.find("crop_pct"), "a number above 0.01 and up to 10");
  p.crop = CropRule::half_even;
  const std::string mode = object.text("crop_mode").value_or("center");
  if (mode == "center") {
    p.resize = ResizeRule::short_side;
  } else if (mode == "squash") {
    p.resize = ResizeRule::stretch;
  } else if (mode == "border") {
    p.resize = ResizeRule::contain;
    for (size_t c = 0; c < 3; ++c) {
      const double mean = p.mean[p.mean.size() == 3 ? c : 0];
      p.fill[c] = static_cast<uint8_t>(std::clamp(std::nearbyint(255 * mean), 0.0, 255.0));
    }
  } else {
    object.fail("crop_mode", Json(mode), "center, squash or border");
  }
  p.crop_height = height;
  p.crop_width = width;
  p = p.with_size(height, width);
  p.validate(file);
  return p;
}

Preprocess read_preprocess(const std::filesystem::path& path, std::string_view family,
                           const ViTConfig& config) {
  const bool folder = !path.empty() && is_folder(path);
  const std::filesystem::path own = path / "preprocessor_config.json",
                              together = path / "processor_config.json", general = path / "config.json";
  std::string model_type;
  if (folder && path_exists(general)) {
    const Json json = read_json(general);
    const JsonObject object(json, shown(general));
    model_type = object.text("model_type").value_or("");
    if ((model_type.empty() || wraps_timm(object)) && object.find("architecture"))
      return read_timm_preprocess(json, config, shown(general));
  }
  if (family == "hf_video") {
    throw Error(ErrorCode::bad_file,
                shown(path) +
                    ": it sees videos, which pictures and video files aren't made to; expected "
                    "vitrine run with an array of their tubelets");
  }
  if (family == "hf_ast") {
    throw Error(ErrorCode::bad_file,
                shown(path) +
                    ": it sees spectrograms, which pictures and sound files aren't made to; "
                    "expected vitrine run with an array [count, 1, frequencies, times]");
  }
  // Pictures that keep their shape have no size that a file could say: the model's.
  const auto of_model = [&](Preprocess p) {
    if (p.kept_shape) p.resize_height = config.image_height, p.resize_width = config.image_width;
    return p;
  };
  if (folder && path_exists(own))
    return of_model(read_hugging_face_preprocess(read_json(own), model_type, shown(own)));
  // transformers 5 saves a processor of pictures and words as one file, and older ones as both.
  if (folder && path_exists(together)) {
    const Json json = read_json(together);
    const JsonObject object(json, shown(together));
    if (const Json* pictures = object.find("image_processor"); pictures && pictures->is_object())
      return of_model(read_hugging_face_preprocess(*pictures, model_type, shown(together)));
  }
  if (const std::string_view way = another_way(family); !way.empty()) {
    throw Error(ErrorCode::bad_file, shown(path) + ": found no processor's file, and " + std::string(way) +
                                         " are not supported yet; --profile says which of " +
                                         profile_names() + " to take instead");
  }
  const std::string_view profile = usual_profile(family, model_type);
  // DINOv2 is published with positions for 518 pixels, and transformers shows it 224.
  const bool trained_larger =
      profile == "hf-dinov2" && config.image_height == 518 && config.image_width == 518;
  Preprocess p = profile_named(profile, trained_larger ? 224 : config.image_height,
                               trained_larger ? 224 : config.image_width);
  if (p.kept_shape) p.kept_shape->patch = config.patch_height;
  return p;
}

}  // namespace vitrine
