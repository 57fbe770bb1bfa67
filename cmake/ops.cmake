# Collects the operators: every `const OpDef op_NAME` of runtime/ops/*/*.cpp gets a row in one generated
# table (all_ops() in runtime/graph/op.h), and every `extern const FusionRule fuse_NAME` one in a second
# (all_fusion_rules() in runtime/graph/fusion.h). Adding an operator or a rule edits no list.

function(vitrine_generate_ops_table table_out)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/ops/*/*.cpp)
  set(externs "")
  set(rows "")
  set(count 0)
  set(rule_externs "")
  set(rule_rows "")
  set(rule_count 0)
  foreach(source ${sources})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} definitions REGEX "^(extern )?const OpDef op_[a-z0-9_]+")
    foreach(definition ${definitions})
      string(REGEX MATCH "op_[a-z0-9_]+" op "${definition}")
      string(APPEND externs "extern const OpDef ${op};\n")
      string(APPEND rows "    &${op},\n")
      math(EXPR count "${count} + 1")
    endforeach()
    file(STRINGS ${source} definitions REGEX "^extern const FusionRule fuse_[a-z0-9_]+")
    foreach(definition ${definitions})
      string(REGEX MATCH "fuse_[a-z0-9_]+" rule "${definition}")
      string(APPEND rule_externs "extern const FusionRule ${rule};\n")
      string(APPEND rule_rows "    &${rule},\n")
      math(EXPR rule_count "${rule_count} + 1")
    endforeach()
  endforeach()
  set(table ${PROJECT_BINARY_DIR}/ops_table.cpp)
  file(CONFIGURE OUTPUT ${table} @ONLY CONTENT
"// Made by cmake/ops.cmake.
#include <array>

#include \"runtime/graph/fusion.h\"
#include \"runtime/graph/op.h\"

namespace vitrine {
@externs@
@rule_externs@
namespace {
const std::array<const OpDef*, @count@> table{{
@rows@}};
const std::array<const FusionRule*, @rule_count@> rule_table{{
@rule_rows@}};
}  // namespace

std::span<const OpDef* const> all_ops() { return table; }
std::span<const FusionRule* const> all_fusion_rules() { return rule_table; }

}  // namespace vitrine
")
  set(${table_out} ${table} PARENT_SCOPE)
endfunction()
