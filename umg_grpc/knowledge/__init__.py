"""Facts about models, providers and prices, as rows with their sources. Pure: reads only its own data files."""
