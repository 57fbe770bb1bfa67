# Mesa's software driver with subgroups of 8.
use_mesa
export LP_NATIVE_VECTOR_WIDTH=256
