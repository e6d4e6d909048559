"""What a model is asked about facts."""
