"""Models of a problem: kernels, noise, domains."""
