// In which order the workgroups of a matrix product take its tiles: panels of a few rows of tiles, each from
// its first column to its last. What runs at a time then shares the panel's rows and a few columns, which a
// cache holds; column by column over all rows, a large A would be read from memory for every column.
#ifndef VITRINE_PANELS_GLSL
#define VITRINE_PANELS_GLSL

// The row and the column of tile number `tile`, of `tiles` in `tiles_m` rows.
uvec2 tile_place(uint tile, uint tiles_m, uint tiles, uint panel) {
  const uint panel_tiles = panel * (tiles / tiles_m);
  const uint first_row = tile / panel_tiles * panel;
  const uint rows = min(panel, tiles_m - first_row);
  const uint within = tile % panel_tiles;
  return uvec2(first_row + within % rows, within / rows);
}

#endif
