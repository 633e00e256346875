"""What is known of a problem before any value: kernels, noise, domains."""
