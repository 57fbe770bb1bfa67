# Mesa's software driver, which pretends to be a discrete card: memory of its own, host memory that isn't coherent, kernels for GPUs.
pretend discrete_card "$@"
