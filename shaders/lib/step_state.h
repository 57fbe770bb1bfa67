// What varies from one training step to the next: the words of the input that every operator reads which
// needs any of it. A recorded step would replay its first numbers for ever if they were parameters.
#ifndef VITRINE_STEP_STATE_H
#define VITRINE_STEP_STATE_H

#define VITRINE_STEP_SEED_LOW 0  // of the random numbers
#define VITRINE_STEP_SEED_HIGH 1
#define VITRINE_STEP_NUMBER 2   // counts forward passes: no two draw the same numbers
#define VITRINE_STEP_RATE 3     // learning rate; from here on the bits of floats
#define VITRINE_STEP_MOMENT1 4  // Adam's 1 / (1 - beta1^t), t being the number of updates, this one included
#define VITRINE_STEP_MOMENT2 5  // 1 / (1 - beta2^t)
// The host writes a step while others are under way, of which it doesn't know yet whether their updates are
// made (count_update.comp): how many are for certain, and behind it the pairs of corrections for as many, and
// one more.
#define VITRINE_STEP_UPDATES 6
#define VITRINE_STEP_CANDIDATES 8
#define VITRINE_STEP_CANDIDATE_COUNT 2
#define VITRINE_STEP_WORDS 12

#endif
