"""Pictures of a result: its progress, and what is known of the function."""
