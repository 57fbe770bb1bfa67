# Mesa's software driver with subgroups of 4.
use_mesa
export LP_NATIVE_VECTOR_WIDTH=128
