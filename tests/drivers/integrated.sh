# Mesa's software driver, which pretends to be an integrated GPU: one memory, of which what the host reads isn't coherent.
pretend integrated "$@"
