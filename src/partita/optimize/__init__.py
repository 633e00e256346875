"""Ask and tell in the user's units: `Optimizer`, results, runs."""
