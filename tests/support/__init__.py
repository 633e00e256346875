"""What tests share: oracles, histories, slow twins, problems to play."""
