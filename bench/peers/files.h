// Reads the files of a benchmark run: float32 safetensors and npy. It shares no code with Vitrine, so
// that a mistake in Vitrine's readers shows as wrong logits. The files are ours: a bad one is an
// exception, but not every rule of the formats is checked.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace peer {

struct Tensor {
  std::vector<int64_t> shape;  // the slowest dimension first
  std::vector<float> values;
};

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + ": can't be opened");
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::map<std::string, Tensor> read_safetensors(const std::string& path) {
  const std::string file = read_file(path);
  uint64_t header = 0;
  if (file.size() < 8) throw std::runtime_error(path + ": is no safetensors file");
  std::memcpy(&header, file.data(), 8);
  if (header > file.size() - 8) throw std::runtime_error(path + ": is cut off");
  std::map<std::string, Tensor> tensors;
  const nlohmann::json entries = nlohmann::json::parse(file.substr(8, header));
  for (const auto& [name, entry] : entries.items()) {
    if (name == "__metadata__") continue;
    if (entry.at("dtype") != "F32") throw std::runtime_error(path + ": " + name + " is not F32");
    const uint64_t begin = entry.at("data_offsets").at(0), end = entry.at("data_offsets").at(1);
    if (begin > end || end > file.size() - 8 - header) throw std::runtime_error(path + ": is cut off");
    Tensor tensor{entry.at("shape"), std::vector<float>((end - begin) / 4)};
    std::memcpy(tensor.values.data(), file.data() + 8 + header + begin, tensor.values.size() * 4);
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

inline Tensor read_npy(const std::string& path) {
  const std::string file = read_file(path);
  if (file.size() < 10 || file.compare(0, 7, "\x93NUMPY\x01") != 0) {
    throw std::runtime_error(path + ": is no npy file of format 1.0");
  }
  const size_t header = static_cast<uint8_t>(file[8]) + 256u * static_cast<uint8_t>(file[9]);
  const std::string text = file.substr(10, header);
  const size_t open = text.find('('), close = text.find(')');
  if (text.find("'<f4'") == std::string::npos || text.find("True") != std::string::npos ||
      close == std::string::npos) {
    throw std::runtime_error(path + ": is not float32 in C order");
  }
  Tensor tensor;
  for (size_t at = open + 1; at < close; ++at) {
    if (text[at] < '0' || text[at] > '9') continue;
    size_t digits = 0;
    tensor.shape.push_back(std::stoll(text.substr(at), &digits));
    at += digits - 1;
  }
  const int64_t count =
      std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, std::multiplies<>());
  if (file.size() != 10 + header + static_cast<size_t>(count) * 4) {
    throw std::runtime_error(path + ": is longer or shorter than its shape says");
  }
  tensor.values.resize(static_cast<size_t>(count));
  std::memcpy(tensor.values.data(), file.data() + 10 + header, tensor.values.size() * 4);
  return tensor;
}

inline void write_npy(const std::string& path, const Tensor& tensor) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (const int64_t dim : tensor.shape) header += std::to_string(dim) + ", ";
  header += "), }";
  header.append(63 - (10 + header.size()) % 64, ' ').push_back('\n');
  std::ofstream out(path, std::ios::binary);
  out << std::string("\x93NUMPY\x01\0", 8) << static_cast<char>(header.size() % 256)
      << static_cast<char>(header.size() / 256) << header;
  out.write(reinterpret_cast<const char*>(tensor.values.data()),
            static_cast<std::streamsize>(tensor.values.size() * 4));
  if (!out.flush()) throw std::runtime_error(path + ": can't be written");
}

}  // namespace peer
