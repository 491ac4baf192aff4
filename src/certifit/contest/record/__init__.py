"""The record of a run and the model that is shipped."""
