// What Python sees of the C++ side: the private module behind the package, in plain types. Names, defaults
// and kinds of pictures are python/vitrine's.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>
#include <utility>

#include "model/look/structure.h"
#include "model/run/top_answers.h"
#include "python/src/bindings.h"
#include "python/src/float_buffer.h"
#include "python/src/session.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "runtime/vk/device_facts.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace vitrine::python {

void check_signals() {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

namespace {

using Images = nb::ndarray<const float, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Bytes3 = nb::ndarray<const uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Errors = std::vector<std::pair<uint64_t, std::string>>;

// What was odd, as Python's warnings; one that a filter makes an error is thrown.
void show_warnings(Session& session) {
  for (const std::string& sentence : session.take_warnings()) {
    if (PyErr_WarnEx(PyExc_UserWarning, sentence.c_str(), 2) != 0) throw nb::python_error();
  }
}

// `work` without the GIL.
template <typename Work>
auto released(Session& session, const Work& work) {
  const auto without = [&] {
    const nb::gil_scoped_release free;
    return work();
  };
  if constexpr (std::is_void_v<decltype(work())>) {
    without();
    show_warnings(session);
  } else {
    auto result = without();
    show_warnings(session);
    return result;
  }
}

std::optional<Result> result_of(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  if (const auto result = result_named(*name)) return result;
  throw Error(ErrorCode::usage,
              "what: found " + in_quotes(*name) + ", expected logits, probabilities, features or tokens");
}

// That so long an array is [B, C, H, W] of the model's pictures.
template <typename Extent>
void require_size(std::span<const Extent> shape, const ViTConfig& c) {
  const auto is = [&](size_t axis, uint64_t extent) { return static_cast<uint64_t>(shape[axis]) == extent; };
  if (shape.size() == 4 && shape[0] > 0 && is(1, c.channels) && is(2, c.image_height) &&
      is(3, c.image_width)) {
    return;
  }
  std::string found;
  for (const Extent extent : shape) found += (found.empty() ? "" : ", ") + std::to_string(extent);
  throw Error(ErrorCode::usage, "found an array of (" + found + "), expected (B, " +
                                    std::to_string(c.channels) + ", " + std::to_string(c.image_height) +
                                    ", " + std::to_string(c.image_width) + ") with B at least 1");
}

std::span<const float> numbers_of(const Images& x) { return {x.data(), x.size()}; }
std::span<const int64_t> shape_of(const Images& x) { return {x.shape_ptr(), x.ndim()}; }

// A str is a path, bytes are a file's, an array [H, W, C] is pixels. What it points to lives as long as
// `item`.
PictureSource source_of(nb::handle item, std::vector<Bytes3>& arrays) {
  if (nb::isinstance<nb::str>(item)) return std::filesystem::path(nb::cast<std::string>(item));
  if (nb::isinstance<nb::bytes>(item)) {
    const auto bytes = nb::borrow<nb::bytes>(item);
    return std::span(static_cast<const std::byte*>(bytes.data()), bytes.size());
  }
  const Bytes3& array = arrays.emplace_back(nb::cast<Bytes3>(item));
  const size_t channels = array.shape(2);
  if (array.size() == 0 || (channels != 1 && channels != 3 && channels != 4)) {
    throw Error(ErrorCode::usage, "found pixels that aren't [H, W, C] of 1, 3 or 4 channels");
  }
  return Pixels{array.data(), array.shape(0), array.shape(1), channels};
}

std::string name_at(nb::handle item, size_t index) {
  return nb::isinstance<nb::str>(item) ? shown(nb::cast<std::string>(item))
                                       : "picture " + std::to_string(index);
}

std::tuple<Floats, Errors> pictures(Session& session, const nb::list& items, const std::string& what,
                                    uint64_t batch, bool exif, const nb::object& progress) {
  const Result result = *result_of(what);
  std::vector<Bytes3> arrays;
  std::vector<PictureSource> sources;
  std::vector<std::string> names;
  for (const nb::handle item : items) {
    names.push_back(name_at(item, names.size()));
    sources.push_back(source_of(item, arrays));
  }
  const auto between = [&](uint64_t done) {
    check_signals();
    if (progress.is_none()) return;
    const nb::gil_scoped_acquire gil;
    progress(done);
  };
  PictureRows rows =
      released(session, [&] { return session.pictures(sources, names, result, batch, exif, between); });
  const ViTConfig& c = session.model().config;
  return {array_of(std::move(rows.values), result_shape(c, result, rows.rows)), std::move(rows.errors)};
}

// numpy.empty and float32's dtype, found when the module is.
std::pair<PyObject*, PyObject*>& empty_array() {
  static std::pair<PyObject*, PyObject*> found;
  return found;
}

nb::object empty_floats(const std::vector<uint64_t>& shape) {
  const nb::object extents = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (size_t i = 0; i < shape.size(); ++i) {
    PyTuple_SetItem(extents.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromUnsignedLongLong(shape[i]));
  }
  const auto& [empty, type] = empty_array();
  PyObject* made = PyObject_CallFunctionObjArgs(empty, extents.ptr(), type, nullptr);
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

// An array of this shape for results, opened. Of small ones those that nobody has any more are given out
// again: behind a run, where that is the CPU's, to make one costs as much as all else of a call but the
// copies.
nb::object room_for(const std::vector<uint64_t>& shape, FloatBuffer& room) {
  // Never let go of: when the interpreter ends it is too late for that. Whoever has the GIL uses them.
  static std::array<PyObject*, 2> spares{};
  static size_t oldest = 0;
  constexpr size_t most_kept = 65536;
  const int axes = static_cast<int>(shape.size());
  for (PyObject* spare : spares) {
    // Somebody may have reshaped it, or made it read-only, before he let go.
    if (spare && Py_REFCNT(spare) == 1 && room.open(spare, axes, FloatBuffer::Access::write) &&
        std::ranges::equal(room.shape(), shape))
      return nb::borrow(spare);
    room.close();
  }
  nb::object made = empty_floats(shape);
  if (!room.open(made, axes, FloatBuffer::Access::write))
    throw Error(ErrorCode::failed, "numpy.empty: found no array of float32");
  if (room.numbers().size_bytes() <= most_kept) {
    Py_XDECREF(std::exchange(spares[oldest], made.inc_ref().ptr()));
    oldest = (oldest + 1) % spares.size();
  }
  return made;
}

// All of model(x) in one function: behind a run the device's driver, where that is the CPU, has left nothing
// of Python's in the caches, and each function of Python's own costs microseconds.
nb::object run(Session& session, nb::handle x, const std::optional<std::string>& what, int64_t batch) {
  if (batch < 1) {
    throw Error(ErrorCode::usage, "batch_size: found " + std::to_string(batch) + ", expected 1 or more");
  }
  FloatBuffer images, room;
  if (!images.open(x, 4, FloatBuffer::Access::read)) {
    const nb::object copy = nb::module_::import_("vitrine._inputs").attr("batch")(x);
    if (!images.open(copy, 4, FloatBuffer::Access::read)) {
      throw Error(ErrorCode::failed, "found an array of other numbers than float32");
    }
  }
  const ViTConfig& c = session.model().config;
  require_size(images.shape(), c);
  const Result result = result_of(what).value_or(natural_result(c));
  const std::vector<uint64_t> shape = result_shape(c, result, static_cast<uint64_t>(images.shape()[0]));
  const nb::object results = room_for(shape, room);
  released(session, [&] {
    session.run(images.numbers(), result, static_cast<uint64_t>(batch), check_signals, room.numbers());
  });
  return results;
}

Floats preprocess(Session& session, nb::handle picture, bool exif) {
  std::vector<Bytes3> arrays;
  const PictureSource source = source_of(picture, arrays);
  const std::string name = name_at(picture, 0);
  Session::Preprocessed made = released(session, [&] { return session.preprocess(source, name, exif); });
  return array_of(std::move(made.values), {session.model().config.channels, made.height, made.width});
}

std::tuple<std::vector<Floats>, std::vector<Floats>> maps(Session& session, const Images& x,
                                                          const std::vector<uint64_t>& layers, bool norm,
                                                          bool rows) {
  const ViTConfig& c = session.model().config;
  require_size(shape_of(x), c);
  Session::Maps all = released(session, [&] { return session.maps(numbers_of(x), layers, norm, rows); });
  const size_t count = x.shape(0);
  std::vector<Floats> arrays, prefixes;
  for (std::vector<float>& map : all.maps) {
    arrays.push_back(array_of(std::move(map),
                              rows ? std::vector<size_t>{count, c.patches(), all.width}
                                   : std::vector<size_t>{count, all.width, c.grid_height(), c.grid_width()}));
  }
  for (std::vector<float>& prefix : all.prefixes) {
    prefixes.push_back(array_of(std::move(prefix), {count, c.prefix_in_blocks(), c.dim}));
  }
  return {std::move(arrays), std::move(prefixes)};
}

// The weights flat, the patches' map, and the picture below it as RGBA.
std::tuple<Floats, Floats, nb::ndarray<nb::numpy, uint8_t>> attention(Session& session, nb::handle picture,
                                                                      std::optional<uint64_t> layer,
                                                                      std::optional<uint64_t> head,
                                                                      std::optional<uint64_t> token,
                                                                      bool every_row, bool exif) {
  std::vector<Bytes3> arrays;
  const PictureSource source = source_of(picture, arrays);
  const std::string name = name_at(picture, 0);
  const MapChoice choice{.layer = layer, .head = head, .token = token};
  AttentionResult result =
      released(session, [&] { return session.attention(source, name, choice, every_row, exif); });
  const size_t count = result.weights.size();
  return {array_of(std::move(result.weights), {count}),
          array_of(std::move(result.map.weights), {result.map.height, result.map.width}),
          array_of(std::move(result.overlay.pixels), {result.overlay.height, result.overlay.width, 4})};
}

// Parts of the model, each behind the one that it is a part of: how deep it lies, its name, what it is in
// words, what comes out of it for one image, its parameters and its arithmetic.
using Parts =
    std::vector<std::tuple<uint64_t, std::string, std::string, std::vector<uint64_t>, uint64_t, double>>;
void add_parts(Parts& parts, const std::vector<StructureNode>& nodes, uint64_t depth) {
  for (const StructureNode& node : nodes) {
    parts.emplace_back(depth, node.name, node.what, node.shape, node.parameters, node.flops);
    // What an operator has below it are words, not parts.
    if (node.operator_name.empty()) add_parts(parts, node.children, depth + 1);
  }
}
Parts parts_of(const Session& session) {
  const ViTConfig& c = session.model().config;
  Parts parts;
  add_parts(parts, structure_of(c, *make_vit_graph(c, {.dtype = session.dtype()})), 0);
  return parts;
}

std::optional<Floats> file_tensor(const Session& session, const std::string& name) {
  auto found = session.file_tensor(name);
  if (!found) return std::nullopt;
  return array_of(std::move(found->second), {found->first.begin(), found->first.end()});
}

nb::list devices(const std::string& wanted) {
  DeviceList list;
  {
    const nb::gil_scoped_release free;
    list = devices_for(wanted);
  }
  nb::list all;
  for (size_t i = 0; i < list.devices.size(); ++i) {
    const Capabilities& device = list.devices[i].capabilities;
    nb::dict one;
    one["index"] = i;
    one["name"] = device.name;
    one["kind"] = std::string(name_of(device.type));
    one["driver"] = device.driver_name;
    one["memory_bytes"] = device_local_bytes(device);
    one["f16"] = contains(device.has, Need::storage16);
    one["uuid"] = nb::bytes(device.device_uuid.data(), device.device_uuid.size());
    one["chosen"] = list.choice.chosen == i;
    one["reason"] = list.choice.reasons[i];
    all.append(one);
  }
  return all;
}

void init_session(Session* self, const std::string& model, const std::string& arch, uint64_t seed,
                  const std::string& device, const std::string& dtype, uint64_t height, uint64_t width,
                  const std::string& profile, const std::vector<std::string>& set) {
  const ModelOptions options{.model = model,
                             .arch = arch,
                             .seed = seed,
                             .set = set,
                             .image_height = height,
                             .image_width = width,
                             .profile = profile};
  const nb::gil_scoped_release free;
  new (self) Session(options, device, dtype);
}

std::vector<std::tuple<uint64_t, std::string, float>> top(
    const Session& session, const nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>& row,
    uint64_t count) {
  std::vector<std::tuple<uint64_t, std::string, float>> answers;
  for (const TopAnswer& answer : top_answers({row.data(), row.size()}, count, session.labels())) {
    answers.emplace_back(answer.index, answer.label, answer.probability);
  }
  return answers;
}

std::vector<std::string> labels_of(const Session& session) {
  std::vector<std::string> names;
  for (uint64_t i = 0; i < session.model().config.classes; ++i) names.push_back(session.labels()[i]);
  return names;
}

// The package's exceptions, which it hands in before it opens anything: Error, DeviceError, ModelError,
// ImageError.
std::array<PyObject*, 4>& error_classes() {
  static std::array<PyObject*, 4> classes{};
  return classes;
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const size_t kind = dynamic_cast<const PictureError*>(&error) != nullptr ? 3
                        : error.code() == ErrorCode::no_device               ? 1
                        : error.code() == ErrorCode::bad_file                ? 2
                                                                             : 0;
    PyObject* type = error_classes()[kind];
    PyErr_SetString(type ? type : PyExc_RuntimeError, error.what());
  }
}

}  // namespace

NB_MODULE(_vitrine, m) {
  // Sessions that a program still holds at its end are no mistake of its own.
  nb::set_leak_warnings(false);
  const nb::module_ numpy = nb::module_::import_("numpy");
  empty_array() = {nb::object(numpy.attr("empty")).release().ptr(),
                   nb::object(numpy.attr("dtype")("float32")).release().ptr()};
  nb::register_exception_translator(translate);
  m.def(
      "set_errors",
      [](nb::handle error, nb::handle device, nb::handle model, nb::handle image) {
        error_classes() = {error.inc_ref().ptr(), device.inc_ref().ptr(), model.inc_ref().ptr(),
                           image.inc_ref().ptr()};
      },
      nb::sig("def set_errors(error: type, device: type, model: type, image: type) -> None"));
  m.def("devices", &devices, "wanted"_a, nb::sig("def devices(wanted: str) -> list[dict[str, object]]"));

  m.def("find_model", [](const std::string& name) { return find_checkpoint(name).string(); }, "name"_a);

  add_training(m);
  add_graphs(m);
  nb::class_<Session>(m, "Session")
      .def("__init__", &init_session, "model"_a, "arch"_a, "seed"_a, "device"_a, "dtype"_a, "height"_a,
           "width"_a, "profile"_a, "set"_a)
      .def("show_warnings", &show_warnings)
      .def("run", &run, "x"_a, "what"_a.none(), "batch"_a,
           nb::sig("def run(self, x: object, what: str | None, batch: int) -> NDArray[numpy.float32]"))
      .def("pictures", &pictures, "items"_a, "what"_a, "batch"_a, "exif"_a, "progress"_a.none(),
           nb::sig(
               "def pictures(self, items: list[str | bytes | NDArray[numpy.uint8]], what: str, batch: int, "
               "exif: bool, progress: collections.abc.Callable[[int], None] | None) -> "
               "tuple[NDArray[numpy.float32], list[tuple[int, str]]]"))
      .def("preprocess", &preprocess, "picture"_a, "exif"_a)
      .def("maps", &maps, "x"_a, "layers"_a, "norm"_a, "rows"_a)
      .def("attention", &attention, "picture"_a, "layer"_a.none(), "head"_a.none(), "token"_a.none(),
           "every_row"_a, "exif"_a)
      .def("top", &top, "row"_a, "count"_a)
      .def("parts", &parts_of)
      .def("file_tensor", &file_tensor, "name"_a)
      .def_prop_ro("labels", &labels_of)
      .def_prop_ro("exif", [](const Session& session) { return session.how_to_read().exif; })
      .def_prop_ro("white", [](const Session& session) { return session.how_to_read().converts_rgb; })
      .def_prop_ro("name", [](const Session& s) { return s.model().name; })
      .def_prop_ro("path", [](const Session& s) { return s.model().path.string(); })
      .def_prop_ro("family", [](const Session& s) { return s.model().family; })
      .def_prop_ro("device", [](const Session& s) { return s.capabilities().name; })
      .def_prop_ro("dtype", [](const Session& s) { return std::string(name_of(s.dtype())); })
      .def_prop_ro("preprocessing", [](const Session& s) { return s.model().preprocess.to_string(); })
      .def_prop_ro("parameters", [](const Session& s) { return parameter_count(s.model().config); })
      .def_prop_ro("fields", [](const Session& s) { return fields_of(s.model().config); })
      .def_prop_ro("grid",
                   [](const Session& s) {
                     const ViTConfig& c = s.model().config;
                     return std::pair(c.grid_height(), c.grid_width());
                   })
      .def_prop_ro("tokens", [](const Session& s) { return s.model().config.tokens(); })
      .def_prop_ro("prefix_tokens", [](const Session& s) { return s.model().config.prefix_tokens(); })
      .def_prop_ro("feature_width", [](const Session& s) { return s.model().config.feature_width(); })
      .def_prop_ro("attention_pool", [](const Session& s) { return has_attention_pool(s.model().config); })
      .def(
          "heads_of_maps",
          [](const Session& s, std::optional<uint64_t> layer) {
            return heads_of_maps(s.model().config, layer);
          },
          "layer"_a.none());
}

}  // namespace vitrine::python
