// What each lane keeps of elements that lie side by side, for kernels on CPU-type devices whose workgroup is one
// subgroup of `lanes` lanes. An address that differs between lanes is a gather there, as many loads as there are
// lanes. So all lanes read all the elements, at addresses that they share, and each keeps its own: lane numbers are
// constants to the driver's compiler, which makes one vector load of it.
#ifndef VITRINE_OWN_GLSL
#define VITRINE_OWN_GLSL

#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require

// Defines own_of(from, first): the lane's own of the `lanes` elements of a BUFFER from `first` on, as a VALUE.
// Offsets from `first` are constants; where all else is in `from`, they fold into the loads.
#define DEFINE_OWN_OF(BUFFER, VALUE)                              \
  VALUE own_of(BUFFER from, uint first) {                         \
    VALUE own = VALUE(from.v[first]);                             \
    [[unroll]] for (uint lane = 1; lane < lanes; ++lane) {        \
      const VALUE other = VALUE(from.v[first + lane]);            \
      own = gl_SubgroupInvocationID == lane ? other : own;        \
    }                                                             \
    return own;                                                   \
  }

#endif
