"""Reports of usage over millions of records on PostgreSQL: their times, and their equality with sums of the records."""
