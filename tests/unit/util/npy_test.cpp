#include "runtime/util/npy.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "runtime/util/error.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using namespace std::string_literals;

// A version 1.0 file with this dictionary and this much data.
std::string npy(const std::string& dictionary, size_t data_bytes, const std::string& end = "\n") {
  const std::string text = dictionary + end;
  return "\x93NUMPY\x01\x00"s + static_cast<char>(text.size() & 255) + static_cast<char>(text.size() >> 8) +
         text + std::string(data_bytes, '\0');
}

std::string header(const std::string& descr, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
}

NpyHeader parse(const std::string& file) { return parse_npy_header(to_bytes(file), "x.npy"); }

std::string refusal_of(const std::string& file) {
  try {
    static_cast<void>(parse(file));
  } catch (const Error& error) {
    const std::string message = error.what();
    CHECK(error.code() == ErrorCode::bad_file);
    CHECK(message.starts_with("x.npy "));
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return "no error";
}

}  // namespace

TEST_CASE("float32 values survive an .npy file bit by bit, in every rank") {
  const TemporaryFolder folder;
  const std::vector<float> values{
      0.0F,  -0.0F, 1.5F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::denorm_min(),
      -3e38F};
  for (const std::vector<uint64_t>& shape :
       {std::vector<uint64_t>{6}, {2, 3}, {1, 2, 1, 3}, {6, 1, 1, 1, 1, 1, 1}}) {
    write_npy(folder / "a.npy", shape, std::span(values));
    const NpyFile file(folder / "a.npy");
    CHECK(file.header().shape == shape);
    CHECK(file.header().dtype == NpyDType::f32);
    CHECK(file.header().data_offset % 64 == 0);
    const auto read = file.values<float>();
    REQUIRE(read.size() == values.size());
    CHECK(std::memcmp(read.data(), values.data(), read.size() * sizeof(float)) == 0);
  }
  write_npy(folder / "scalar.npy", {}, std::span(values).first(1));
  CHECK(NpyFile(folder / "scalar.npy").header().shape.empty());
  const std::vector<uint64_t> none{3, 0, 2};
  write_npy(folder / "none.npy", none, std::span<const float>());
  CHECK(NpyFile(folder / "none.npy").values<float>().empty());
}

TEST_CASE("the bytes of a written .npy file are the ones that NumPy writes") {
  const TemporaryFolder folder;
  const std::vector<float> values{1.0F, -2.0F};
  const std::vector<uint64_t> shape{2, 1};
  write_npy(folder / "a.npy", shape, std::span(values));
  const std::string dictionary = header("'<f4'", "(2, 1)");
  CHECK(read_whole_file(folder / "a.npy") == "\x93NUMPY\x01\x00\x76\x00"s + dictionary +
                                                 std::string(0x75 - dictionary.size(), ' ') + "\n" +
                                                 "\x00\x00\x80\x3f\x00\x00\x00\xc0"s);
  const std::vector<uint8_t> bytes{7, 8, 9};
  const std::vector<uint64_t> three{3};
  write_npy(folder / "b.npy", three, std::span(bytes));
  CHECK_THAT(read_whole_file(folder / "b.npy"), ContainsSubstring(header("'|u1'", "(3,)")));
  CHECK(NpyFile(folder / "b.npy").values<uint8_t>() == bytes);
}

