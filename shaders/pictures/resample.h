// The table that resample_rows.comp and resample_columns.comp read, and their parameters. The host writes
// it (runtime/ops/pictures/resample_table.h); pictures of any size fit one recorded plan, because all that
// depends on their size is in it. 32-bit words:
//   [0, blocks)     the picture that each block of rows belongs to, VITRINE_RESAMPLE_UNUSED behind the last
//   then            VITRINE_RESAMPLE_PICTURE_WORDS words a picture, in the order below; all 0: there is none,
//   and
//                   what lies in its place in the result stays
//   then            anywhere: lists of VITRINE_RESAMPLE_TAP_WORDS words for each output column and row
//                   (first source pixel, how many, word of the first weight), and the weights
#ifndef VITRINE_RESAMPLE_H
#define VITRINE_RESAMPLE_H

#include "lib/shared.h"

// Rows that the horizontal pass takes together; those of one block are of one picture.
#define VITRINE_RESAMPLE_BLOCK_ROWS 64
#define VITRINE_RESAMPLE_UNUSED 0xffffffffu

#define VITRINE_RESAMPLE_PICTURE_WORDS 11
#define VITRINE_RESAMPLE_PIXELS 0       // number of its first pixel
#define VITRINE_RESAMPLE_WIDTH 1        // pixels of a row
#define VITRINE_RESAMPLE_HEIGHT 2       // rows
#define VITRINE_RESAMPLE_FIRST_BLOCK 3  // number of its first block
#define VITRINE_RESAMPLE_COLUMNS 4      // word of its list of output columns
#define VITRINE_RESAMPLE_ROWS 5         // word of its list of output rows
#define VITRINE_RESAMPLE_LEFT 6         // output columns [left, right) and rows [top, bottom) come from the
#define VITRINE_RESAMPLE_RIGHT 7        // picture; the others are `fill`
#define VITRINE_RESAMPLE_TOP 8
#define VITRINE_RESAMPLE_BOTTOM 9
#define VITRINE_RESAMPLE_FILL 10

#define VITRINE_RESAMPLE_TAP_WORDS 3

// Weights are whole numbers of 2^-22.
#define VITRINE_RESAMPLE_PRECISION 22

VITRINE_SHARED_BEGIN
struct ResampleParams {
  uint blocks;    // in the table
  uint pictures;  // of the batch
};
VITRINE_SHARED_SIZE(ResampleParams, 8);
VITRINE_SHARED_END

#endif
