# Mesa's software driver, which pretends to be itself, but for a discrete card's memory and queues.
pretend own_memory "$@"
