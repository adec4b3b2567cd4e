"""Ways to the providers: everything here reaches models that other processes run."""
