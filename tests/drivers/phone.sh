# Mesa's software driver, which pretends to be a phone: f16, workgroups of 256, 16 KiB of shared memory, no timestamps.
pretend phone "$@"
