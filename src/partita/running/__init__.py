"""The loop behind `maximize` and `minimize`: evaluations, failures, interrupts, progress."""
