#include "runtime/graph/activation.h"

namespace vitrine {

std::string_view name_of(Activation activation) {
  switch (activation) {
    case Activation::none:
      return "none";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::gelu_quick:
      return "gelu_quick";
    case Activation::silu:
      return "silu";
    case Activation::tanh:
      return "tanh";
    case Activation::relu:
      return "relu";
  }
  return "?";
}

}  // namespace vitrine
