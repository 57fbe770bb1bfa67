# Mesa's software driver, which pretends to be a discrete card: its own memory, host memory that isn't coherent.
pretend discrete_card "$@"
