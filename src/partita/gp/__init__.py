"""The exact Gaussian-process posterior, its information gain, and how its settings are learned."""
