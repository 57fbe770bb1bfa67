// Numbers of which the driver's compiler knows that all lanes share them. For kernels on CPU-type devices of
// which Capabilities::loops_gather holds.
//
// Such a driver makes one load and a broadcast of a load through an address, but only where it knows that all
// lanes run (outside of loops and branches), and that the address is everybody's. It takes the number of a
// workgroup for a lane's own; what comes out of the push constants, at whatever index, it takes for everybody's,
// because Vulkan demands that. So a number is put together of digits that are looked up there.
#ifndef VITRINE_KNOWN_GLSL
#define VITRINE_KNOWN_GLSL

// The push constants are the block's member p; a number below 16 to the power of its digits.
uint known_3_digits(uint number) {
  return p.digits[number & 15u] + 16u * p.digits[(number >> 4) & 15u] + 256u * p.digits[(number >> 8) & 15u];
}
uint known_4_digits(uint number) { return known_3_digits(number) + 4096u * p.digits[(number >> 12) & 15u]; }

#endif
