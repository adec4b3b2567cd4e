"""Sign-on of people by issuers, and their sessions."""
