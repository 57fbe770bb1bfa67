// float32 of Python's in C's order, by the buffer protocol: nanobind's arrays come through DLPack and leave
// through numpy.array, which took a third of what a call costs beside the run.
#pragma once

#include <nanobind/nanobind.h>

#include <cstring>
#include <span>

#include "runtime/util/error.h"

namespace vitrine::python {

// Holds the buffer for as long as it lives; made and let go with the GIL.
class FloatBuffer {
 public:
  enum class Access { read, write };

  FloatBuffer(nanobind::handle object, Access access) {
    const int flags = PyBUF_ND | PyBUF_FORMAT | (access == Access::write ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nanobind::python_error();
    if (!view_.format || std::strcmp(view_.format, "f") != 0) {
      PyBuffer_Release(&view_);
      throw Error(ErrorCode::usage, "found numbers of another type, expected float32");
    }
  }
  ~FloatBuffer() { PyBuffer_Release(&view_); }
  FloatBuffer(const FloatBuffer&) = delete;
  FloatBuffer& operator=(const FloatBuffer&) = delete;

  std::span<const Py_ssize_t> shape() const { return {view_.shape, static_cast<size_t>(view_.ndim)}; }
  std::span<float> numbers() const {
    return {static_cast<float*>(view_.buf), static_cast<size_t>(view_.len) / sizeof(float)};
  }

 private:
  Py_buffer view_{};
};

}  // namespace vitrine::python
