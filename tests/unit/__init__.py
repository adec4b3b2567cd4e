"""Parts of the product, in folders that mirror the packages."""
