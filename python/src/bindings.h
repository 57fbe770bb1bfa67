// What the parts of the private module share: arrays that own their numbers, and Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/util/error.h"

namespace vitrine::python {

using Floats = nanobind::ndarray<nanobind::numpy, float>;

// An array that owns its numbers: they are moved into it.
template <typename T>
nanobind::ndarray<nanobind::numpy, T> array_of(std::vector<T> values, std::vector<size_t> shape) {
  size_t elements = 1;
  for (const size_t extent : shape) elements *= extent;
  if (elements != values.size())
    throw Error(ErrorCode::failed, "found " + std::to_string(values.size()) + " numbers, expected " +
                                       std::to_string(elements) + " of an array");
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owned->data();
  nanobind::capsule owner(owned.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  static_cast<void>(owned.release());
  return nanobind::ndarray<nanobind::numpy, T>(data, shape.size(), shape.data(), owner);
}

// Ctrl-C, which Python's own thread has to look for while it waits. Takes the GIL.
void check_signals();

// Parts of the module, each in a file of its own.
void add_training(nanobind::module_& m);
void add_graphs(nanobind::module_& m);

}  // namespace vitrine::python
