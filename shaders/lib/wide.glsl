// For kernels for GPUs that go through whole tensors: an invocation takes FOURS vec4s that follow each other, 16
// bytes of the widest tensor, and the last one what is left of these, element by element. The including shader has the
// number of elements as p.count, a buffer y that is declared in groups of four (OUT4, of OUT), and
//   vec4 four(first, f)   what the vec4 of number first + f becomes
//   float one(i)          what element i becomes
//   bool whole_runs       a constant: nothing is left. A shader that is used for nothing else defines WHOLE_RUNS
//                         instead, and needs no one(i).
#ifndef VITRINE_WIDE_GLSL
#define VITRINE_WIDE_GLSL

#ifndef RESULT4
#define RESULT4 vec4
#endif

void main() {
  const uint first = linear_invocation() * FOURS;
  if (first + FOURS <= p.count / 4) {
    RESULT4 results[FOURS];
    [[unroll]] for (uint f = 0; f < FOURS; ++f) results[f] = four(first, f);
    [[unroll]] for (uint f = 0; f < FOURS; ++f) y[first + f] = OUT4(results[f]);
#ifndef WHOLE_RUNS
  } else if (!whole_runs) {
    for (uint i = 4 * first; i < p.count; ++i) y[i >> 2][i & 3] = OUT(one(i));
#endif
  }
}

#endif
