// For loops over bytes on the host: what processors do with several numbers at a time. Whole numbers, and
// floats without fused multiply-adds (-ffp-contract=off), come to the same bits either way.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && defined(__linux__)
#include <immintrin.h>
// A function that is compiled for AVX2, too, and taken where the processor has it.
#define VITRINE_WIDE __attribute__((target_clones("avx2", "default")))
// One that is for AVX2 alone; __builtin_cpu_supports("avx2") says whether it may be called. Defined where
// there are such.
#define VITRINE_AVX2 __attribute__((target("avx2")))
#else
#define VITRINE_WIDE
#endif
