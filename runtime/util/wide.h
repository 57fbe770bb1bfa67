// For loops over bytes on the host: what processors do with several numbers at a time. Whole numbers, and
// floats without fused multiply-adds (-ffp-contract=off), come to the same bits either way.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
// A function for AVX2 alone; has_avx2() says whether it may be called. Defined where there are such.
#define VITRINE_AVX2 __attribute__((target("avx2")))
#endif

namespace vitrine {

#ifdef VITRINE_AVX2
inline bool has_avx2() { return __builtin_cpu_supports("avx2"); }

template <auto function, class... Arguments>
__attribute__((target("avx2"), flatten)) void run_for_avx2(Arguments... arguments) {
  function(arguments...);
}
#endif

// Calls a function with a loop in it, which is compiled for AVX2, too, and taken so where the processor has
// it. Not target_clones: Windows' linker can't choose between clones. Arguments are values, which no store of
// a byte can change.
template <auto function, class... Arguments>
void run_widely(Arguments... arguments) {
#ifdef VITRINE_AVX2
  if (has_avx2()) return run_for_avx2<function>(arguments...);
#endif
  function(arguments...);
}

}  // namespace vitrine
