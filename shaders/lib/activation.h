// The activations' numbers, read by C++ (runtime/graph/activation.h) and by GLSL (activation.glsl).
#ifndef VITRINE_ACTIVATION_H
#define VITRINE_ACTIVATION_H

#define VITRINE_ACTIVATION_NONE 0
#define VITRINE_ACTIVATION_GELU 1
#define VITRINE_ACTIVATION_GELU_TANH 2
#define VITRINE_ACTIVATION_GELU_QUICK 3
#define VITRINE_ACTIVATION_SILU 4
#define VITRINE_ACTIVATION_TANH 5
#define VITRINE_ACTIVATION_COUNT 6

#endif
