"""Generation of the rows about models and prices from the data inside public packages: `make knowledge`."""
