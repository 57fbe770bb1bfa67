// float32 of Python's in C's order, by the buffer protocol: nanobind's arrays come through DLPack and leave
// through numpy.array, which took a third of what a call costs beside the run.
#pragma once

#include <nanobind/nanobind.h>

#include <cstring>
#include <span>

namespace vitrine::python {

// Holds the buffer for as long as it lives; opened and let go with the GIL.
class FloatBuffer {
 public:
  enum class Access { read, write };

  FloatBuffer() = default;
  ~FloatBuffer() { close(); }
  FloatBuffer(const FloatBuffer&) = delete;
  FloatBuffer& operator=(const FloatBuffer&) = delete;

  // False where the object has no such numbers of so many axes.
  bool open(nanobind::handle object, int axes, Access access) {
    close();
    const int flags = PyBUF_ND | PyBUF_FORMAT | (access == Access::write ? PyBUF_WRITABLE : 0);
    if (!PyObject_CheckBuffer(object.ptr())) return false;
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) {
      PyErr_Clear();
      return false;
    }
    if (view_.ndim == axes && view_.format && std::strcmp(view_.format, "f") == 0) return true;
    close();
    return false;
  }

  // Nothing where none is held.
  void close() {
    PyBuffer_Release(&view_);
    view_ = {};
  }

  std::span<const Py_ssize_t> shape() const { return {view_.shape, static_cast<size_t>(view_.ndim)}; }
  std::span<float> numbers() const {
    return {static_cast<float*>(view_.buf), static_cast<size_t>(view_.len) / sizeof(float)};
  }

 private:
  Py_buffer view_{};
};

}  // namespace vitrine::python
