"""Guards: every face and operation with each decision and failure of each kind of guard, whole and streamed."""
