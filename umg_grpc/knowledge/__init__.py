"""Facts about models, providers and prices, as rows with their sources. Pure: it reads only the package's own data files.
"""
