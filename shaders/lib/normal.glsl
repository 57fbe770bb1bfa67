// Normally distributed numbers of random words: normal_quantile(uniform_from(word)) of runtime/util/philox.h to f32's
// precision, by the routine for single precision of the same publication (M. J. Wichura, "Algorithm AS 241: the
// percentage points of the normal distribution", 1988: PPND7).
#ifndef VITRINE_NORMAL_GLSL
#define VITRINE_NORMAL_GLSL

float normal_from(uint word) {
  // The distance to the nearer end of (0, 1), which has f32's precision there, and to the middle.
  const bool low = word < 0x80000000u;
  const float p = (float(low ? word : ~word) + 0.5) * (1.0 / 4294967296.0);
  const float q = 0.5 - p;
  float value;
  if (q <= 0.425) {
    const float r = 0.180625 - q * q;
    value = q * (((5.9109374720e+1 * r + 1.5929113202e+2) * r + 5.0434271938e+1) * r + 3.3871327179e+0) /
            (((6.7187563600e+1 * r + 7.8757757664e+1) * r + 1.7895169469e+1) * r + 1.0);
  } else {
    float r = sqrt(-log(p));
    if (r <= 5.0) {
      r -= 1.6;
      value = (((1.7023821103e-1 * r + 1.3067284816e+0) * r + 2.7568153900e+0) * r + 1.4234372777e+0) /
              ((1.2021132975e-1 * r + 7.3700164250e-1) * r + 1.0);
    } else {
      r -= 5.0;
      value = (((1.7337203997e-2 * r + 4.2868294337e-1) * r + 3.0812263860e+0) * r + 6.6579051150e+0) /
              ((1.2258202635e-2 * r + 2.4197894225e-1) * r + 1.0);
    }
  }
  return low ? -value : value;
}

#endif
