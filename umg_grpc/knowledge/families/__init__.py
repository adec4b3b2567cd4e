"""Rules of the model families that the specification names, by kind of model."""
