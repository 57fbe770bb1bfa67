# Mesa's software driver, which pretends to be the least that Vulkan 1.3 promises.
pretend least "$@"
