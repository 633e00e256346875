"""Every other algorithm that the paper names, and what they share."""
