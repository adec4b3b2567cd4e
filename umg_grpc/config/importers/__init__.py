"""Config files made from variables of the environment, or from the config of another gateway."""