TEST_CASE("writing values that do not fit the shape is refused and writes nothing") {
  const TemporaryFolder folder;
  const std::vector<float> values(6);
  const auto code = [&](const std::vector<uint64_t>& shape) {
    try {
      write_npy(folder / "a.npy", shape, std::span(values));
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::failed;
  };
  CHECK(code({2, 2}) == ErrorCode::usage);
  CHECK(code({uint64_t{1} << 63, 4}) == ErrorCode::usage);
  CHECK(code(std::vector<uint64_t>(33, 1)) == ErrorCode::usage);
  CHECK(folder.names().empty());
}

TEST_CASE("every spelling of a header that NumPy's format allows is read") {
  CHECK(parse(npy(header("'<f4'", "(2, 3)"), 24)).shape == std::vector<uint64_t>{2, 3});
  CHECK(parse(npy("{'shape':(2,3,),\"fortran_order\":False,'descr':\"<f4\"}", 24)).elements == 6);
  CHECK(parse(npy("  { 'descr' : '<f2' ,'fortran_order': False, 'shape': ( 5 , ) }   ", 10)).dtype ==
        NpyDType::f16);
  CHECK(parse(npy(header("'<f8'", "()"), 8)).elements == 1);
  CHECK(parse(npy(header("'<i8'", "(0, 18446744073709551615)"), 0)).elements == 0);
  CHECK(parse(npy(header("'<u1'", "(1,)"), 1)).dtype == NpyDType::u8);
  const std::string text = header("'<f4'", "(1,)") + "\n";
  const NpyHeader second =
      parse("\x93NUMPY\x02\x00"s + static_cast<char>(text.size()) + "\0\0\0"s + text + "1234");
  CHECK(second.shape == std::vector<uint64_t>{1});
  CHECK(second.data_offset == 12 + text.size());
}

TEST_CASE("values are handed out as the type that the file holds, and no other") {
  const TemporaryFolder folder;
  const NpyFile file(folder.file("a.npy", npy(header("'<i8'", "(2,)"), 16)));
  CHECK(file.values<int64_t>() == std::vector<int64_t>{0, 0});
  CHECK_THROWS_WITH(file.values<float>(),
                    ContainsSubstring("int64") && ContainsSubstring("expected float32"));
  CHECK_THROWS_WITH(file.values<uint16_t>(), ContainsSubstring("expected float16"));
}

TEST_CASE("a file that breaks a rule of the .npy format is refused with what was found") {
  CHECK_THAT(refusal_of(""), ContainsSubstring("no .npy file"));
  CHECK_THAT(refusal_of("PK\x03\x04 a zip file"), ContainsSubstring("\"PK\\x03\\x04 a\""));
  CHECK_THAT(refusal_of("\x93NUMPY\x01\x00"s), ContainsSubstring("ends inside"));
  CHECK_THAT(refusal_of("\x93NUMPY\x02\x00\x00\x00"s), ContainsSubstring("ends inside the length"));
  CHECK_THAT(refusal_of("\x93NUMPY\x03\x00\x00\x00\x00\x00"s), ContainsSubstring("version 3.0"));
  CHECK_THAT(refusal_of("\x93NUMPY\x01\x01\x00\x00"s), ContainsSubstring("version 1.1"));
  CHECK_THAT(refusal_of("\x93NUMPY\x01\x00\x10\x00{}"s), ContainsSubstring("only 2 bytes follow"));
  CHECK_THAT(refusal_of("\x93NUMPY\x02\x00\xff\xff\xff\xff{}"s), ContainsSubstring("4294967295"));
  CHECK_THAT(refusal_of(npy("", 0, "")), ContainsSubstring("expected '{'"));
  CHECK_THAT(refusal_of(npy("[1, 2]", 0)), ContainsSubstring("expected '{'"));
  CHECK_THAT(refusal_of(npy(header("'>f4'", "(1,)"), 4)), ContainsSubstring("big-endian"));
  CHECK_THAT(refusal_of(npy(header("'|O'", "(1,)"), 8)), ContainsSubstring("objects"));
  CHECK_THAT(refusal_of(npy(header("'<c8'", "(1,)"), 8)), ContainsSubstring("\"<c8\""));
  CHECK_THAT(refusal_of(npy(header("[('a', '<f4')]", "(1,)"), 4)), ContainsSubstring("records"));
  CHECK_THAT(refusal_of(npy(header("'<f4", "(1,)"), 4)), ContainsSubstring("expected"));
  CHECK_THAT(refusal_of(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", 4)),
             ContainsSubstring("Fortran"));
  CHECK_THAT(refusal_of(npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", 4)),
             ContainsSubstring("expected False"));
  CHECK_THAT(refusal_of(npy("{'descr': '<f4', 'shape': (1,), }", 4)), ContainsSubstring("no fortran_order"));
  CHECK_THAT(refusal_of(npy("{'descr': '<f4', 'fortran_order': False, }", 4)), ContainsSubstring("no shape"));
  CHECK_THAT(refusal_of(npy("{'shape': (1,), 'fortran_order': False, }", 4)), ContainsSubstring("no descr"));
  CHECK_THAT(refusal_of(npy("{'descr': '<f4', 'descr': '<f4', 'shape': (1,)}", 4)),
             ContainsSubstring("once"));
  CHECK_THAT(refusal_of(npy("{'descr': '<f4', 'more': 1}", 4)), ContainsSubstring("\"more\""));
  CHECK_THAT(refusal_of(npy(header("'<f4'", "(1,)") + " x", 4)), ContainsSubstring("after its header"));
  CHECK_THAT(refusal_of(npy(header("'<f4'", "(1,)"), 4, "")), ContainsSubstring("end of the line"));
  for (const std::string shape : {"(1)", "[1]", "1", "(-1,)", "(1.0,)", "(01,)", "(1 2)", "(,)", "(1,,2)",
                                  "(0x1,)", "(1L,)", "(1", "(None,)", "(1e3,)"}) {
    INFO(shape);
    CHECK_THAT(refusal_of(npy(header("'<f4'", shape), 4)), ContainsSubstring("expected"));
  }
  CHECK_THAT(refusal_of(npy(header("'<f4'", "(18446744073709551616,)"), 4)), ContainsSubstring("64 bits"));
  CHECK_THAT(refusal_of(npy(header("'<f4'", "(4294967296, 4294967296)"), 4)), ContainsSubstring("64 bits"));
  CHECK_THAT(refusal_of(npy(header("'<f4'", "(4611686018427387904,)"), 0)), ContainsSubstring("64 bits"));
  CHECK_THAT(refusal_of(npy(header("'<f4'", "(1000000000000,)"), 4)),
             ContainsSubstring("expected 4000000000000"));
  CHECK_THAT(refusal_of(npy(header("'<f4'", "(2, 3)"), 23)),
             ContainsSubstring("23 bytes of data, expected 24"));
  CHECK_THAT(refusal_of(npy(header("'<f4'", "(2, 3)"), 25)),
             ContainsSubstring("25 bytes of data, expected 24"));
  std::string many = "(";
  for (int i = 0; i < 33; ++i) many += "1, ";
  CHECK_THAT(refusal_of(npy(header("'<f4'", many + ")"), 4)), ContainsSubstring("32 dimensions"));
}

TEST_CASE("cutting an .npy file anywhere makes it bad, never a crash") {
  const std::string whole = npy(header("'<f4'", "(2, 3)"), 24);
  REQUIRE(parse(whole).elements == 6);
  for (size_t length = 0; length < whole.size(); ++length) {
    INFO(length);
    CHECK(refusal_of(whole.substr(0, length)) != "no error");
  }
}

}  // namespace vitrine::test
