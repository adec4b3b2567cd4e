"""Facts about models, providers and prices, as rows with their sources. Pure, except that it reads its data files."""
