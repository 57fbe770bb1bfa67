// What is done to the bytes of a batch's pictures, another operation to each: two operators, the tables that
// bytes are looked up in and what makes a picture of a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_operation_tables;
extern const OpDef op_apply_operation;
std::vector<reference::OpCase> operation_tables_cases();
std::vector<reference::OpCase> apply_operation_cases();

// pixels [B, H, W] u32, red in the lowest byte; operations [B, N, VITRINE_OPERATION_WORDS] u32, as
// write_operation() makes them. Gives [B, 256] u32: what each byte becomes by operation `operation` of each
// picture, channel by channel in the words' bytes. It is written only where that is an operation that goes
// by a table.
ValueId operation_tables(Graph& graph, std::string name, ValueId pixels, ValueId operations,
                         uint64_t operation);

struct ApplyOperationOptions {
  uint64_t operation = 0;
  // Which of the kinds that take much of a shader there may be; without, they do nothing.
  bool interpolates = true, turns_hues = true;
};
// The pictures after that operation, with the other's result. [B, H, W] u32.
ValueId apply_operation(Graph& graph, std::string name, ValueId pixels, ValueId operations, ValueId tables,
                        const ApplyOperationOptions& options);

}  // namespace vitrine
