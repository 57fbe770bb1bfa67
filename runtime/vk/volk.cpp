// volk's implementation, the only place where it is compiled in.
#define VOLK_IMPLEMENTATION
#include <volk.h>
