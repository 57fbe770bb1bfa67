// What heat.glsl and its users on the host agree about.
#ifndef VITRINE_HEAT_H
#define VITRINE_HEAT_H

// Pixels a patch in both directions. Odd, so that one of them lies at the patch's center.
#define VITRINE_HEAT_PIXELS 9
// Colors in a table, from the smallest number's to the largest one's.
#define VITRINE_HEAT_COLORS 256

#endif
