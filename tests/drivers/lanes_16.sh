# Mesa's software driver with subgroups of 16.
use_mesa
export LP_NATIVE_VECTOR_WIDTH=512
