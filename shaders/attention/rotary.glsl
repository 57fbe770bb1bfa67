// Which pair of columns an invocation of the rotary kernels turns, and where its angle stands.
#ifndef VITRINE_ROTARY_GLSL
#define VITRINE_ROTARY_GLSL

struct RotaryPlace {
  uint row, head, pair;
  bool turned;
  uint angle;  // of the table: its cosine; its sine is `pairs` further on
};

// `run` pairs of one head an invocation.
RotaryPlace rotary_place(uint invocation, uint run) {
  const uint runs = pairs / run;
  RotaryPlace place;
  place.row = invocation / (heads * runs);
  const uint within = invocation - place.row * (heads * runs);
  place.head = within / runs;
  place.pair = (within - place.head * runs) * run;
  const uint token = place.row % tokens;
  place.turned = place.head < turned && token >= first;
  const uint angles = place.turned ? (place.head % tables) * (tokens - first) + token - first : 0;
  place.angle = angles * 2 * pairs + place.pair;
  return place;
}

#endif
