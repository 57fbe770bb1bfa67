// The implementation of Vulkan Memory Allocator, the only place where it is compiled in.
#define VMA_IMPLEMENTATION
#include "runtime/vk/vma.h"
