// What is done to a picture's bytes, one operation after the other (operation_tables.comp,
// apply_operation.comp). The host writes the words of each (runtime/ops/pictures/picture_operation.h): for
// every picture of a batch as many operations as the graph was built for.
#ifndef VITRINE_PICTURE_OPERATION_H
#define VITRINE_PICTURE_OPERATION_H

#include "lib/shared.h"

#define VITRINE_OPERATION_WORDS 28
#define VITRINE_OPERATION_KIND 0
#define VITRINE_OPERATION_ARGUMENT 1  // a float's bits, or a whole number
#define VITRINE_OPERATION_FILL 2      // of those that move pixels: what stands where no pixel comes from
// Of those that interpolate: how far a result in floats may be from the exact one, a float, for each step
// between the least and the largest byte that it is made of.
#define VITRINE_OPERATION_SLACK 3
// Where a pixel comes from, six numbers: x' = a x + b y + c and y' = d x + e y + f. For the nearest one whole
// numbers of 2^-16 pixels. For the others doubles, low words first, of which c and f are for a pixel's corner.
#define VITRINE_OPERATION_MATRIX 4
// The same six as whole numbers of 2^-32 pixels, low words first; a, b, d and e are halved.
#define VITRINE_OPERATION_FIXED 16

#define VITRINE_OPERATION_NONE 0
// A byte becomes another, by a table for each channel.
#define VITRINE_OPERATION_BRIGHTNESS 1     // argument: the factor
#define VITRINE_OPERATION_CONTRAST 2       // the factor
#define VITRINE_OPERATION_POSTERIZE 3      // the bits that stay, as a byte
#define VITRINE_OPERATION_SOLARIZE 4       // the first byte that is inverted
#define VITRINE_OPERATION_SOLARIZE_ADD 5   // what is added to bytes below 128
#define VITRINE_OPERATION_INVERT 6
#define VITRINE_OPERATION_AUTOCONTRAST 7
#define VITRINE_OPERATION_EQUALIZE 8
#define VITRINE_OPERATION_LAST_TABLE 8
// A pixel becomes another.
#define VITRINE_OPERATION_COLOR 9          // the factor
#define VITRINE_OPERATION_HUE 10           // what is added to the hue, as a byte
// It comes from others.
#define VITRINE_OPERATION_SHARPNESS 11     // the factor
#define VITRINE_OPERATION_NEAREST 12
#define VITRINE_OPERATION_BILINEAR 13
#define VITRINE_OPERATION_BICUBIC 14
#define VITRINE_OPERATION_KINDS 15

VITRINE_SHARED_BEGIN
struct PictureOperationParams {
  uint pictures;
  uint operations;  // of each picture
  uint operation;   // which of them
};
VITRINE_SHARED_SIZE(PictureOperationParams, 12);
VITRINE_SHARED_END

#endif
