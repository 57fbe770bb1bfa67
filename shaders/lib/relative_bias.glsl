// A bias of attention's scores by where the key's patch lies, seen from the query's: of a table with a row for each
// such distance and a column for each head (AttentionOptions::bias), so that no bias of every pair is stored.
//
// Patches lie in a grid of bias_height x bias_width, row by row, behind bias_first other tokens (0 or 1). A row of the
// table is (distance of rows + bias_height - 1) * (2 * bias_width - 1) + distance of columns + bias_width - 1, the
// query's place less the key's; with a token in front three more rows follow: it asks a patch, a patch asks it, it
// asks itself.
//
// Or of rows that something else computed (AttentionOptions::bias_rows): a query of a head has a number for each row of
// the grid that a key may be in, and behind them one for each column.
//
// Whoever includes this declares the three as constants; they are 1, 1 and 0 where there is no bias.
#ifndef VITRINE_RELATIVE_BIAS_GLSL
#define VITRINE_RELATIVE_BIAS_GLSL

const uint bias_centre = (bias_height - 1) * (2 * bias_width - 1) + bias_width - 1;  // of a patch that asks itself
const uint table_rows = 2 * bias_centre + 1 + 3 * bias_first;

// How many rows of the table a patch is behind the first one.
uint bias_place(uint token) {
  const uint number = token - bias_first;
  return number + number / bias_width * (bias_width - 1);
}

// Which row is for a pair. Of tokens that there aren't it is some row, so that it may be read.
uint bias_row(uint query, uint key) {
  uint row = bias_centre + bias_place(query) - bias_place(key);
  if (bias_first != 0) {
    if (key < bias_first) row = table_rows - 2;
    if (query < bias_first) row = key < bias_first ? table_rows - 1 : table_rows - 3;
  }
  return min(row, table_rows - 1);
}

// Of rows: the sum of two numbers, of the query with number `line` among all heads' and images'.
#define bias_of_key(rows, line, key)                                 \
  (rows[(line) * (bias_height + bias_width) + (key) / bias_width] +  \
   rows[(line) * (bias_height + bias_width) + bias_height + (key) % bias_width])

#endif
